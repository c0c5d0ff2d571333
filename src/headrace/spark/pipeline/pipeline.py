"""The live pipeline: one tile query per run of a tile set.

Records come from the project's log, tiles go to the changelog. What became of every record, and where refused ones go,
is the archive's business (`spark.archive.archive`); which runs there are and which one serves is
`spark.pipeline.switch`'s; late lanes are published from the lake beside it (`spark.late.component`). A failing query
ends the component, which is then built anew: the checkpoint and idempotent writes make that harmless. How it is doing
is told in the topic `headrace.status` (`spark.status`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.alarms.alarm import CHECKPOINT, StreamAlarm
from headrace.clock import HOUR, MINUTE, SECOND, Clock
from headrace.codec.registry.ids import registry_of
from headrace.codec.writers import writers_of
from headrace.config.config import Config, names
from headrace.define.stream import Stream
from headrace.errors import HeadraceError
from headrace.log.kafka.log import KafkaLog
from headrace.plan.model import Plan, TileSet
from headrace.spark.admission import judged
from headrace.spark.backfill.project_backfill import run_backfill
from headrace.spark.failure import cause_of
from headrace.spark.late.component import has_passed, late_as_of
from headrace.spark.pipeline.checkpoint_damage import renew
from headrace.spark.pipeline.kafka_pace import KafkaPace
from headrace.spark.pipeline.publish import QueryPaths
from headrace.spark.pipeline.recovery import Recovery
from headrace.spark.pipeline.runs import Runs, checkpoint_of
from headrace.spark.pipeline.state_damage import note_failure
from headrace.spark.pipeline.switch import ChangeOver
from headrace.spark.pipeline.tile_query import REAL_TIME, TileQuery
from headrace.spark.records import real_time_stream, sink_options, stream_of
from headrace.spark.source import register
from headrace.spark.stall import EVERY, StallDetector
from headrace.spark.status import Status
from headrace.spark.tiles import Target
from headrace.status.records import LateStatus
from headrace.status.topic import read_status
from headrace.tiles.changelog import HandOver
from headrace.tiles.run_choice import FIRST_RUN
from headrace.topics import RUNS, STATUS, create, open_log, topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MOST_PER_BATCH = 200_000
COMPACT = 10 * MINUTE
SHOWN = HOUR
"""How long it is an alarm that a run had to begin anew."""


class Pipeline:
    """The component that turns events into tiles: the queries of a plan over one log."""

    pause = 0.5

    def __init__(self, plan: Plan, config: Config, session: SparkSession, clock: Clock) -> None:
        self.plan, self.config, self.named = plan, config, names(config)
        self.session, self.clock = session, clock
        register(session)
        self.log = open_log(config, clock)
        self.ids = registry_of(config, [stage.stream for stage in plan.admissions])
        create(self.log, topics(plan, self.named, config.log.partitions))
        self.partitions = {
            stage.stream.name: len(self.log.end_offsets(self.named.topic(stage.stream.name)))
            for stage in plan.admissions
        }
        self.recovery = Recovery(config, session, clock)
        self.status = Status(self.log, self.named.topic(STATUS), clock)
        self.renewals = self._renew()
        self.runs = ChangeOver(plan, self.named, self.log, clock, self._has_late_lane, self.status, self._tile)
        self._stalls, self._looked_for_stalls = StallDetector(), clock.now()
        self._compacted = clock.now()
        self._looked_at_late = 0

    def _renew(self) -> list[StreamAlarm]:
        """What goes on instead of runs whose checkpoints cannot be loaded."""
        runs = Runs(self.log, self.named.topic(RUNS))
        runs.look()
        found = [renew(tile_set, self.named, self.log, runs, self._fill) for tile_set in self.plan.tile_sets]
        return [
            StreamAlarm(each.tile_set.stream.name, None, CHECKPOINT, None, None, self.clock.now(), each.says)
            for each in found
            if each is not None
        ]

    def _fill(self, tile_set: TileSet) -> HandOver:
        (done,) = run_backfill(self.config, [tile_set], self.session, self.clock)
        return done.hand_over

    @property
    def queries(self) -> list[StreamingQuery]:
        """Every query."""
        return [tile.query for tile in self.runs.tiles]

    def _judged(self, stream: Stream, mode: str, begin: Mapping[int, int] | None, pace: KafkaPace) -> DataFrame:
        topic = self.named.topic(stream.name)
        if mode == REAL_TIME and isinstance(self.log, KafkaLog):
            records = real_time_stream(self.session, self.log, topic, begin, pace)
        else:
            records = stream_of(self.session, self.log, topic, MOST_PER_BATCH, begin)
        return judged(records, stream, writers_of(stream, self.ids, topic))

    def _paths_of(self, stream: Stream, checkpoint: str) -> QueryPaths:
        return QueryPaths(
            self.log, self.clock, self.named.topic(stream.name), self.named.path("checkpoints", checkpoint)
        )

    def _tile(self, tile_set: TileSet, hand_over: HandOver | None) -> TileQuery:
        stream, run = tile_set.stream, FIRST_RUN if hand_over is None else hand_over.run
        place = self._paths_of(stream, checkpoint_of(tile_set, run))
        target = Target(run, "on_time", self.partitions[stream.name])
        topic = self.named.topic(f"changelog.{tile_set.id}")
        begin = None if hand_over is None else hand_over.begin
        sink = sink_options(self.log, topic) if isinstance(self.log, KafkaLog) else None
        made = TileQuery(
            tile_set,
            target,
            place,
            topic,
            hand_over,
            judged=lambda mode, pace: self._judged(stream, mode, begin, pace),
            sink=sink,
            batch=self.config.pipeline.real_time_batch,
        )
        return made.start()

    def _has_late_lane(self, tile_set: TileSet, run: str) -> bool:
        """Whether the late lane of a run has been published, so that the run lacks nothing when it serves."""
        return has_passed(self._late_status(), self.config, tile_set, run)

    def _late_status(self) -> LateStatus:
        """The last status of the late lanes."""
        return read_status(self.log, self.named.topic(STATUS), LateStatus).get(LateStatus) or LateStatus()

    def _look_at_late_lanes(self) -> None:
        """Let the progress of tiles say how far their late lanes are, whose own rows stand in the changelog before."""
        if (now := self.clock.now()) - self._looked_at_late < SECOND:
            return
        self._looked_at_late, status = now, self._late_status()
        for tile in self.runs.tiles:
            known = late_as_of(status, tile.tile_set, tile.target.run)
            # A late lane that has just started again knows nothing yet; what it published before is there.
            tile.late_as_of = tile.late_as_of if known is None else known

    def step(self) -> bool:
        """Fail if a query has failed; say how far the tiles have come and how everything is doing."""
        for tile in self.runs.tiles:
            tile.look()
        for tile in self.runs.tiles:
            if not tile.query.isActive:
                note_failure(tile.place.checkpoint, tile.query.exception())
                raise ended(tile.query)
        self._refuse_stalled()
        self.runs.look()
        self._look_at_late_lanes()
        for tile in self.runs.tiles:
            if (said := tile.progress()) is not None:
                self.log.append_batch(tile.topic, [said])
        recent = [alarm for alarm in self.renewals if self.clock.now() - alarm.since < SHOWN]
        self.status.publish(self.runs.serving, self.runs.following, recent)
        for tile in self.runs.serving:
            if self.status.of(tile).lost:
                self.recovery.want(tile.tile_set, tile.target.run)
        self._compact()
        return False

    def is_ready(self) -> bool:
        """Whether every query takes events: Spark has set up its source and its state."""
        return all(tile.is_taking() for tile in self.runs.serving)

    def _refuse_stalled(self) -> None:
        """Fail if a query takes nothing although records wait for it."""
        now = self.clock.now()
        if now - self._looked_for_stalls < EVERY:
            return
        self._looked_for_stalls = now
        for tile in self.runs.tiles:
            ends = self.log.end_offsets(tile.place.source)
            # What real-time mode has refused shows only at the end of a batch.
            limit = self.config.processes.hung_after + (tile.batch if tile.mode == REAL_TIME else 0)
            name = f"{tile.tile_set.id} run {tile.target.run}"
            self._stalls.check(name, tile.reached(), ends, now=now, limit=limit)

    def _compact(self) -> None:
        """Keep the changelogs from growing: of every identity, and of the progress, only the newest row stays."""
        if self.clock.now() - self._compacted >= COMPACT:
            self._compacted = self.clock.now()
            for tile in self.runs.serving:
                self.log.clean(tile.topic)

    def stop(self) -> None:
        """End every query; a batch under way is run again at the next start."""
        self.runs.stop()
        self.log.close()


def ended(query: StreamingQuery) -> HeadraceError:
    """Why a query has ended that should go on, as an error of ours."""
    error = query.exception()
    cause = "Nobody knows why." if error is None else cause_of(error)
    hint = "It is started again. `headrace logs spark` shows what Spark said."
    failure = HeadraceError("spark-failed", f"Query {query.name} has ended.", got=cause, hint=hint)
    failure.__cause__ = error
    return failure
