"""Every row of the window table, against a brute-force reading of it: walk the r-tiles and test each start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.clock import DAY, HOUR, MINUTE, SECOND
from headrace.errors import DefinitionError
from tests.streams import BASE

# Boundaries are where windows go wrong: most moments and distances lie on one, or a microsecond beside it.
jitter = st.sampled_from([-1, 0, 1])
edges = st.sampled_from([step * 5 * MINUTE for step in (-25, -24, -14, -13, -12, -11, -4, -3, -2, -1, 0, 1, 2)])
moments = st.one_of(st.integers(BASE - 2 * DAY, BASE + 2 * DAY), st.builds(lambda a, b: BASE + a + b, edges, jitter))
near = st.one_of(st.integers(-3 * HOUR, 3 * HOUR), st.builds(lambda a, b: a + b, edges, jitter))


def counts(window, event_time, t):
    low, high = window.span(t)
    return low <= event_time < high


def tile(event_time, r):
    return event_time // r * r


@given(t=moments, distance=near)
def test_a_trailing_window_holds_the_tiles_from_size_before_now_to_now(t, distance):
    window, r, size = hr.trailing("1h", resolution="5m"), 5 * MINUTE, HOUR
    event = t + distance
    assert counts(window, event, t) == (tile(t, r) - size <= tile(event, r) <= tile(t, r))


@given(t=moments, distance=near)
def test_an_exact_window_holds_the_events_of_exactly_its_size(t, distance):
    window = hr.trailing("1h", resolution="exact")
    assert counts(window, t + distance, t) == (-HOUR <= distance <= 0)


@given(t=moments, distance=near)
def test_a_tumbling_window_holds_the_current_bucket_up_to_now(t, distance):
    window, r, size = hr.tumbling("1h", resolution="5m"), 5 * MINUTE, HOUR
    event = t + distance
    assert counts(window, event, t) == (t // size * size <= tile(event, r) <= tile(t, r))


@given(t=moments, distance=near)
def test_the_previous_bucket_is_the_whole_one_before(t, distance):
    event = t + distance
    assert counts(hr.tumbling("1h", previous=True), event, t) == (event // HOUR == t // HOUR - 1)


@given(t=moments, distance=near)
def test_a_hopping_window_holds_the_last_elapsed_hop(t, distance):
    event, end = t + distance, t // (15 * MINUTE) * 15 * MINUTE
    assert counts(hr.hopping("1h", every="15m"), event, t) == (end - HOUR <= tile(event, 15 * MINUTE) < end)


@given(t=moments, distance=near)
def test_a_session_is_looked_for_in_its_longest_length_of_tiles(t, distance):
    window, r = hr.session(gap="10m", max_length="1h", resolution="5m"), 5 * MINUTE
    event = t + distance
    assert counts(window, event, t) == (tile(t, r) - HOUR <= tile(event, r) <= tile(t, r))


@given(t=moments, distance=st.integers(-100 * 365 * DAY, 2 * DAY))
def test_a_lifetime_holds_everything_up_to_the_tile_of_now(t, distance):
    event = t + distance
    assert counts(hr.lifetime(resolution="1h"), event, t) == (tile(event, HOUR) <= tile(t, HOUR))


zones = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/Sao_Paulo", "Australia/Lord_Howe"])
years = st.integers(
    int(datetime(2015, 1, 1, tzinfo=UTC).timestamp()), int(datetime(2027, 1, 1, tzinfo=UTC).timestamp())
)


def local(micros, zone):
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).astimezone(ZoneInfo(zone))


def bucket(moment, unit):
    if unit == "month":
        return (moment.year, moment.month)
    return moment.date() if unit == "day" else moment.isocalendar()[:2]


@given(seconds=years, quarters=st.integers(-4 * 24 * 70, 0), zone=zones, unit=st.sampled_from(["day", "week", "month"]))
def test_a_calendar_bucket_is_the_local_one_whatever_the_clocks_do(seconds, quarters, zone, unit):
    t = seconds * SECOND
    event = t // (15 * MINUTE) * 15 * MINUTE + quarters * 15 * MINUTE
    same = bucket(local(event, zone), unit) == bucket(local(t, zone), unit)
    assert counts(hr.calendar(unit, timezone=zone), event, t) == same


@given(seconds=years, quarters=st.integers(-4 * 24 * 70, 0), zone=zones, unit=st.sampled_from(["day", "week", "month"]))
def test_the_previous_calendar_bucket_ends_where_the_current_begins(seconds, quarters, zone, unit):
    t = seconds * SECOND
    event = t // (15 * MINUTE) * 15 * MINUTE + quarters * 15 * MINUTE
    current, previous = hr.calendar(unit, timezone=zone), hr.calendar(unit, timezone=zone, previous=True)
    assert previous.span(t)[1] == current.span(t)[0]
    before = bucket(local(current.span(t)[0] - 1, zone), unit)
    assert counts(previous, event, t) == (bucket(local(event, zone), unit) == before)


@given(size=st.sampled_from(["1s", "7s", "10m", "1h", "1d", "7d", "30d", "90d", "365d", "11m"]))
def test_a_default_resolution_divides_its_window_and_cuts_it_finely(size):
    window = hr.trailing(size)
    assert window.size % window.resolution == 0
    assert window.resolution == window.size or window.size // window.resolution >= 60


@given(t=moments, distance=near)
def test_what_lies_beyond_the_reach_never_counts(t, distance):
    for window in (
        hr.trailing("1h"),
        hr.tumbling("1h"),
        hr.tumbling("1h", previous=True),
        hr.hopping("1h", every="7m"),
    ):
        if counts(window, t + distance, t):
            assert -distance <= window.reach


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: hr.trailing("0s"), "bad-duration"),
        (lambda: hr.trailing("-5m"), "bad-duration"),
        (lambda: hr.trailing("200y"), "bad-duration"),
        (lambda: hr.trailing("4000w" * 3), "bad-duration"),
        (lambda: hr.trailing(600), "bad-duration"),
        (lambda: hr.trailing("10m", resolution="7m"), "bad-resolution"),
        (lambda: hr.trailing("2h", resolution="exact"), "bad-window"),
        (lambda: hr.tumbling("1h", resolution="25m"), "bad-resolution"),
        (lambda: hr.tumbling("1h", previous="yes"), "bad-argument"),
        (lambda: hr.hopping("10m", every="20m"), "bad-window"),
        (lambda: hr.session(gap="10m", resolution="20m"), "bad-resolution"),
        (lambda: hr.session(gap="1h", max_length="10m"), "bad-window"),
        (lambda: hr.calendar("fortnight"), "bad-argument"),
        (lambda: hr.calendar("day", timezone="Mars/Olympus"), "bad-timezone"),
        (lambda: hr.count(over=5), "bad-window"),
    ],
)
def test_numbers_that_do_not_fit_together_are_refused(make, code):
    with pytest.raises(DefinitionError) as caught:
        make()
    assert caught.value.code == code
    assert caught.value.got
    assert caught.value.where.startswith("tests/define/test_window.py:")
