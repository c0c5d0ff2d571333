"""The component that publishes the late lanes of a project's runs, pass after pass, and tells how that goes.

The runs topic says which runs there are, so this needs nothing of the pipeline and can run in another process. The lake
is filled by the archive; a stream without a lake has nothing to publish. All lanes of a stream share one pass
(`spark.late.late_lane`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from headrace.alarms.alarm import StreamAlarm, waiting_alarm
from headrace.clock import SECOND, Clock, SystemClock, micros, show_time
from headrace.config.config import Config, Names, names
from headrace.define.stream import Stream
from headrace.errors import HeadraceError
from headrace.lake.layout import BRONZE, SILVER
from headrace.lake.location import Lake, find_tables
from headrace.plan.model import Plan, TileSet
from headrace.spark.late.late_lane import LateLane, LateLaneRun, Pass, late_file, publish_lanes
from headrace.spark.pipeline.publish import QueryPaths
from headrace.spark.pipeline.runs import Runs, checkpoint_of
from headrace.status.records import LaneStatus, LateStatus
from headrace.status.topic import StatusPublisher
from headrace.tiles.changelog import FILLED
from headrace.tiles.run_choice import FIRST_RUN, number
from headrace.topics import RUNS, STATUS, create, open_log, topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILED = "lake-failed"

_logger = logging.getLogger(__name__)


class LanePublication:
    """One lane, and what has been published of it since the component started."""

    def __init__(self, lane: LateLane) -> None:
        self.lane, self.status = lane, LaneStatus(run=lane.run.name, positions=dict(lane.done))
        self.failure: HeadraceError | None = None
        self._since = 0

    def wait(self, failure: HeadraceError, now: int) -> None:
        """Note why nothing is published."""
        if self.failure is None:
            _logger.error("the late lane of %s waits: %s", self.lane.tile_set.id, failure)
            self._since = now
        self.failure, self.status.error = failure, failure.brief

    def alarms(self) -> list[StreamAlarm]:
        """Why it waits, if it does."""
        if self.failure is None:
            return []
        tile_set = self.lane.tile_set
        what = f"The late lane of {tile_set.id}, run {self.lane.run.name},"
        return [waiting_alarm(tile_set.stream.name, what, self.failure.brief, self._since)]

    def add(self, done: Pass, now: int, as_of: int) -> None:
        """Count a pass, after which everything that arrived before `as_of` is published."""
        status, self.failure = self.status, None
        status.passes += 1
        status.events += done.events
        status.tiles += done.tiles
        status.positions, status.as_of, status.error = dict(self.lane.done), show_time(as_of), None
        if done.last_arrival is not None:
            status.delay_seconds = max(0, now - done.last_arrival) / SECOND


class LateLanes:
    """Publishes the late lane of every run that serves or is about to, each in its turn."""

    def __init__(self, plan: Plan, config: Config, session: SparkSession, clock: Clock) -> None:
        self.plan, self.config, self.session, self.clock = plan, config, session, clock
        self.named, self.pause = names(config), config.late.every / SECOND
        self.log = open_log(config, clock)
        create(self.log, topics(plan, self.named, config.log.partitions))
        self._publisher = StatusPublisher(self.log, self.named.topic(STATUS), clock)
        self._runs = Runs(self.log, self.named.topic(RUNS))
        self._lanes: dict[tuple[str, str], LanePublication] = {}
        self._lakes: dict[str, Lake] = {}

    def step(self) -> bool:
        """One pass over every stream; then wait until events may have come into the lake."""
        self.publish()
        alarms = [alarm.status() for lane in self._lanes.values() for alarm in lane.alarms()]
        self._publisher.publish(LateStatus(lanes=self.status(), alarms=alarms))
        return False

    def publish(self) -> None:
        """One pass over every stream that has a lake, for all its lanes.

        A lake that cannot be used holds up the lanes of its own stream alone; it is opened again at the next pass.
        """
        self._follow_runs()
        for name, lanes in self._by_stream().items():
            try:
                self._publish_stream(name, lanes)
            except HeadraceError as failure:
                if failure.code != FAILED:
                    raise
                self._lakes.pop(name, None)
                for each in lanes:
                    each.wait(failure, self.clock.now())

    def _publish_stream(self, name: str, lanes: list[LanePublication]) -> None:
        lake = self._lakes.get(name) or lake_of(self.config, lanes[0].lane.tile_set.stream)
        if lake is None:
            return
        self._lakes[name] = lake
        made = publish_lanes([each.lane for each in lanes], lake, self.log, self.session)
        for each, done in zip(lanes, made, strict=True):
            each.add(done, self.clock.now(), self._known_until(each.lane))

    def _known_until(self, lane: LateLane) -> int:
        """The time before which everything that arrived is published, as far as it belongs to the lane."""
        stream = lane.tile_set.stream
        topic = self.named.topic(stream.name)
        done = {partition: end for partition, end in lane.done.items() if partition >= 0}
        place = QueryPaths(self.log, self.clock, topic, lane.checkpoint)
        return place.known_until(stream, self.log.start_offsets(topic) | done, lane.run.hand_over)

    def _by_stream(self) -> dict[str, list[LanePublication]]:
        found: dict[str, list[LanePublication]] = {}
        for each in self._lanes.values():
            found.setdefault(each.lane.tile_set.stream.name, []).append(each)
        return found

    def _follow_runs(self) -> None:
        """Add the lanes of runs that are new, and drop those of runs that have ended."""
        self._runs.look()
        current = {
            (tile_set.id, run): (tile_set, LateLaneRun(run, hand_over, self._partitions(tile_set)))
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

    def status(self) -> dict[str, dict[str, LaneStatus]]:
        """What was published of each tile set and run."""
        found: dict[str, dict[str, LaneStatus]] = {}
        for (tile_set, run), publication in self._lanes.items():
            found.setdefault(tile_set, {})[run] = publication.status
        return found

    def refuse_failed(self) -> None:
        """Raise why a lane waits, if one does."""
        for publication in self._lanes.values():
            if publication.failure is not None:
                raise publication.failure

    def is_ready(self) -> bool:
        """Always: events wait in the lake."""
        return True

    def stop(self) -> None:
        """Give back the log. A pass that was cut off is done again later."""
        self.log.close()


def has_passed(status: LateStatus, config: Config, tile_set: TileSet, run: str) -> bool:
    """Whether a run's lane was published since the run appeared, by the last status of the component.

    True when there is no lake; not as long as a lake cannot be used, which is in the status too.
    """
    lane = status.lanes.get(tile_set.id, {}).get(run)
    if lane is not None and lane.passes > 0:
        return True
    try:
        return SILVER not in find_tables(config, tile_set.stream)
    except HeadraceError as error:
        if error.code != FAILED:
            raise
        return False


def late_as_of(status: LateStatus, tile_set: TileSet, run: str) -> int | None:
    """Up to when everything of a run's late lane is published, by the last status of the component."""
    lane = status.lanes.get(tile_set.id, {}).get(run)
    return None if lane is None or lane.as_of is None else micros(lane.as_of)


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


def lane_of(named: Names, tile_set: TileSet, run: LateLaneRun) -> LateLane:
    """The late lane of a run."""
    checkpoint = late_file(named.path("checkpoints", checkpoint_of(tile_set, run.name)))
    return LateLane(tile_set, run, named.topic(f"changelog.{tile_set.id}"), checkpoint)


def lake_of(config: Config, stream: Stream) -> Lake | None:
    """A stream's tables to read; None while it has no lake."""
    tables = find_tables(config, stream)
    if BRONZE not in tables or SILVER not in tables:
        return None
    return Lake(tables[BRONZE], tables[SILVER], "")


def publish_once(
    plan: Plan, config: Config, session: SparkSession, clock: Clock | None = None
) -> dict[str, dict[str, LaneStatus]]:
    """One pass of the late lane of every run that serves, without a Spark process of its own."""
    lanes = LateLanes(plan, config, session, clock or SystemClock())
    try:
        lanes.publish()
        lanes.refuse_failed()
        return lanes.status()
    finally:
        lanes.stop()
