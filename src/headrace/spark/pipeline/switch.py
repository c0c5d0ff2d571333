"""One run takes the place of another: followed until it has caught up, let serve, and the old one taken away.

A tile set has one run that serves. A run that was filled from history (`spark.backfill.backfill`) is followed beside
it. When it has read as much as the serving one and is warm, and its late lane is published, everybody is told that it
serves. A while later, when stores have changed over, the rows of the old one go.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from headrace.clock import MINUTE, Clock
from headrace.config.config import Names
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.log.protocol import Log
from headrace.plan.model import Plan, TileSet
from headrace.spark.pipeline.retire import retire
from headrace.spark.pipeline.runs import Runs, checkpoint_of
from headrace.spark.pipeline.tile_query import TileQuery
from headrace.spark.status import Status
from headrace.tiles.changelog import FILLED, SERVING, HandOver
from headrace.tiles.run_choice import FIRST_RUN, number
from headrace.topics import RUNS

AFTERWARDS = MINUTE
"""How long after another run began to serve the old one's rows stay."""

Start = Callable[[TileSet, HandOver | None], TileQuery]
HasPassed = Callable[[TileSet, str], bool]


class ChangeOver:
    """The tile queries of a plan: of every tile set the run that serves, and the ones that follow.

    Parameters
    ----------
    has_passed
        Whether the late lane of a run has been published.
    start
        Starts the query of a run.
    faults
        Hears of every step; for tests.
    """

    def __init__(
        self,
        plan: Plan,
        named: Names,
        log: Log,
        clock: Clock,
        has_passed: HasPassed,
        status: Status,
        start: Start,
        faults: FaultPoints = NO_FAULTS,
    ) -> None:
        self.plan, self.named, self.log, self.clock, self._faults = plan, named, log, clock, faults
        self._has_passed, self.status, self._start = has_passed, status, start
        self.runs = Runs(log, named.topic(RUNS))
        self.runs.look()
        self.serving = [start(tile_set, self._first(tile_set)) for tile_set in plan.tile_sets]
        self.following: list[TileQuery] = []
        self._leaving = [(clock.now(), each, run) for each in plan.tile_sets for run in self._left_over(each)]

    def _first(self, tile_set: TileSet) -> HandOver | None:
        """The run to begin with: where none has ever read the log, one that was filled need not wait for it."""
        held = self.runs.serving(tile_set)
        filled = [each for each in self.runs.of(tile_set).values() if each.stage == FILLED]
        begun = self.named.path("checkpoints", checkpoint_of(tile_set, FIRST_RUN)).is_dir()
        if held is not None or not filled or begun:
            return held
        serving = msgspec.structs.replace(filled[-1], stage=SERVING)
        self.runs.say(serving)
        self._faults.reach("change_over.first.after")
        return serving

    @property
    def tiles(self) -> list[TileQuery]:
        """Every tile query that runs."""
        return [*self.serving, *self.following]

    def look(self) -> None:
        """Follow runs that were filled, let those serve that have caught up, take away what has ended."""
        self.runs.look()
        for at, old in enumerate(self.serving):
            waiting = [held for held in self.runs.of(old.tile_set).values() if held.stage == FILLED]
            wanted = waiting[-1] if waiting and number(waiting[-1].run) > number(old.target.run) else None
            follower = next((each for each in self.following if each.tile_set is old.tile_set), None)
            if follower is not None and (wanted is None or wanted.run != follower.target.run):
                self.following.remove(follower)
                self._end(follower)
            elif follower is not None and wanted is not None and self._caught_up(follower, old):
                self.following.remove(follower)
                self.serving[at] = follower
                self.status.forget(old)
                self._faults.reach("change_over.serving.before")
                self.runs.say(msgspec.structs.replace(wanted, stage=SERVING))
                self._faults.reach("change_over.serving.after")
                self._end(old)
            elif follower is None and wanted is not None:
                self.following.append(self._start(old.tile_set, wanted))
        self._retire()

    def _caught_up(self, follower: TileQuery, old: TileQuery) -> bool:
        """Whether a run has read all that the old one has and is warm, and its late lane has been published."""
        read, wanted = follower.included(), old.included() or {}
        ready = read is not None and all(read.get(p, 0) >= offset for p, offset in wanted.items())
        return ready and not follower.warming and self._has_passed(follower.tile_set, follower.target.run)

    def _end(self, tile: TileQuery) -> None:
        tile.stop()
        self._leaving.append((self.clock.now() + AFTERWARDS, tile.tile_set, tile.target.run))

    def _left_over(self, tile_set: TileSet) -> list[str]:
        """Runs that ended before this process began: they still have a checkpoint, or a hand-over saying they serve."""
        serving = self.runs.serving(tile_set)
        if serving is None:
            return []
        older = {run: held for run, held in self.runs.of(tile_set).items() if number(run) < number(serving.run)}
        ended = {run for run, held in older.items() if held.stage == SERVING}
        there = self.named.path("checkpoints")
        return [run for run in (FIRST_RUN, *older) if run in ended or (there / checkpoint_of(tile_set, run)).is_dir()]

    def _retire(self) -> None:
        now = self.clock.now()
        for due, tile_set, run in [each for each in self._leaving if each[0] <= now]:
            checkpoint = self.named.path("checkpoints", checkpoint_of(tile_set, run))
            retire(self.log, self.named.topic(f"changelog.{tile_set.id}"), tile_set, run, checkpoint, self._faults)
            self.runs.forget(tile_set, run)
            self._faults.reach("retire.run.after")
            self._leaving.remove((due, tile_set, run))

    def stop(self) -> None:
        """End every query."""
        for tile in self.tiles:
            tile.stop()
