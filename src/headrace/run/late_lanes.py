"""The component that publishes the late lanes of a project's runs, pass after pass, and tells how that goes.

The runs topic says which runs there are, so this needs nothing of the pipeline and can run in another process. The lake
is filled by the archive; a stream without a lake has nothing to publish. All lanes of a stream share one pass
(`run.late`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.clock import SECOND, Clock, SystemClock
from headrace.config import Config, Names, names
from headrace.define.stream import Stream
from headrace.lake.layout import BRONZE, SILVER
from headrace.lake.place import Lake, look
from headrace.plan.model import Plan, TileSet
from headrace.run.late import LateLane, Pass, Run, late_file, publish_lanes
from headrace.run.runs import Runs, checkpoint_of
from headrace.store.changelog import FILLED
from headrace.store.runs import FIRST_RUN, number
from headrace.topics import RUNS, STATUS, create, open_log, topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPONENT = "late"


@dataclass
class LanePublication:
    """One lane, and what has been published of it since the component started."""

    lane: LateLane
    passes: int = 0
    events: int = 0
    tiles: int = 0
    delay: float | None = None

    def status(self) -> dict[str, Any]:
        """What was published, and how long after its arrival."""
        return {
            "run": self.lane.run.name,
            "passes": self.passes,
            "events": self.events,
            "tiles": self.tiles,
            "delay_seconds": self.delay,
            "positions": {str(p): o for p, o in self.lane.done.items()},
        }

    def add(self, done: Pass, now: int) -> None:
        """Count a pass."""
        self.passes, self.events, self.tiles = self.passes + 1, self.events + done.events, self.tiles + done.tiles
        if done.last_arrival is not None:
            self.delay = max(0, now - done.last_arrival) / SECOND


class LateLanes:
    """Publishes the late lane of every run that serves or is about to, each in its turn."""

    def __init__(self, plan: Plan, config: Config, session: SparkSession, clock: Clock) -> None:
        self.plan, self.config, self.session, self.clock = plan, config, session, clock
        self.named, self.pause = names(config), config.late_every / SECOND
        self.log = open_log(config, clock)
        create(self.log, topics(plan, self.named, config.partitions))
        self._runs = Runs(self.log, self.named.topic(RUNS))
        self._lanes: dict[tuple[str, str], LanePublication] = {}
        self._lakes: dict[str, Lake] = {}

    def step(self) -> bool:
        """One pass over every stream; then wait until events may have come into the lake."""
        self.publish()
        told = {"component": COMPONENT, "at": self.clock.now(), "lanes": self.status()}
        text = json.dumps(told, separators=(",", ":")).encode()
        self.log.append(self.named.topic(STATUS), text, key=COMPONENT.encode())
        return False

    def publish(self) -> None:
        """One pass over every stream that has a lake, for all its lanes."""
        self._follow_runs()
        for name, lanes in self._by_stream().items():
            lake = self._lakes.get(name) or lake_of(self.config, lanes[0].lane.tile_set.stream)
            if lake is None:
                continue
            self._lakes[name] = lake
            made = publish_lanes([each.lane for each in lanes], lake, self.log, self.session)
            for each, done in zip(lanes, made, strict=True):
                each.add(done, self.clock.now())

    def _by_stream(self) -> dict[str, list[LanePublication]]:
        found: dict[str, list[LanePublication]] = {}
        for each in self._lanes.values():
            found.setdefault(each.lane.tile_set.stream.name, []).append(each)
        return found

    def _follow_runs(self) -> None:
        """Add the lanes of runs that are new, and drop those of runs that have ended."""
        self._runs.look()
        current = {
            (tile_set.id, run): (tile_set, Run(run, hand_over, self._partitions(tile_set)))
            for tile_set in self.plan.tile_sets
            for run, hand_over in _current_runs(self._runs, tile_set)
        }
        for key in self._lanes.keys() - current.keys():
            del self._lanes[key]
        for key, (tile_set, run) in current.items():
            if key not in self._lanes:
                self._lanes[key] = LanePublication(lane_of(self.named, tile_set, run))

    def _partitions(self, tile_set: TileSet) -> int:
        return len(self.log.end_offsets(self.named.topic(tile_set.stream.name)))

    def status(self) -> dict[str, dict[str, Any]]:
        """What was published of each tile set and run."""
        found: dict[str, dict[str, Any]] = {}
        for (tile_set, run), publication in self._lanes.items():
            found.setdefault(tile_set, {})[run] = publication.status()
        return found

    def is_ready(self) -> bool:
        """Always: events wait in the lake."""
        return True

    def stop(self) -> None:
        """Give back the log. A pass that was cut off is done again later."""
        self.log.close()


def has_passed(said: Mapping[str, Any], config: Config, tile_set: TileSet, run: str) -> bool:
    """Whether a run's lane was published since the run appeared, by what the component last said.

    True when there is no lake.
    """
    lane = said.get("lanes", {}).get(tile_set.id, {}).get(run, {})
    return lane.get("passes", 0) > 0 or SILVER not in look(config, tile_set.stream)


def _current_runs(runs: Runs, tile_set: TileSet) -> list[tuple[str, Any]]:
    """The run that serves, and those that are filled and follow it."""
    serving = runs.serving(tile_set)
    first = FIRST_RUN if serving is None else serving.run
    followers = [
        (run, hand_over)
        for run, hand_over in runs.of(tile_set).items()
        if hand_over.stage == FILLED and number(run) > number(first)
    ]
    return [(first, serving), *followers]


def lane_of(named: Names, tile_set: TileSet, run: Run) -> LateLane:
    """The late lane of a run."""
    checkpoint = late_file(named.path("checkpoints", checkpoint_of(tile_set, run.name)))
    return LateLane(tile_set, run, named.topic(f"changelog.{tile_set.id}"), checkpoint)


def lake_of(config: Config, stream: Stream) -> Lake | None:
    """A stream's tables to read; None while it has no lake."""
    tables = look(config, stream)
    if BRONZE not in tables or SILVER not in tables:
        return None
    return Lake(tables[BRONZE], tables[SILVER], "")


def publish_once(plan: Plan, config: Config, session: SparkSession, clock: Clock | None = None) -> dict[str, Any]:
    """One pass of the late lane of every run that serves, without a Spark process of its own."""
    lanes = LateLanes(plan, config, session, clock or SystemClock())
    try:
        lanes.publish()
        return lanes.status()
    finally:
        lanes.stop()
