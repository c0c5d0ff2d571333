"""Parts of a window merge to what one pass would have counted; a manifest's column becomes a reference."""

from __future__ import annotations

import functools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.drift import Reference, Statistics, counted, reference_from, reference_of, references_of
from headrace.errors import DataError
from tests.drift.worlds import AMOUNT, COUNTRY

numbers = st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(math.nan)), max_size=30)
texts = st.lists(st.one_of(st.none(), st.sampled_from(["DE", "FR", "PL"])), max_size=30)


def alike(a, b):
    exact = [(each.count, each.nulls, each.counts, each.texts, each.other) for each in (a, b)]
    # Rounding is of the size of what was added up, not of what is left of it.
    size = max(1.0, abs(a.mean), math.sqrt(a.m2))
    return (
        exact[0] == exact[1]
        and math.isclose(a.mean, b.mean, abs_tol=1e-9 * size, rel_tol=1e-9)
        and math.isclose(a.m2, b.m2, rel_tol=1e-6, abs_tol=1e-6 * size**2)
    )


@given(st.lists(numbers, min_size=1, max_size=5))
def test_parts_of_a_number_merge_to_one_pass(parts):
    merged = functools.reduce(Statistics.merge, [counted(part, AMOUNT) for part in parts])
    whole = counted([value for part in parts for value in part], AMOUNT)
    assert merged.count == whole.count
    if merged.count:
        assert alike(merged, whole)


@given(st.lists(texts, min_size=1, max_size=5))
def test_parts_of_a_text_merge_to_one_pass(parts):
    merged = functools.reduce(Statistics.merge, [counted(part, COUNTRY) for part in parts])
    whole = counted([value for part in parts for value in part], COUNTRY)
    assert merged.count == whole.count
    if merged.count:
        assert alike(merged, whole)


@given(numbers, numbers, numbers)
def test_merging_is_associative_and_takes_any_order(a, b, c):
    one, two, three = (counted(part, AMOUNT) for part in (a, b, c))
    assert alike(one.merge(two).merge(three), one.merge(two.merge(three)))
    assert one.merge(two).count == 0 or one.merge(two) == two.merge(one), "to the last digit"


def test_nothing_merges_with_anything():
    some = counted([1.0], AMOUNT)
    assert Statistics().merge(some) == some == some.merge(Statistics())


def test_parts_of_different_feature_versions_do_not_merge():
    other = Reference(rows=1, null_rate=0.0, mean=0.0, stddev=1.0, edges=(0.0, 1.0, 2.0, 3.0, 9.0), counts=(0,) * 6)
    with pytest.raises(DataError) as error:
        counted([1.0], AMOUNT).merge(counted([1.0], other))
    assert error.value.code == "wrong-reference"


@given(st.floats(-5, 5))
def test_a_value_is_in_the_bin_between_its_edges(value):
    place = AMOUNT.bin_of(value)
    ends = [-math.inf, *AMOUNT.edges, math.inf]
    assert ends[place] <= value <= ends[place + 1]


def test_a_manifest_of_one_value_has_it_in_the_first_bin():
    histogram = {"edges": [3.0] * 21, "counts": [7] + [0] * 19}
    told = {"nulls": 0, "null_rate": 0.0, "mean": 3.0, "stddev": 0.0, "histogram": histogram}
    reference = reference_of(told)
    assert counted([3.0] * 7 + [2.0, 4.0], reference).counts == (1, 7, *[0] * 19, 1)
    assert reference.counts == (0, 7, *[0] * 20)


def test_moments_are_microseconds():
    edges = [f"2026-01-{day:02}T00:00:00Z" for day in range(1, 4)]
    told = {
        "nulls": 0,
        "null_rate": 0.0,
        "mean": edges[1],
        "stddev": 5.0,
        "histogram": {"edges": edges, "counts": [1, 2]},
    }
    reference = reference_of(told)
    assert reference.edges == (1767225600e6, 1767312000e6, 1767398400e6)
    assert reference.mean == 1767312000e6


def test_categories_beyond_the_named_ones_are_known_from_the_rows_of_the_set():
    told = {
        "city": {"nulls": 0, "null_rate": 0.0, "distinct": 99, "top": [{"value": "Ulm", "rows": 5}]},
        "amount": {
            "nulls": 2,
            "null_rate": 0.1,
            "mean": 0.5,
            "stddev": 0.2,
            "histogram": {"edges": [0, 1], "counts": [18]},
        },
        "tags": {"nulls": 0, "null_rate": 0.0, "distinct": 3},
    }
    made = references_of(told)
    assert list(made) == ["city", "amount"]
    assert (made["city"].rows, made["city"].other) == (20, 15)


@pytest.mark.parametrize(
    "told",
    [
        {"histogram": {"edges": [0, 1], "counts": [1, 2]}},
        {"histogram": {"edges": [1, 0], "counts": [1]}},
        {"histogram": {"edges": ["soon", 1], "counts": [1]}},
        {"top": [{"rows": 3}]},
    ],
)
def test_a_reference_that_says_nonsense_is_refused(told):
    with pytest.raises(DataError) as error:
        reference_of(told)
    assert error.value.code == "wrong-reference"


def test_windows_can_be_a_reference_themselves():
    held = counted([0.1, 0.4, None, 0.7], AMOUNT)
    made = reference_from(held, AMOUNT.edges)
    assert (made.rows, made.null_rate, made.counts) == (4, 0.25, held.counts)
    assert made.mean == pytest.approx(0.4)
    assert made.stddev == pytest.approx(0.3)
    assert reference_from(Statistics()).null_rate == 0.0
