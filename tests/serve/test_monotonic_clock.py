"""A clock that is set back: answers stay where they are, and say so."""

from __future__ import annotations

import pytest

from headrace.clock import SECOND
from headrace.serve.monotonic_clock import MonotonicClock
from tests.serve.conftest import World
from tests.streams import BASE


class Unsteady:
    """A clock that does what it is told."""

    def __init__(self, now):
        self.time = now

    def now(self):
        return self.time


def test_time_stays_where_it_was_until_the_clock_has_caught_up(caplog):
    under = Unsteady(100 * SECOND)
    steady = MonotonicClock(under)
    under.time = 40 * SECOND
    assert [steady.now(), steady.now()] == [100 * SECOND] * 2
    assert (steady.behind, steady.back) == (60 * SECOND, True)
    assert caplog.text.count("the clock went back by 1m") == 1
    under.time = 101 * SECOND
    assert (steady.now(), steady.back) == (101 * SECOND, False)


def test_a_correction_of_milliseconds_is_no_step():
    under = Unsteady(100 * SECOND)
    steady = MonotonicClock(under)
    under.time -= 5_000
    assert (steady.now(), steady.back) == (100 * SECOND, False)


@pytest.mark.parametrize("asked", ["get", "post"])
def test_an_answer_while_the_clock_is_back_is_for_the_latest_moment_and_stale(asked):
    world = World()
    world.pipeline({"id": "a", "user": "ann", "at": BASE})
    world.clock.advance("2s")
    before = world.get("/v1/features/users/ann").json()
    world.clock._now -= 3_600 * SECOND
    if asked == "get":
        after = world.get("/v1/features/users/ann").json()
    else:
        (after,) = world.post(view="users", keys=["ann"]).json()["answers"]
    assert after == before | {"stale": True}
    assert before["stale"] is False
    assert "headrace_clock_behind_seconds 3600.0" in world.get("/metrics").text
