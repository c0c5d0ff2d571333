"""A model, watched from its reference period on: what is told, what is not, and that it is always the same."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from headrace.clock import HOUR
from headrace.drift import DriftWindow, Statistics, Watching, WatchSettings
from headrace.errors import DataError
from tests.budget import examples
from tests.drift.worlds import QUICK, REFERENCES, START, WEEK, amounts, errors, hour, noise, together, usual

CHANGE = 3 * WEEK
HOURS = 4 * WEEK


def watched(windows, given=QUICK):
    watching = Watching("fraud", 3, REFERENCES, given)
    watching.feed(windows)
    return watching


def only(watching):
    (incident,) = watching.incidents
    return incident


def test_nothing_is_told_of_a_rhythm():
    assert watched(together(amounts(6 * WEEK), errors(6 * WEEK))).incidents == []


def test_a_change_is_told_with_its_beginning_and_its_size():
    incident = only(watched(amounts(HOURS, moved=CHANGE)))
    assert incident.kind == "inputs"
    assert abs(incident.since - hour(CHANGE)[0]) <= 2 * HOUR
    assert incident.at - incident.since <= 12 * HOUR
    mean = next(each for each in incident.alarms if each.series == "mean of amount")
    assert mean.effect == pytest.approx(0.8, abs=0.15)
    assert mean.now - mean.before == pytest.approx(0.8, abs=0.2)
    assert {each.series for each in incident.alarms} == {"mean of amount", "psi of amount"}


def test_a_field_that_turns_null_is_a_matter_of_data_quality():
    incident = only(watched(amounts(HOURS, nulls=CHANGE)))
    assert (incident.kind, incident.moved.series) == ("data quality", "null rate of amount")


def test_new_categories_are_a_matter_of_data_quality():
    incident = only(watched(amounts(HOURS, new=CHANGE)))
    assert (incident.kind, incident.moved.series) == ("data quality", "new share of country")


def test_an_error_that_moves_under_stable_inputs_is_the_concepts():
    incident = only(watched(together(amounts(HOURS), errors(HOURS, moved=CHANGE))))
    assert (incident.kind, incident.error_moved) == ("concept", True)


def test_inputs_that_move_without_the_error_say_so():
    incident = only(watched(together(amounts(HOURS, moved=CHANGE), errors(HOURS))))
    assert (incident.kind, incident.error_moved) == ("inputs", False)
    assert "did not move" in incident.says


def test_whether_the_error_moved_is_open_until_labels_come():
    given = msgspec.structs.replace(QUICK, labels_after=72 * HOUR)
    inputs, outputs = amounts(HOURS, moved=CHANGE), errors(HOURS, moved=CHANGE)
    watching = watched(inputs, given)
    assert only(watching).error_moved is None
    watching.feed(outputs)
    assert only(watching).error_moved is True


def test_a_change_that_is_too_small_is_not_told():
    given = msgspec.structs.replace(QUICK, minimum={"error": 1.0})
    assert watched(errors(HOURS, moved=CHANGE), given).incidents == []
    assert len(watched(errors(HOURS, moved=CHANGE)).incidents) == 1


def test_a_slow_drift_is_told():
    windows = errors(10 * WEEK)
    slow = [
        DriftWindow(each.start, each.end, measures={"log_loss": (each.measures["log_loss"][0] + at * 1e-4, 0.01)})
        for at, each in enumerate(windows)
    ]
    told = watched(slow, msgspec.structs.replace(QUICK, reference=4 * WEEK)).incidents
    assert told[-1].recovered is None
    assert told[-1].moved.effect > 0


def test_one_wild_window_is_not_told():
    windows = errors(HOURS)
    windows[CHANGE] = DriftWindow(*hour(CHANGE), measures={"log_loss": (50.0, 0.01)})
    assert watched(windows).incidents == []


def test_a_change_that_stays_is_one_incident():
    assert len(watched(errors(20 * WEEK, moved=CHANGE)).incidents) == 1


def test_a_change_that_goes_away_has_recovered_and_the_next_is_another_incident():
    windows = errors(8 * WEEK, moved=CHANGE)[: CHANGE + 100] + errors(8 * WEEK)[CHANGE + 100 : 5 * WEEK]
    watching = watched(windows)
    first = only(watching)
    assert first.recovered is not None
    assert first.state == "open"
    watching.feed(errors(8 * WEEK, moved=5 * WEEK)[5 * WEEK :])
    assert [each.recovered is None for each in watching.incidents] == [False, True]


def test_after_closing_the_new_level_is_the_usual_one():
    windows = errors(8 * WEEK, moved=CHANGE)
    watching = watched(windows[: CHANGE + 100])
    watching.acknowledge(only(watching).id, who="kim", why="looking", when=1)
    watching.close(only(watching).id, who="kim", why="new prices", when=2)
    assert watching.feed(windows[CHANGE + 100 :]) == []
    assert only(watching).state == "closed"
    back = errors(12 * WEEK)[8 * WEEK :]
    (alarm,) = watching.feed(back)
    assert alarm.effect < 0, "the old level is a change now"


def test_weeks_after_closing_what_is_usual_is_learnt_anew():
    windows = errors(8 * WEEK, moved=CHANGE)
    watching = watched(windows[: CHANGE + 100])
    before = watching.calibrations["log_loss"].level
    watching.close(only(watching).id, who="kim", why="new prices", when=2)
    watching.feed(windows[CHANGE + 100 : CHANGE + 100 + 2 * WEEK - 1])
    assert watching.calibrations["log_loss"].level == before
    watching.feed(windows[CHANGE + 100 + 2 * WEEK - 1 :])
    assert watching.calibrations["log_loss"].level == pytest.approx(before + 0.2, abs=0.03)


def test_segments_that_explain_a_change_are_named():
    incident = only(watched(amounts(HOURS, moved=CHANGE, segments=True)))
    mean = next(each for each in incident.alarms if each.series == "mean of amount")
    assert [name for name, _ in mean.segments] == ["country=DE", "country=FR"]
    assert mean.segments[0][1] == pytest.approx(0.8, abs=0.3)
    assert not any("[" in each.series for each in incident.alarms)


def test_a_reference_period_that_is_too_short_is_said():
    watching = watched(errors(WEEK), WatchSettings(reference=40))
    assert "50 are needed" in watching.calibrations["log_loss"].reason
    assert watching.incidents == []


def test_a_series_that_comes_later_is_not_watched_and_says_why():
    windows = [*errors(2 * WEEK), DriftWindow(*hour(2 * WEEK), measures={"brier": (0.1, 0.01)})]
    reason = watched(windows).calibrations["brier"].reason
    assert reason == "it was not there in the reference period"


def test_the_budget_is_shared_by_all_series():
    held = watched(together(amounts(2 * WEEK), errors(2 * WEEK))).calibrations
    assert sum(each.allowed for each in held.values()) == pytest.approx(0.5)
    assert held["log_loss"].allowed == pytest.approx(0.25)
    assert all(each.expected <= each.allowed for each in held.values())


def test_errors_alone_have_the_whole_budget():
    assert watched(errors(2 * WEEK)).calibrations["log_loss"].allowed == 0.5


def test_a_model_without_labels_may_give_all_of_it_to_its_inputs():
    given = msgspec.structs.replace(QUICK, error_share=0.0)
    held = watched(together(amounts(2 * WEEK), errors(2 * WEEK)), given).calibrations
    assert held["log_loss"].reason == "no part of the budget is for it"
    assert held["mean of amount"].allowed == pytest.approx(0.5 / 6, rel=1e-3)


def test_a_series_that_was_off_all_the_time_is_marked():
    held = watched(amounts(2 * WEEK, moved=0)).calibrations
    assert held["mean of amount"].apart
    assert not watched(amounts(2 * WEEK)).calibrations["mean of amount"].apart


def test_the_reference_period_can_be_two_moments():
    given = WatchSettings(reference=(START + WEEK * HOUR, START + 3 * WEEK * HOUR), false_alarms_per_month=0.5)
    watching = watched(errors(5 * WEEK, moved=4 * WEEK), given)
    assert watching.calibrations["log_loss"].windows == 2 * WEEK
    assert abs(only(watching).since - hour(4 * WEEK)[0]) <= 3 * HOUR


def test_empty_windows_and_gaps_change_nothing_of_what_is_known():
    windows = amounts(HOURS, moved=CHANGE)
    for at in range(100, CHANGE, 50):
        windows[at] = DriftWindow(*hour(at), columns={"amount": Statistics(), "country": Statistics()})
    del windows[200:210]
    assert only(watched(windows)).kind == "inputs"


def test_windows_that_were_fed_before_are_passed_over():
    windows = together(amounts(HOURS, moved=CHANGE), errors(HOURS, moved=CHANGE))
    once, twice = watched(windows), watched(windows)
    twice.feed(windows[-50:])
    assert twice.written() == once.written()


def test_a_window_that_overlaps_another_is_refused():
    watching = watched(errors(10))
    with pytest.raises(DataError) as error:
        watching.feed([DriftWindow(START + 9 * HOUR + 1, START + 10 * HOUR + 1, measures={"log_loss": (0.4, 0.1)})])
    assert error.value.code == "bad-window"
    with pytest.raises(DataError):
        watching.feed([DriftWindow(START + 20 * HOUR, START + 20 * HOUR)])


def test_what_cannot_be_read_is_said():
    with pytest.raises(DataError) as error:
        Watching.read(b'{"model": 1}')
    assert error.value.code == "wrong-reference"


@pytest.mark.parametrize(
    "wrong",
    [
        {"detector": "magic"},
        {"zone": "Mars/Base"},
        {"false_alarms_per_month": 0.0},
        {"error_share": 2.0},
        {"minimum": {"mean": 0.0}},
        {"length": 0},
        {"reference": (5, 5)},
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(DataError):
        WatchSettings(**wrong)


@dataclass
class Told:
    """A story that has everything in it, and how it ends when it is fed in one go."""

    windows: list[DriftWindow]
    end: bytes


@pytest.fixture(scope="module")
def story():
    windows = together(amounts(HOURS, moved=CHANGE), errors(HOURS, moved=CHANGE + 30))
    return Told(windows, watched(windows).written())


@examples(1 / 10, quiet=[HealthCheck.function_scoped_fixture])
@given(splits=st.lists(st.integers(0, HOURS), max_size=5))
def test_batches_and_restarts_change_nothing(story, splits):
    ends = [0, *sorted(splits), HOURS]
    watching = Watching("fraud", 3, REFERENCES, QUICK)
    for first, last in itertools.pairwise(ends):
        watching = Watching.read(watching.written())
        watching.feed(story.windows[first:last])
    assert watching.written() == story.end


@examples(1 / 25, quiet=[HealthCheck.function_scoped_fixture])
@given(seed=st.randoms(use_true_random=False))
def test_statistics_that_were_merged_in_another_order_raise_the_same_alarms(story, seed):
    windows = [
        DriftWindow(
            each.start, each.end, {name: _merged(held, seed) for name, held in each.columns.items()}, each.measures
        )
        for each in story.windows
    ]
    assert watched(windows).incidents == watched(story.windows).incidents


def _merged(held, chance):
    """The same statistics from parts: digits at the end of the mean differ."""
    return msgspec.structs.replace(held, mean=held.mean * (1 + chance.choice([-1, 0, 1]) * 2**-51))


@examples(1 / 20, quiet=[HealthCheck.function_scoped_fixture])
@given(late=st.lists(st.integers(0, 48), min_size=HOURS, max_size=HOURS))
def test_it_does_not_matter_when_labels_come_as_long_as_they_come_in_time(story, late):
    given = msgspec.structs.replace(QUICK, labels_after=48 * HOUR)
    order: list[tuple[int, int, DriftWindow]] = []
    free = 0
    for at, each in enumerate(story.windows):
        free = max(free, at + late[at])
        order.append((at, 0, DriftWindow(each.start, each.end, each.columns)))
        order.append((free, 1, DriftWindow(each.start, each.end, measures=each.measures)))
    fed = [window for *_, window in sorted(order, key=lambda each: each[:2])]
    assert watched(fed, given).incidents == watched(story.windows, given).incidents


def test_the_state_has_no_number_that_json_does_not_know(story):
    assert b"NaN" not in story.end
    assert Watching.read(story.end).written() == story.end


def test_the_world_of_these_tests_has_a_rhythm_that_is_larger_than_its_noise():
    # Shows that the first test can fail.
    assert usual(WEEK).std() > 2 * noise(WEEK, 1).std()
