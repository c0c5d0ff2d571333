"""Which run a pipeline begins with, which it follows, and when the one that is followed serves."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.config.config import Names, names, parse
from headrace.log import MemoryLog
from headrace.spark.pipeline.runs import Runs, checkpoint_of
from headrace.spark.pipeline.switch import ChangeOver
from headrace.spark.tiles import Target
from headrace.testing import FakeClock
from headrace.tiles.changelog import FILLED, FILLING, SERVING, HandOver
from headrace.tiles.run_choice import FIRST_RUN
from headrace.topics import RUNS
from tests.spark.test_runs import TILES, begun


@pytest.fixture
def named(tmp_path) -> Names:
    return names(parse('[project]\nname = "shop"', tmp_path, {}))


class Plan:
    tile_sets = (TILES,)


def first(named, *said):
    """The run that a pipeline begins with after some hand-overs were told of, and how it stands then."""
    log, started = MemoryLog(), list[HandOver | None]()
    log.create_topic(named.topic(RUNS), compacted=True)
    runs = Runs(log, named.topic(RUNS))
    for each in said:
        runs.say(each)

    def start(_, hand_over) -> Any:
        started.append(hand_over)

    ChangeOver(Plan(), named, log, FakeClock(), None, None, start)
    runs.look()
    return started[0], runs.serving(TILES)


class Query:
    """A run's query as far as a change-over knows it."""

    def __init__(self, run, read):
        self.tile_set, self.target = TILES, Target(run, "on_time", 1)
        self.read, self.warming, self.ended = {0: read}, False, False

    def included(self):
        return self.read

    def stop(self):
        self.ended = True


class Lane:
    """A late lane that has published what there is, unless its run waits."""

    def __init__(self) -> None:
        self.waiting: set[str] = set()

    def passed(self, tile_set, run):
        return run not in self.waiting


class Said:
    def forget(self, tile):
        pass


class Following:
    """A change-over whose first run has read ten records, with the runs that were said since."""

    def __init__(self, named):
        log = MemoryLog()
        log.create_topic(named.topic(RUNS), compacted=True)
        self.runs, self.queries, self.lane = Runs(log, named.topic(RUNS)), dict[str, Query](), Lane()
        self.over = ChangeOver(Plan(), named, log, FakeClock(), self.lane.passed, Said(), self._start)

    def _start(self, _, hand_over):
        run = FIRST_RUN if hand_over is None else hand_over.run
        return self.queries.setdefault(run, Query(run, 10 if hand_over is None else 0))

    def look(self, *said):
        for each in said:
            self.runs.say(each)
        self.over.look()
        return self

    @property
    def serving(self):
        return [query.target.run for query in self.over.serving]

    @property
    def following(self):
        return [query.target.run for query in self.over.following]


def test_a_run_that_was_filled_is_followed_beside_the_one_that_serves(named):
    at = Following(named).look(begun("2", FILLED))
    assert (at.serving, at.following) == ([FIRST_RUN], ["2"])


def test_a_follower_that_a_newer_run_replaces_is_ended(named):
    at = Following(named).look(begun("2", FILLED)).look(begun("3", FILLED))
    assert (at.queries["2"].ended, at.look().following) == (True, ["3"])


def test_a_follower_serves_once_it_has_read_as_much_and_the_old_run_is_ended(named):
    at = Following(named).look(begun("2", FILLED))
    at.queries["2"].read = {0: 9}
    assert at.look().serving == [FIRST_RUN]
    at.queries["2"].read = {0: 10}
    assert (at.look().serving, at.following, at.queries[FIRST_RUN].ended) == (["2"], [], True)
    at.runs.look()
    assert at.runs.serving(TILES) == begun("2", SERVING)


def test_a_follower_waits_while_it_warms_up_or_its_late_lane_is_not_published(named):
    at = Following(named).look(begun("2", FILLED))
    follower = at.queries["2"]
    follower.read, follower.warming = {0: 10}, True
    assert at.look().serving == [FIRST_RUN]
    follower.warming, at.lane.waiting = False, {"2"}
    assert at.look().serving == [FIRST_RUN]
    at.lane.waiting = set()
    assert at.look().serving == ["2"]


def test_without_a_hand_over_it_reads_the_log_from_its_beginning(named):
    assert first(named) == (None, None)


def test_where_none_has_run_before_a_run_that_was_filled_serves_at_once(named):
    wanted = begun("3", SERVING)
    assert first(named, begun("2", FILLED), begun("3", FILLED)) == (wanted, wanted)


def test_one_that_is_not_filled_yet_is_not_begun_with(named):
    assert first(named, begun("2", FILLING)) == (None, None)


def test_where_one_has_run_before_the_new_one_has_to_catch_up(named):
    named.path("checkpoints", checkpoint_of(TILES, FIRST_RUN)).mkdir(parents=True)
    assert first(named, begun("2", FILLED)) == (None, None)


def test_the_one_that_serves_goes_on(named):
    serving = begun("2", SERVING)
    assert first(named, serving, begun("3", FILLED)) == (serving, serving)
