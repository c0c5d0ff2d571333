"""Definitions are frozen values that mean what they say."""

from __future__ import annotations

import dataclasses

import pytest

import headrace as hr
from headrace.errors import DataError

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "amount": float, "place": {"country": str | None}, "at": hr.Timestamp},
    event_time="at",
    event_id="id",
)


def test_equal_definitions_are_equal_wherever_they_were_written():
    first = hr.view("cards", payments, by="card", features={"n": hr.count(over="10m")})
    second = hr.view("cards", payments, by="card", features={"n": hr.count(over="10m")})
    assert first == second
    assert hash(first) == hash(second)
    assert first.location != second.location


def test_a_definition_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        payments.name = "other"  # type: ignore[misc]


def test_where_and_with_columns_leave_the_stream_as_it_was():
    derived = payments.with_columns(large="amount > 100").where("large")
    assert payments.filter is None
    assert derived.base == payments


def test_computed_columns_are_inlined_into_what_follows():
    derived = payments.with_columns(double="amount * 2").where("double > 10")
    assert derived.filter.fields == {"amount"}
    assert derived.filter.python()({"amount": 6.0}) is True


def test_computed_columns_may_use_each_other_in_any_order():
    derived = payments.with_columns(quadruple="double * 2", double="amount * 2")
    assert derived.column("quadruple").python()({"amount": 1.5}) == 6.0


def test_two_conditions_must_both_hold():
    both = payments.where("amount > 1").where("amount < 3").filter.python()
    assert [both({"amount": amount}) for amount in (1.0, 2.0, 3.0)] == [False, True, False]


def test_nested_fields_are_reached_by_a_dot():
    derived = payments.with_columns(country="coalesce(place.country, 'unknown')")
    view = hr.view("countries", derived, by="country", features={"n": hr.count(over="1h")})
    assert view.key[0][1].python()({"place": {"country": None}}) == "unknown"


def test_a_view_may_have_no_key_one_or_several():
    make = {"n": hr.count(over="1h")}
    assert hr.view("all", payments, by=(), features=make).by == ()
    assert hr.view("both", payments, by=("card", "id"), features=make).by == ("card", "id")


def test_an_on_demand_feature_is_still_a_function():
    cards = hr.view("cards", payments, by="card", features={"spent": hr.sum("amount", over="1h")})

    @hr.on_demand(cards, request={"amount": float})
    def share(amount, spent):
        """How much of the hour's spending this is."""
        return amount / spent if spent else None

    assert share(1.0, 4.0) == 0.25
    assert share.description == "How much of the hour's spending this is."


def test_on_demand_features_build_on_each_other():
    cards = hr.view("cards", payments, by="card", features={"spent": hr.sum("amount", over="1h")})

    @hr.on_demand(cards)
    def doubled(spent):
        return spent * 2

    @hr.on_demand(doubled)
    def quadrupled(doubled):
        return doubled * 2

    chosen = hr.feature_set("chosen", [quadrupled])
    assert [made.name for made in chosen.on_demands] == ["doubled", "quadrupled"]
    assert chosen.views == (cards,)


def test_a_missing_request_value_is_an_error_and_never_a_default():
    cards = hr.view("cards", payments, by="card", features={"spent": hr.sum("amount", over="1h")})

    @hr.on_demand(cards, request={"amount": float, "note": str | None})
    def share(amount, spent, note):
        return (amount, note)

    assert share.value({"amount": 2.0}, {"spent": 1.0}, t=0) == (2.0, None)
    with pytest.raises(DataError) as caught:
        share.value({}, {"spent": 1.0}, t=0)
    assert caught.value.code == "bad-request"


def test_a_changed_function_has_a_changed_fingerprint():
    cards = hr.view("cards", payments, by="card", features={"spent": hr.sum("amount", over="1h")})

    def version_one():
        @hr.on_demand(cards)
        def share(spent):
            return spent * 2

        return share

    def version_two():
        @hr.on_demand(cards)
        def share(spent):
            return spent * 3

        return share

    assert version_one().fingerprint == version_one().fingerprint
    assert version_one().fingerprint != version_two().fingerprint


def test_a_ratio_by_zero_is_null():
    cards = hr.view(
        "cards", payments, by="card", features={"r": hr.ratio(hr.sum("amount", over="1h"), hr.count(over="1h"))}
    )
    combine = cards.feature("r").combine
    assert [combine(values) for values in ((1.0, 2), (1.0, 0), (None, 2), (0.0, 2))] == [0.5, None, None, 0.0]
