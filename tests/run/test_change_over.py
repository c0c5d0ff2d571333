"""Which run a pipeline begins with."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.config import Names, names, parse
from headrace.log import MemoryLog
from headrace.run.change_over import ChangeOver
from headrace.run.runs import Runs, checkpoint_of
from headrace.store.changelog import FILLED, FILLING, SERVING, HandOver
from headrace.store.runs import FIRST_RUN
from headrace.testing import FakeClock
from headrace.topics import RUNS
from tests.run.test_runs import TILES, begun


@pytest.fixture
def named(tmp_path) -> Names:
    return names(parse('[project]\nname = "shop"', tmp_path, {}))


def first(named, *said):
    """The run that a pipeline begins with after some hand-overs were told of, and how it stands then."""
    log, started = MemoryLog(), list[HandOver | None]()
    log.create_topic(named.topic(RUNS), compacted=True)
    runs = Runs(log, named.topic(RUNS))
    for each in said:
        runs.say(each)

    class Plan:
        tile_sets = (TILES,)

    def start(_, hand_over) -> Any:
        started.append(hand_over)

    ChangeOver(Plan(), named, log, FakeClock(), None, None, start)
    runs.look()
    return started[0], runs.serving(TILES)


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
