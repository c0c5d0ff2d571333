"""What is usual at an hour of a day."""

from __future__ import annotations

from datetime import date

import numpy as np

from headrace.clock import DAY, HOUR
from headrace.drift.season import CLIP, HOLIDAY, SUNDAY, fitted, slot_of
from tests.drift.worlds import START, WEEK, noise, usual


def slots(hours, zone="UTC", holidays=()):
    return [slot_of(START + at * HOUR, zone, holidays) for at in range(hours)]


def learnt(values, floor=1e-6, **calendar):
    return fitted(slots(len(values), **calendar), list(values), floor)


def test_the_hour_is_that_of_the_zone_even_when_clocks_change():
    summer, winter = (START + days * DAY for days in (180, 0))
    assert slot_of(winter, "Europe/Berlin").hour == 1
    assert slot_of(summer, "Europe/Berlin").hour == 2


def test_a_rhythm_of_days_and_weeks_is_learnt():
    hours = 4 * WEEK
    baseline = learnt(usual(hours) + noise(hours, 1, size=0.01)).baseline
    off = [baseline.at(slot)[0] - level for slot, level in zip(slots(WEEK), usual(WEEK), strict=True)]
    assert max(map(abs, off)) < 0.03
    assert abs(float(np.mean(off))) < 0.005


def test_weekdays_differ_only_from_three_weeks_on():
    values = usual(4 * WEEK)
    assert len(set(learnt(values[: 3 * WEEK - 24]).baseline.rows)) == 1
    assert len(set(learnt(values[: 3 * WEEK]).baseline.rows)) == 8


def test_a_slot_is_not_moved_by_one_wild_window():
    values = usual(4 * WEEK)
    wild = values.copy()
    wild[100] = 1_000.0
    plain, robust = learnt(values).baseline, learnt(wild).baseline
    off = [abs(plain.at(slot)[0] - robust.at(slot)[0]) for slot in slots(WEEK)]
    assert max(off) < 0.1


def test_a_slot_with_few_windows_has_about_the_scale_of_all():
    values = usual(WEEK) + noise(WEEK, 3)
    scales = [scale for row in learnt(values).baseline.scales for scale in row]
    assert max(scales) / min(scales) < 3


def test_a_series_that_never_moved_has_the_least_scale():
    fit = learnt(np.zeros(WEEK), floor=0.001)
    assert {scale for row in fit.baseline.scales for scale in row} == {0.001}
    assert not fit.residuals.any()


def test_a_slow_trend_is_left_over():
    fit = learnt(usual(4 * WEEK) + noise(4 * WEEK, 5, size=0.01))
    later = usual(8 * WEEK) + np.linspace(0, 0.2, 8 * WEEK)
    left = [
        (value - fit.baseline.at(slot)[0]) / fit.baseline.at(slot)[1]
        for slot, value in zip(slots(8 * WEEK), later, strict=True)
    ]
    assert np.mean(left[-WEEK:]) > CLIP > np.mean(left[:WEEK])


def test_holidays_are_like_sundays_until_three_were_seen():
    few = [date(2026, 1, 7), date(2026, 1, 14)]
    many = [*few, date(2026, 1, 21)]
    for holidays, own in ((few, False), (many, True)):
        at = slots(4 * WEEK, holidays=holidays)
        values = [9.0 if slot.day == HOLIDAY else 1.0 if slot.day == SUNDAY else 5.0 for slot in at]
        baseline = fitted(at, values, 0.1).baseline
        holiday, sunday = (baseline.at(at[0]._replace(day=day))[0] for day in (HOLIDAY, SUNDAY))
        assert (holiday > 6.0) is own
        assert sunday < 3.0
        assert own or holiday == sunday


def test_what_is_left_over_is_as_large_as_it_will_be_later():
    spreads = []
    for seed in range(10):
        values = usual(8 * WEEK) + noise(8 * WEEK, seed)
        fit = learnt(values[: 4 * WEEK])
        later = [
            (value - fit.baseline.at(slot)[0]) / fit.baseline.at(slot)[1]
            for slot, value in zip(slots(8 * WEEK)[4 * WEEK :], values[4 * WEEK :], strict=True)
        ]
        spreads.append(float(np.std(later) / np.std(fit.residuals)))
    assert 0.85 < float(np.mean(spreads)) < 1.15
