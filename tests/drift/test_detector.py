"""Detectors over residuals, and thresholds that keep to a budget."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.clock import DAY, HOUR
from headrace.drift import Watching, WatchSettings
from headrace.drift import detector as detecting
from headrace.drift.calibration import Budget, beyond, choose_detector, peaks, resampled, too_short
from headrace.drift.detector import Detector, PageHinkley, River
from tests.budget import examples
from tests.drift.worlds import WEEK, errors

MONTHLY = Budget(1.0, HOUR, 7)
RIVER = ["adwin", "ddm", "hddm-a", "hddm-w"]
residuals = st.lists(st.floats(-5, 5), min_size=1, max_size=60)


def again(detector):
    return msgspec.json.decode(msgspec.json.encode(detector), type=Detector)


@given(residuals)
def test_page_hinkley_is_the_classic_sum_above_its_lowest(values):
    detector, total, lowest = PageHinkley(0.5, 1e9, upward=True), 0.0, 0.0
    for at, value in enumerate(values):
        detector.update(value, at)
        total += value - 0.5
        lowest = min(lowest, total)
        assert detector.high == pytest.approx(total - lowest, abs=1e-9)


def test_page_hinkley_sees_both_directions_unless_only_a_rise_counts():
    both, upward = PageHinkley(0.5, 5.0), PageHinkley(0.5, 5.0, upward=True)
    assert [both.update(-5.0, at) for at in range(2)] == [False, True]
    assert [upward.update(-5.0, at) for at in range(2)] == [False, False]
    assert both.since == 0


@pytest.mark.parametrize("name", RIVER)
def test_a_detector_of_river_goes_on_after_a_restart(name, monkeypatch):
    monkeypatch.setattr(detecting, "HELD", 40)
    chance = np.random.default_rng(3)
    values = [*chance.normal(0, 1, 150).tolist(), *chance.normal(2, 1, 60).tolist()]
    parameter = 3.0 if name == "ddm" else 0.01
    whole, restarted = River(name, parameter), River(name, parameter)
    for at, value in enumerate(values):
        restarted = again(restarted) if at % 7 == 0 else restarted
        assert whole.update(value, at) == restarted.update(value, at)
        assert len(whole.residuals) <= 81


@pytest.mark.parametrize("name", RIVER)
def test_a_detector_of_river_finds_a_change(name):
    noise = np.random.default_rng(3).normal(0, 1, 2 * WEEK)
    detector = choose_detector(name, noise, MONTHLY, allowance=0.5, upward=False).detector
    found = [at for at in range(600) if detector.update(float(noise[at % len(noise)]) + 4.0 * (at >= 400), at)]
    assert [at for at in found if at >= 400]
    assert len([at for at in found if at < 400]) <= 2


@examples(1 / 2)
@given(st.integers(0, 10_000))
def test_peaks_are_what_a_detector_reaches(seed):
    steps = np.random.default_rng(seed).normal(-0.3, 1.0, (2, 50))
    found: list[float] = []
    for run in steps:
        detector, highest = PageHinkley(0.0, 1e9, upward=True), 0.0
        for at, value in enumerate(run):
            detector.update(float(value), at)
            if detector.high == 0.0 and highest > 0.0:
                found, highest = [*found, highest], 0.0
            highest = max(highest, detector.high)
        found += [highest] if highest > 0.0 else []
    assert sorted(found) == pytest.approx(sorted(peaks(steps)))


def test_a_smaller_budget_has_a_higher_threshold_beyond_what_was_seen():
    highest = np.sort(np.random.default_rng(1).exponential(2.0, 5_000))[::-1]
    thresholds = [beyond(highest, allowed) for allowed in (500.0, 100.0, 10.0, 1.0, 0.1)]
    assert thresholds == sorted(thresholds)
    assert thresholds[-1] == pytest.approx(2.0 * np.log(5_000 / 0.1), rel=0.2)


def test_resampling_is_the_same_every_time_and_keeps_hours_together():
    values = np.sin(np.arange(WEEK) / 8)
    assert (resampled(values, 2_000, MONTHLY) == resampled(values, 2_000, MONTHLY)).all()
    run = resampled(values, 20_000, MONTHLY)[0]
    assert np.corrcoef(run[:-1], run[1:])[0, 1] > 0.9


def test_a_period_that_is_too_short_says_so():
    assert too_short(49, 30 * DAY) is not None
    assert too_short(100, 2 * DAY) is not None
    assert too_short(50, 3 * DAY) is None


def false_alarms(budget, *, seeds, weeks=9):
    """Alarms a month on fresh noise of the same process, with nothing too small to be told."""
    found = 0
    given = WatchSettings(reference=4 * WEEK, false_alarms_per_month=budget, minimum={"error": 1e-3})
    for seed in range(seeds):
        watching = Watching("model", 1, {}, given)
        watching.feed(errors((4 + weeks) * WEEK, seed))
        found += len(watching.incidents)
    return found / (seeds * weeks * WEEK / (30 * 24))


def test_false_alarms_keep_to_their_budget_on_fresh_seasonal_noise():
    assert false_alarms(1.0, seeds=12) <= 1.0


def test_a_larger_budget_is_made_use_of():
    # Shows that the test above can fail.
    assert false_alarms(30.0, seeds=3, weeks=4) > 1.0
