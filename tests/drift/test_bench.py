"""The drift bench counts what it says it counts."""

from __future__ import annotations

from bench.drift.competitors import always, never
from bench.drift.score import Score
from bench.drift.streams import MONTH, STREAMS, WARM, Change, Stream, stream


def scored(alarms, *changes, hours=WARM + 4 * MONTH, late=0):
    score = Score()
    score.add(Stream("some", [0.0] * hours, [], [], changes, late=late), alarms)
    return score


def test_the_first_alarm_after_a_change_has_found_it_and_the_next_repeats_it():
    score = scored([WARM + 105, WARM + 110], Change(WARM + 100))
    assert (score.delays, score.repeats, score.false) == ([5], 1, 0)


def test_an_alarm_at_any_other_time_is_false():
    score = scored([5, WARM + 99, WARM + 500], Change(WARM + 100))
    assert (score.delays, score.false) == ([], 2)
    assert score.as_json()["missed"] == 1.0


def test_who_tells_that_it_is_over_is_not_wrong_and_need_not():
    change = Change(WARM + 100, required=False)
    assert scored([WARM + 100], change).false == 0
    assert scored([], change).required == 0


def test_the_dummies_are_as_bad_as_can_be():
    calm = Stream("some", [0.0] * (WARM + 4 * MONTH), [], [])
    for dummy, rate in ((always, MONTH), (never, 0)):
        score = Score()
        score.add(calm, dummy(calm))
        assert score.as_json()["false_per_month"] == rate


def test_a_stream_is_the_same_for_the_same_seed_and_changes_where_it_says():
    name = "abrupt error"
    one, two = stream(name, 1, months=5), stream(name, 1, months=5)
    assert one.values == two.values != stream(name, 2, months=5).values
    (change,) = one.changes
    before, after = one.values[change.at - 168 : change.at], one.values[change.at : change.at + 168]
    assert 1.3 < sum(after) / sum(before) < 1.7
    assert "seasonal error" in STREAMS
