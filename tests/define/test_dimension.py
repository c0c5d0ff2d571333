"""Dimensions are frozen values, and a value at a moment is that of the newest row, if it is still valid."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.define.dimension import value_at
from headrace.errors import DataError
from headrace.testing import record, run

payments = hr.stream("payments", fields={"card": str, "merchant": str, "at": hr.Timestamp}, event_time="at")
cards = hr.view("cards", payments, by="card", features={"n": hr.count(over="1h")})
fields = {"merchant": str, "category": str, "risk": float | None}


def make(path="merchants.parquet", **changed):
    given = {"by": "merchant", "fields": fields, "valid_from": "since", "valid_to": "until"}
    return hr.dimension("merchants", path, **(given | changed))


merchants = make()


@hr.on_demand(cards, merchants, request={"amount": float})
def exposure(amount, n, risk):
    return None if risk is None else amount * risk * n


fraud = hr.feature_set("fraud", [cards, merchants.only("risk"), exposure])


def row(merchant, since, until=None, risk=None):
    return {"merchant": merchant, "category": "food", "risk": risk, "since": since, "until": until}


def risk_at(rows, t, merchant="m"):
    found = value_at(merchants, rows, (merchant,), t)
    return found and found["risk"]


def test_equal_dimensions_are_equal_wherever_they_were_written():
    other = hr.dimension(
        "merchants", "merchants.parquet", by=["merchant"], fields=fields, valid_from="since", valid_to="until"
    )
    assert merchants == other
    assert hash(merchants) == hash(other)
    assert merchants.location != other.location
    assert merchants != make(path="others.parquet")


def test_its_features_are_what_is_neither_key_nor_validity():
    assert [(each.name, str(each.type)) for each in merchants.features] == [("category", "string"), ("risk", "float")]
    declared = make(fields=fields | {"since": hr.Timestamp, "until": hr.Timestamp() | None})
    assert declared.features == merchants.features


def test_a_row_is_valid_from_its_very_moment_until_the_next():
    rows = [row("m", 20, risk=0.9), row("m", 10, risk=0.5), row("other", 15, risk=0.1)]
    assert [risk_at(rows, t) for t in (9, 10, 19, 20, 21)] == [None, 0.5, 0.5, 0.9, 0.9]


def test_a_row_that_has_ended_does_not_give_way_to_the_one_before():
    rows = [row("m", 10, until=30, risk=0.5), row("m", 20, until=25, risk=0.9)]
    assert [risk_at(rows, t) for t in (24, 25, 29, 30)] == [0.9, None, None, None]


def test_a_row_that_ends_before_it_begins_is_never_valid():
    assert [risk_at([row("m", 10, until=5, risk=0.5)], t) for t in (4, 7, 10, 11)] == [None] * 4


def test_a_valid_row_with_a_null_is_there_and_no_row_is_not():
    assert value_at(merchants, [row("m", 10)], ("m",), 10) == {"category": "food", "risk": None}
    assert value_at(merchants, [row("m", 10)], ("m",), 9) is None


def test_a_feature_set_reads_views_and_dimensions():
    assert fraud.columns == ("n", "risk", "exposure")
    assert (fraud.views, fraud.dimensions, fraud.keyed) == ((cards,), (merchants,), (cards, merchants))
    assert exposure.keyed == (cards, merchants)


ROWS = [
    {"merchant": "m", "category": "food", "risk": 0.5, "since": "2026-01-01T00:00:00Z"},
    {
        "merchant": "m",
        "category": "food",
        "risk": 0.9,
        "since": "2026-01-01T00:30:00Z",
        "until": "2026-01-02T00:00:00Z",
    },
]


def test_a_feature_set_with_a_dimension_is_tested_with_its_rows():
    result = run([fraud], [record(payments, card="c", merchant="m", at="2026-01-01T00:10:00Z")], {"merchants": ROWS})
    key, request = {"card": "c", "merchant": "m"}, {"amount": 10.0}
    at = "2026-01-01T00:20:00Z"
    assert result.features(fraud, key, at=at, request=request) == {"n": 1, "risk": 0.5, "exposure": 5.0}
    assert result.features(merchants, "m", at="2026-01-01T01:00:00Z") == {"category": "food", "risk": 0.9}
    assert result.features(merchants, "m", at="2026-01-02T00:00:00Z") == {"category": None, "risk": None}
    assert result.features(exposure, key | {"merchant": "x"}, at=at, request=request) == {"exposure": None}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"merchant": ROWS}, "not defined"),
        ({"merchants": [ROWS[0], ROWS[0]]}, "one key and one 'since'"),
        ({"merchants": [ROWS[0] | {"rsik": 1.0}]}, "no such column"),
        ({"merchants": [ROWS[0] | {"risk": "high"}]}, "risk"),
        ({"merchants": [{"merchant": "m", "category": "food"}]}, "since"),
    ],
)
def test_rows_that_no_table_could_have_are_refused(tables, said):
    with pytest.raises(DataError) as caught:
        run([fraud], [], tables)
    assert said in str(caught.value)


def test_a_dimension_without_rows_is_not_taken_for_an_empty_one():
    with pytest.raises(DataError, match="no rows of dimension 'merchants'"):
        run([fraud], []).features(merchants, "m", at=0)
    assert run([fraud], [], {"merchants": []}).features(merchants, "m", at=0)["risk"] is None
