from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.drift.interval import wilson
from headrace.errors import DataError
from headrace_demo.world.report import auc, caught_at, compare

SCORED = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=2, max_size=60).filter(
    lambda rows: len({stolen for _, stolen in rows}) == 2
)


@given(SCORED, st.floats(0, 0.99))
def test_there_are_never_more_false_alarms_than_allowed(rows, rate):
    score, stolen = [float(score) for score, _ in rows], [stolen for _, stolen in rows]
    found = caught_at(score, stolen, false_alarm_rate=rate)
    assert found.false_alarms <= rate * found.honest + 1e-6
    assert found.false_alarms == sum(s > found.threshold for s, bad in zip(score, stolen, strict=True) if not bad)
    assert found.caught == sum(s > found.threshold for s, bad in zip(score, stolen, strict=True) if bad)


@given(SCORED, st.floats(0, 0.99))
def test_no_lower_threshold_would_have_been_allowed(rows, rate):
    score, stolen = [float(score) for score, _ in rows], [stolen for _, stolen in rows]
    found = caught_at(score, stolen, false_alarm_rate=rate)
    honest = [s for s, bad in zip(score, stolen, strict=True) if not bad]
    assert sum(s >= found.threshold for s in honest) > math.floor(rate * len(honest))


@given(SCORED)
def test_the_auc_is_the_share_of_pairs_in_the_right_order(rows):
    bad = [score for score, stolen in rows if stolen]
    good = [score for score, stolen in rows if not stolen]
    pairs = sum((b > g) + (b == g) / 2 for b in bad for g in good) / (len(bad) * len(good))
    assert auc([float(score) for score, _ in rows], [stolen for _, stolen in rows]) == pytest.approx(pairs)


def test_a_rate_is_read_as_people_write_it():
    honest = np.arange(100.0)
    found = caught_at([*honest, 1_000.0], [False] * 100 + [True], false_alarm_rate=0.29)
    assert found.false_alarms == 29


def test_equal_scores_raise_no_alarm_at_the_threshold():
    found = caught_at([0.5] * 10, [False] * 8 + [True] * 2, false_alarm_rate=0.5)
    assert (found.caught, found.false_alarms, found.precision) == (0, 0, None)


def test_a_threshold_says_how_many_alarms_there_are_and_how_many_are_right():
    found = caught_at([1, 2, 3, 9, 8, 10], [False] * 4 + [True] * 2, false_alarm_rate=0.25)
    assert (found.alarms, found.recall) == (3, 1.0)
    assert found.precision == pytest.approx(2 / 3)
    assert found.interval == wilson(2, 2)


@pytest.mark.parametrize(
    ("hits", "tries", "low", "high"), [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (50, 100, 0.4038, 0.5962)]
)
def test_intervals_are_those_of_the_textbook(hits, tries, low, high):
    assert wilson(hits, tries) == pytest.approx((low, high), abs=1e-4)


def test_a_comparison_counts_what_only_one_score_caught():
    truth = [False] * 100 + [True] * 10
    fresh = [0.0] * 99 + [0.5] + [0.9] * 8 + [0.0] * 2
    stale = [0.0] * 99 + [0.5] + [0.0] * 7 + [0.9] * 2 + [0.0]
    made = compare(truth, fresh=fresh, stale=stale, false_alarm_rate=0.01)
    assert (made.fresh.caught.caught, made.stale.caught.caught) == (8, 2)
    assert (made.only_fresh, made.only_stale) == (7, 1)
    assert made.gained == pytest.approx(0.6)
    assert made.by_luck == pytest.approx(2 * 9 / 2**8)
    assert made.fresh.auc > made.stale.auc


def test_two_equal_scores_differ_by_luck_alone():
    made = compare([False, True], fresh=[0, 1], stale=[0, 1])
    assert (made.gained, made.by_luck) == (0, 1)


@pytest.mark.parametrize(
    ("score", "stolen", "message"),
    [
        ([1.0], [True, False], "one score and one truth"),
        ([1.0, 2.0], [True, True], "without both"),
        ([1.0, 2.0], [False, False], "without both"),
        ([1.0, math.nan], [True, False], "not a number"),
    ],
)
def test_what_cannot_be_judged_is_refused(score, stolen, message):
    for judge in (auc, lambda *given: caught_at(*given, false_alarm_rate=0.01)):
        with pytest.raises(DataError, match=message) as caught:
            judge(score, stolen)
        assert caught.value.code == "bad-argument"


@pytest.mark.parametrize("rate", [-0.1, 1.0, math.nan])
def test_a_rate_outside_its_range_is_refused(rate):
    with pytest.raises(DataError, match="from 0 to below 1"):
        caught_at([1, 2], [True, False], false_alarm_rate=rate)
