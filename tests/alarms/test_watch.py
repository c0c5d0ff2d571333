"""The alarms: silent on streams that wobble as streams do, quick on a jump, over when it is over."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headrace.alarms import PartitionCounts, StreamWatch
from headrace.alarms.rate import RateWatch, Rule
from headrace.clock import HOUR, MINUTE, SECOND

BUCKET = Rule().bucket
DAY_OF_BUCKETS = 8_640
START = 1_767_225_600 * SECOND


def beta(chance, mean, wobble):
    """A rate that wobbles around its mean: with a standard deviation of `wobble` times the mean."""
    if mean == 0:
        return 0.0
    strength = max((1 - mean) / (mean * wobble**2) - 1, 1)
    return chance.beta(mean * strength, (1 - mean) * strength)


def test_a_day_of_ordinary_wobble_raises_no_alarm():
    """Fifteen partitions for a day each: rates from nothing to a fifth, few to many records, drifting and wobbling."""
    chance = np.random.default_rng(11)
    alarms = 0
    for mean, volume in itertools.product((0.0, 0.001, 0.01, 0.05, 0.2), (10, 100, 1_000)):
        watch, known = RateWatch(["late"]), set()
        for number in range(DAY_OF_BUCKETS):
            drift = 1 + 0.5 * np.sin(2 * np.pi * number / DAY_OF_BUCKETS)
            read = int(chance.poisson(volume))
            bad = int(chance.binomial(read, min(1.0, beta(chance, mean * drift, 0.4))))
            watch.feed(number * BUCKET, read, {"late": bad})
            known |= {jump.since for jump in watch.jumps()}
        alarms += len(known)
    assert alarms == 0


@pytest.mark.parametrize(("usual", "jumped"), [(0.0, 0.05), (0.005, 0.05), (0.05, 0.2), (0.2, 0.6)])
@pytest.mark.parametrize(("volume", "buckets"), [(50, 18), (1_000, 6)])
def test_a_jump_is_noticed_soon_and_names_both_rates(usual, jumped, volume, buckets):
    chance = np.random.default_rng(5)
    noticed = []
    for _ in range(20):
        watch = RateWatch(["late"])
        for number in range(120):
            watch.feed(number * BUCKET, volume, {"late": int(chance.binomial(volume, usual))})
        for number in range(120, 120 + buckets):
            watch.feed(number * BUCKET, volume, {"late": int(chance.binomial(volume, jumped))})
            if watch.jumps():
                break
        noticed += watch.jumps()
    assert len(noticed) == 20
    assert all(jump.usual < jump.rate and jump.since >= 120 * BUCKET for jump in noticed)
    assert np.mean([jump.usual for jump in noticed]) == pytest.approx(usual, abs=0.01)


def steady(watch, first, last, bad, read=1_000):
    for number in range(first, last):
        watch.feed(number * BUCKET, read, {"late": bad})


def test_an_alarm_ends_when_the_rate_is_back_and_not_before():
    watch = RateWatch(["late"])
    steady(watch, 0, 100, 5)
    steady(watch, 100, 130, 200)
    assert len(watch.jumps()) == 1
    steady(watch, 130, 132, 5)
    assert len(watch.jumps()) == 1, "two quiet buckets may be chance"
    steady(watch, 132, 134, 5)
    assert watch.jumps() == []


def test_after_an_alarm_there_is_quiet_for_a_while_and_then_the_old_usual_still_holds():
    watch = RateWatch(["late"])
    steady(watch, 0, 100, 5)
    steady(watch, 100, 130, 200)
    steady(watch, 130, 140, 5)
    steady(watch, 140, 150, 200)
    assert watch.jumps() == [], "within the cool-down"
    steady(watch, 150, 200, 5)
    steady(watch, 200, 203, 200)
    (jump,) = watch.jumps()
    assert jump.usual < 0.03


def test_a_rate_that_stays_becomes_the_usual():
    watch = RateWatch(["late"])
    steady(watch, 0, 100, 5)
    steady(watch, 100, 110, 200)
    assert len(watch.jumps()) == 1
    steady(watch, 110, 470, 200)
    assert watch.jumps() == []
    steady(watch, 470, 900, 200)
    assert watch.jumps() == []


@pytest.mark.parametrize(
    ("past", "read", "bad", "why"),
    [
        (1_000, 99, 99, "too few records"),
        (1_000, 2_000, 9, "too few late ones"),
        (9, 1_000, 900, "too little past"),
        (1_000, 100_000, 1_100, "a small difference, however sure"),
    ],
)
def test_little_evidence_or_a_small_effect_is_no_alarm(past, read, bad, why):
    watch = RateWatch(["late"])
    for number in range(100):
        watch.feed(number * BUCKET, past, {"late": past // 500})
    watch.feed(110 * BUCKET, read, {"late": bad})
    assert watch.jumps() == [], why


def test_half_as_much_again_is_no_alarm_however_sure():
    watch = RateWatch(["late"])
    steady(watch, 0, 100, 200)
    steady(watch, 100, 130, 300)
    assert watch.jumps() == []


def test_late_and_future_are_watched_apart():
    watch = RateWatch(["late", "future"])
    for number in range(100):
        watch.feed(number * BUCKET, 1_000, {"late": 300, "future": 0})
    watch.feed(101 * BUCKET, 1_000, {"late": 300, "future": 300})
    assert [jump.kind for jump in watch.jumps()] == ["future"]


def test_what_is_remembered_is_bounded():
    watch = RateWatch(["late"])
    for number in range(5_000):
        watch.feed(number * BUCKET, 1, {})
    assert len(watch._buckets) <= Rule().past + Rule().recent


# a stream


def seen(partition, at, read=1_000, late=0, future=0):
    return PartitionCounts(partition, read, late, future, first=at, last=at, least=at, greatest=at)


def test_a_partition_is_compared_with_itself_and_not_with_its_neighbour():
    watch = StreamWatch("payments")
    for number in range(100):
        at = START + number * BUCKET
        watch.batch([seen(0, at, late=300), seen(1, at, late=0)])
    watch.batch([seen(0, START + 100 * BUCKET, late=300), seen(1, START + 100 * BUCKET, late=300)])
    (alarm,) = watch.alarms()
    assert (alarm.stream, alarm.partition, alarm.kind, alarm.usual) == ("payments", 1, "late", 0.0)
    assert alarm.since == START + 100 * BUCKET
    assert alarm.status().rate == 0.05


@pytest.mark.parametrize(
    ("first", "second", "by"),
    [
        ((10, 20, 10, 20), (19, 30, 19, 30), 1),
        ((10, 20, 10, 20), (20, 25, 20, 40), 15),
        ((10, 20, 10, 20), (30, 40, 21, 40), 9),
        ((10, 20, 10, 20), (20, 20, 20, 20), 0),
    ],
)
def test_arrival_times_that_go_back_are_an_alarm_between_batches_and_within_one(first, second, by):
    watch = StreamWatch("payments")
    watch.batch([PartitionCounts(0, 5, 0, 0, *first)])
    watch.batch([PartitionCounts(0, 5, 0, 0, *second), PartitionCounts(1, 5, 0, 0, *first)])
    found = watch.alarms()
    assert [alarm.kind for alarm in found] == (["arrival_went_back"] if by else [])
    assert [alarm.partition for alarm in found] == ([0] if by else [])


def test_a_step_back_is_remembered_for_an_hour():
    watch = StreamWatch("payments")
    watch.batch([seen(0, START), seen(0, START - SECOND)])
    watch.batch([seen(0, START + HOUR)])
    assert len(watch.alarms()) == 1
    watch.batch([seen(0, START + HOUR + MINUTE)])
    assert watch.alarms() == []
