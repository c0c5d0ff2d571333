"""From the JSON of a tile to the states of its columns, for every monoid over every type."""

from __future__ import annotations

import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.aggregate import Count, Least, Moments, Monoid, Quantiles, TimeSpan, Total
from headrace.errors import DefinitionError, HeadraceError
from headrace.tiles.partials import shape_of
from headrace.types.field_types import Decimal, Float, Integer, String
from tests.aggregate.cases import KINDS, MONOID_CASES, events_of, folded, monoids, same
from tests.serve.shape import decoder, to_json


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_survives_the_way_through_sparks_json(kind):
    @given(case=monoids(kind), data=st.data())
    def check(case, data):
        monoid, fed = case
        events = data.draw(events_of(fed))
        state = folded(monoid, events)
        found = decoder([("x", monoid)])(to_json([("x", monoid, state)]))["x"]
        assert same(monoid, found, state, events)

    check()


@pytest.mark.parametrize("monoid", list(dict.fromkeys(monoid for monoid, _ in MONOID_CASES)), ids=str)
@pytest.mark.parametrize("written", [b"{}", b'{"x":null}', b'{"other":7}'])
def test_an_absent_or_null_column_is_the_empty_state(monoid: Monoid, written: bytes):
    assert decoder([("x", monoid)])(written) == {"x": monoid.empty}


def test_only_the_columns_asked_for_are_read():
    read = decoder([("a", Count())])
    assert read(b'{"b":{"broken":[1,2,{}]},"a":3,"c":"x"}') == {"a": 3}


def test_members_that_spark_left_out_are_null():
    assert decoder([("s", TimeSpan()), ("m", Moments(Float()))])(b'{"s":{"n":0},"m":{"n":0}}') == {
        "s": (0, None, None),
        "m": (0, 0.0, 0.0),
    }


def test_a_sum_that_ran_out_of_range_is_written_as_text_and_read_as_infinity():
    columns = [("t", Total(Float())), ("d", Total(Decimal(10, 2))), ("q", Quantiles(Float())), ("n", Count())]
    sketch = Quantiles(Float()).lift(1.5, 0, "")
    written = to_json(
        [(name, monoid, state) for (name, monoid), state in zip(columns, (1.5, 150, sketch, 2), strict=True)]
    )
    found = decoder(columns)(written.replace(b'"t":1.5', b'"t":"-Infinity"'))
    assert (found["t"], found["d"], found["n"], bool(found["q"])) == (-float("inf"), 150, 2, True)


def test_decimals_keep_all_their_digits():
    digits = "12345678901234567890.123456789012345678"
    read = decoder([("x", Least(Decimal(38, 18))), ("y", Total(Float()))])
    for total in (b"1.0", b'"NaN"'):
        assert read(b'{"x":%s,"y":%s}' % (digits.encode(), total))["x"] == decimal.Decimal(digits)


@pytest.mark.parametrize(
    ("monoid", "written"),
    [
        (Count(), b'{"x":"3"}'),
        (Count(), b'{"x":3.5}'),
        (TimeSpan(), b'{"x":[1]}'),
        (Total(Integer()), b'{"x":{"hi":"a"}}'),
        (Total(Float()), b'{"x":"many"}'),
        (Least(String()), b'{"x":7}'),
        (Quantiles(Float()), b'{"x":"not base64!"}'),
    ],
    ids=str,
)
def test_a_column_of_another_type_is_refused_and_never_guessed(monoid, written):
    with pytest.raises(HeadraceError) as refused:
        decoder([("x", monoid)])(written)
    assert (refused.value.code, refused.value.http_status) == ("bad-changelog", 500)


@pytest.mark.parametrize(
    "ddl", ["", "MAP<STRING, BIGINT>", "STRUCT<a: BIGINT", "BIGINT BIGINT", "ARRAY<>", "DECIMAL(3"]
)
def test_a_type_that_cannot_be_served_is_refused_before_anything_is_read(ddl):
    with pytest.raises(DefinitionError, match="cannot be served"):
        shape_of(ddl)
