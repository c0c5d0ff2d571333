"""Every aggregate means what its `exact` says, however its events are cut into tiles."""

from __future__ import annotations

import decimal
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.aggregate import AGGREGATES, Aggregate, aggregate
from headrace.errors import DefinitionError
from headrace.types.field_types import Boolean, Decimal, Float, Integer, List, String, Timestamp, Type
from tests.aggregate.cases import AGGREGATE_CASES, PARAMETERS, aggregates, events_of, folded, known
from tests.budget import examples

T = 30_000_000
every_name = pytest.mark.parametrize("name", AGGREGATES)


def finished(asked: Aggregate, events: Any) -> Any:
    return asked.finish([folded(monoid, events) for monoid in asked.monoids], T)


def exact(name: str, kind: Type | None, *values: Any, **params: Any) -> Any:
    return aggregate(name, kind, **params).exact([(at, "id", value) for at, value in enumerate(values)], T)


@every_name
@given(data=st.data())
def test_tiles_merged_in_any_order_finish_in_the_defined_value(name: str, data: Any) -> None:
    asked = data.draw(aggregates(name))
    events = data.draw(events_of(asked.fed))
    places = data.draw(st.lists(st.integers(0, 4), min_size=len(events), max_size=len(events)))
    tiles = [[e for e, place in zip(events, places, strict=True) if place == tile] for tile in range(5)]
    order = data.draw(st.permutations(tiles))
    states = [monoid.fold([folded(monoid, tile) for tile in order]) for monoid in asked.monoids]
    got, wanted = asked.finish(states, T), asked.exact(known(events), T)
    assert asked.close(got, wanted, known(events)), (got, wanted)


@every_name
def test_every_aggregate_computes_the_values_of_many_rows_at_once(name: str) -> None:
    assert AGGREGATES[name].compute_values is not Aggregate.compute_values


@pytest.mark.parametrize("asked", AGGREGATE_CASES, ids=lambda asked: f"{asked}-{asked.input}")
def test_nothing_finishes_in_the_defined_empty_value(asked: Aggregate) -> None:
    wanted = 0 if asked.name in ("count", "count_distinct", "sum", "decayed_sum") else None
    assert finished(asked, []) == asked.exact([], T) == wanted
    assert finished(asked, [(1, "a", None)]) == wanted
    if wanted is None:
        assert asked.nullable


@every_name
@given(data=st.data())
@examples(1 / 2)
def test_a_value_has_the_declared_type(name: str, data: Any) -> None:
    asked = data.draw(aggregates(name))
    value = finished(asked, data.draw(events_of(asked.fed)))
    kinds = {
        String: str,
        Boolean: bool,
        Integer: int,
        Float: float,
        Decimal: decimal.Decimal,
        Timestamp: int,
        List: list,
    }
    assert value is None or type(value) is kinds[type(asked.type)]


@pytest.mark.parametrize("asked", AGGREGATE_CASES, ids=lambda asked: f"{asked}-{asked.input}")
def test_a_value_far_off_is_not_close(asked: Aggregate) -> None:
    one = {String(): "a", Boolean(): True, Integer(): 7, Float(): 7.0, Timestamp(): 7}.get(
        asked.fed, decimal.Decimal(7)
    )
    events = [(at, "id", one) for at in range(5)]
    true = asked.exact(events, T)
    assert asked.close(true, true, events)
    wrong: Any = [None, "zz", [], -1, True, 8.5]
    for value in wrong:
        if type(value) is type(true) and value != true:
            assert not asked.close(value, true, events)
            assert not asked.close(true, value, events)


@pytest.mark.parametrize(("name", "params"), [("sum", {}), ("mean", {}), ("decayed_sum", {"half_life": 10**15})])
def test_floats_are_equal_within_a_billionth_of_what_was_added_up(name: str, params: Any) -> None:
    asked, events = aggregate(name, Float(), **params), [(T, "a", 3.0), (T, "b", -2.0)]
    true = asked.exact(events, T)
    step = 5e-9 / (2 if name == "mean" else 1)
    assert asked.close(true, true + 0.9 * step, events)
    assert not asked.close(true, true + 1.1 * step, events)
    assert not asked.close(true, None, events)


def test_sum_and_mean_share_a_column() -> None:
    (total,) = aggregate("sum", Float()).monoids
    assert total in aggregate("mean", Float()).monoids


def test_every_quantile_of_a_field_shares_one_sketch() -> None:
    assert aggregate("quantile", Float(), q=0.5).monoids == aggregate("quantile", Float(), q=0.99).monoids


def test_most_top_k_of_a_field_share_one_sketch_and_large_ones_get_a_larger() -> None:
    small, usual, large = (aggregate("top_k", String(), k=k).monoids[0] for k in (1, 90, 1_000))
    assert small == usual
    assert large.form["lg_slots"] == 14


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ((2**63 - 1, 1), None),
        ((-(2**63), -1), None),
        ((2**63 - 1, 1, -1), 2**63 - 1),
        ((-(2**63),), -(2**63)),
    ],
)
def test_a_sum_of_integers_is_exact_and_null_outside_64_bits(values: tuple[int, ...], wanted: int | None) -> None:
    asked = aggregate("sum", Integer())
    assert finished(asked, [(at, "id", value) for at, value in enumerate(values)]) == wanted
    assert exact("sum", Integer(), *values) == wanted


def test_a_sum_of_decimals_keeps_every_digit_and_is_null_when_it_does_not_fit() -> None:
    greatest = decimal.Decimal("99999999999999999999.999999999999999999")
    tiny = decimal.Decimal("0.000000000000000001")
    asked = aggregate("sum", Decimal(38, 18))
    events = [(at, "id", value) for at, value in enumerate([greatest, tiny, -tiny])]
    assert str(finished(asked, events)) == str(asked.exact(events, T)) == str(greatest)
    assert finished(asked, events[:2]) is None
    assert asked.exact(events[:2], T) is None
    assert str(asked.type) == "decimal(38,18)"
    assert str(aggregate("sum", Decimal(10, 2)).type) == "decimal(20,2)"


def test_a_sum_of_floats_out_of_range_is_null() -> None:
    events = [(at, "id", 1.7e308) for at in range(2)]
    asked = aggregate("sum", Float())
    assert finished(asked, events) is None
    assert asked.exact(events, T) is None


def test_the_mean_of_integers_beyond_64_bits_is_still_right() -> None:
    assert exact("mean", Integer(), 2**63 - 1, 2**63 - 1) == float(2**63 - 1)
    assert finished(aggregate("mean", Integer()), [(0, "a", 2**63 - 1), (0, "b", 2**63 - 1)]) == float(2**63 - 1)


def test_variance_is_the_sample_variance_and_null_below_two_values() -> None:
    assert exact("variance", Integer(), 1, 2, 3, 4) == pytest.approx(5 / 3)
    assert exact("stddev", Float(), 1.0, 3.0) == pytest.approx(2**0.5)
    assert exact("variance", Float(), 1.0) is None
    assert finished(aggregate("variance", Float()), [(0, "a", 1.0)]) is None


def test_first_and_last_break_ties_in_time_by_event_id() -> None:
    events = [(5, "b", "B"), (5, "a", "A"), (5, "c", "C"), (4, "z", None)]
    assert finished(aggregate("first", String()), events) == "A"
    assert finished(aggregate("last", String()), events) == "C"
    assert aggregate("last", String()).exact(known(events), T) == "C"


def test_last_n_lists_the_newest_first_and_no_more_than_n() -> None:
    assert exact("last_n", Integer(), 1, 2, 3, 4, n=3) == [4, 3, 2]
    assert finished(aggregate("last_n", Integer(), n=3), [(at, "a", at) for at in range(9)]) == [8, 7, 6]


@pytest.mark.parametrize(("q", "wanted"), [(0, 1.0), (0.5, 10.0), (0.55, 11.0), (0.56, 12.0), (1, 20.0)])
def test_a_quantile_is_the_least_value_with_that_rank(q: float, wanted: float) -> None:
    events = [(at, "id", at) for at in range(1, 21)]
    asked = aggregate("quantile", Integer(), q=q)
    assert asked.exact(events, T) == wanted
    assert finished(asked, events) == wanted


def test_top_k_orders_by_count_then_item_and_keeps_the_items_type() -> None:
    asked = aggregate("top_k", Integer(), k=2)
    events = [(at, "id", value) for at, value in enumerate([10, 9, 9, 10, 3])]
    wanted = [{"item": 9, "count": 2}, {"item": 10, "count": 2}]
    assert finished(asked, events) == asked.exact(events, T) == wanted
    assert asked.type.ddl == "ARRAY<STRUCT<`item`: BIGINT, `count`: BIGINT>>"


def test_a_decayed_sum_halves_with_every_half_life() -> None:
    asked = aggregate("decayed_sum", Float(), half_life=1_000)
    events = [(T - 2_000, "a", 8.0), (T - 1_000, "b", 2.0), (T, "c", 1.0)]
    assert finished(asked, events) == asked.exact(events, T) == 4.0


def test_a_decayed_sum_of_very_old_events_fades_to_zero_without_failing() -> None:
    asked = aggregate("decayed_sum", Float(), half_life=1)
    events = [(0, "a", 8.0), (10_000, "b", 1.0)]
    assert finished(asked, events) == asked.exact(events, T) == 0.0
    (monoid,) = asked.monoids
    assert folded(monoid, events) == folded(monoid, reversed(events)) == (10_000, 1.0)


def test_time_since_is_in_seconds_and_zero_for_a_clock_that_runs_ahead() -> None:
    events = [(T - 2_500_000, "a", True), (T + 500_000, "b", True)]
    assert finished(aggregate("time_since_first"), events) == 2.5
    for name in ("time_since_last", "time_since_first"):
        asked = aggregate(name)
        assert asked.exact(events[1:], T) == finished(asked, events[1:]) == 0.0


def test_an_empty_text_and_both_zeros_count_once_each() -> None:
    texts = [(at, "id", value) for at, value in enumerate(["", "", "a"])]
    assert finished(aggregate("count_distinct", String()), texts) == 2
    zeros = [(at, "id", value) for at, value in enumerate([0.0, -0.0, 1.0])]
    assert finished(aggregate("count_distinct", Float()), zeros) == 2
    scales = [(at, "id", decimal.Decimal(value)) for at, value in enumerate(["1.5", "1.50", "-0", "0.00"])]
    assert finished(aggregate("count_distinct", Decimal(10, 2)), scales) == 2


def test_approximate_aggregates_declare_their_error_and_no_others_do() -> None:
    declared = {name for name in AGGREGATES if aggregate(name, Integer(), **PARAMETERS.get(name, {})).error}
    assert declared == {"count_distinct", "quantile", "top_k"}


@pytest.mark.parametrize(
    ("name", "kind", "params", "code", "message"),
    [
        ("sum", String(), {}, "wrong-type", "sum cannot take a field of type string."),
        ("mean", Boolean(), {}, "wrong-type", "mean cannot take a field of type boolean."),
        ("min", List(String()), {}, "wrong-type", "min cannot take a field of type list of string."),
        ("quantile", Timestamp(), {"q": 0.5}, "wrong-type", "quantile cannot take a field of type timestamp."),
        ("top_k", Float(), {"k": 5}, "wrong-type", "top_k cannot take a field of type float."),
        ("sum", None, {}, "bad-argument", "sum needs a field."),
        ("summ", Float(), {}, "bad-argument", "There is no such aggregate."),
        ("sum", Float(), {"n": 3}, "bad-argument", "The parameters of sum do not fit."),
        ("last_n", Float(), {}, "bad-argument", "The parameters of last_n do not fit."),
        ("last_n", Float(), {"n": 0}, "bad-argument", "`n` of last_n must be a whole number from 1 to 1,000."),
        ("last_n", Float(), {"n": True}, "bad-argument", "`n` of last_n must be a whole number from 1 to 1,000."),
        ("top_k", String(), {"k": 1_001}, "bad-argument", "`k` of top_k must be a whole number from 1 to 1,000."),
        ("quantile", Float(), {"q": 1.1}, "bad-argument", "`q` of quantile must be a number from 0 to 1."),
        ("quantile", Float(), {"q": float("nan")}, "bad-argument", "`q` of quantile must be a number from 0 to 1."),
        ("quantile", Float(), {"q": "half"}, "bad-argument", "`q` of quantile must be a number from 0 to 1."),
    ],
)
def test_a_wrong_question_is_refused(name: str, kind: Type | None, params: Any, code: str, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        aggregate(name, kind, **params)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_a_refusal_names_what_the_aggregate_takes() -> None:
    with pytest.raises(DefinitionError) as caught:
        aggregate("variance", String())
    assert caught.value.hint == "variance takes integer, float or decimal."


def test_a_half_life_must_be_positive_whole_microseconds() -> None:
    for life in (0, -5, 1.5):
        with pytest.raises(DefinitionError, match="half_life"):
            aggregate("decayed_sum", Float(), half_life=life)


def test_an_aggregate_is_written_with_its_parameters() -> None:
    assert str(aggregate("last_n", Float(), n=3)) == "last_n(n=3)"
    assert aggregate("last_n", Float(), n=3).form == {"aggregate": "last_n", "input": "float", "n": 3}
    assert aggregate("count").form == {"aggregate": "count"}


def test_importing_the_aggregates_loads_no_heavy_library() -> None:
    code = (
        "import sys, headrace.aggregate; print([m for m in ('numpy', 'datasketches', 'pyspark') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
