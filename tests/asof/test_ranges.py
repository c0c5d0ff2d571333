"""Range folds and ranks are what a walk through each range gives."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.aggregate.columns.range_folds import Tree
from headrace.aggregate.columns.ranges import RowRanges, ragged
from headrace.aggregate.columns.ranks import Ranks
from headrace.asof.timeline import Timeline

numbers = st.lists(st.integers(0, 20), max_size=60)


@st.composite
def ranged(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    drawn = draw(numbers)
    place = st.integers(0, len(drawn))
    return drawn, [(min(pair), max(pair)) for pair in draw(st.lists(st.tuples(place, place), max_size=20))]


@given(ranged())
def test_a_fold_merges_every_number_of_its_range_once(case: tuple[list[int], list[tuple[int, int]]]) -> None:
    drawn, ranges = case
    bits = np.array([1 << place for place in range(len(drawn))], dtype=object)
    low, high = (np.array([pair[end] for pair in ranges], dtype=np.int64) for end in (0, 1))
    (found,) = Tree((bits,), (0,), lambda a, b: (a[0] + b[0],)).fold(low, high)
    assert found.tolist() == [sum(1 << place for place in range(*pair)) for pair in ranges]


@given(ranged(), st.integers(0, 20))
def test_ranks_count_what_is_below(case: tuple[list[int], list[tuple[int, int]]], bound: int) -> None:
    drawn, ranges = case
    low, high = (np.array([pair[end] for pair in ranges], dtype=np.int64) for end in (0, 1))
    found = Ranks(np.array(drawn, dtype=np.int64), 21).below(low, high, np.full(len(low), bound))
    assert found.tolist() == [sum(number < bound for number in drawn[a:b]) for a, b in ranges]


@given(ranged(), st.integers(1, 4))
def test_the_kth_number_is_that_of_the_sorted_places_of_a_row(
    case: tuple[list[int], list[tuple[int, int]]], most: int
) -> None:
    drawn, ranges = case
    ranges = [pair for pair in ranges if pair[0] < pair[1]]
    # A row has up to `most` of the ranges; that they overlap does not matter here.
    start = np.array([*range(0, len(ranges), most), len(ranges)], dtype=np.int64)
    low, high = (np.array([pair[end] for pair in ranges], dtype=np.int64) for end in (0, 1))
    whole = [
        sorted(number for a, b in ranges[first:last] for number in drawn[a:b])
        for first, last in pairwise(start.tolist())
    ]
    k = np.array([len(each) // 2 for each in whole], dtype=np.int64)
    found = Ranks(np.array(drawn, dtype=np.int64), 21).kth(RowRanges(start, low, high), k)
    assert found.tolist() == [each[len(each) // 2] for each in whole]


def test_places_of_empty_ranges_are_none() -> None:
    places, start = ragged(np.array([5, 2]), np.array([5, 2]))
    assert (places.tolist(), start.tolist()) == ([], [0, 0, 0])


def test_events_are_in_the_order_of_key_time_and_id() -> None:
    import pyarrow as pa

    keys, times = np.array([1, 0, 0, 0]), np.array([5, 7, 7, 3])
    timeline = Timeline(keys, times, times, pa.array(["x", "b", "a", "z"]))
    assert timeline.order.tolist() == [3, 2, 1, 0]


def test_events_before_the_first_that_is_under_way_are_settled_stragglers_aside() -> None:
    keys, times = np.array([0] * 9 + [1]), np.array([*range(1, 10), 1])
    known = times.copy()
    known[1] = 99
    timeline = Timeline(keys, times, known)
    assert np.flatnonzero(timeline.straggles).tolist() == [1]
    assert timeline.settled(np.array([0, 0, 0, 1]), np.array([4, 100, 1, 4])).tolist() == [3, 9, 0, 10]
