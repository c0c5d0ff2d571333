"""The live pipeline in micro-batches: one admission query per stream, one tile query per run of a tile set.

Records come from the project's log, tiles go to the changelog. A tile set has one run that serves; one that was filled
from history (`run.backfill`) is followed beside it until it has caught up, and then takes its place. Late lanes are
published from the lake in between (`run.late_job`). A failing query ends the process: whoever supervises it starts it
again, and the checkpoint and idempotent writes make that harmless. How it is doing is told in the topic
`headrace.status` (`run.status`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.clock import MINUTE, Clock, SystemClock
from headrace.config import Config, names
from headrace.define.stream import Stream
from headrace.plan.model import Admission, Plan, TileSet
from headrace.run.admit import judged
from headrace.run.hot_keys import watched
from headrace.run.late import Run
from headrace.run.late_job import LateJob
from headrace.run.progress import as_of, last_batch_end
from headrace.run.publish import Batch, Outlet, Place, progress_message, refused_to_topics, tiles_to_changelog
from headrace.run.reach import happens_in_stream
from headrace.run.records import stream_of
from headrace.run.retire import retire
from headrace.run.runs import Runs, checkpoint_of
from headrace.run.session import local_session
from headrace.run.source import register
from headrace.run.status import Status
from headrace.run.tally import Tally
from headrace.run.tiles import Target, admitted_once, changelog, tiles
from headrace.schema.registry_ids import registry_of
from headrace.schema.writers import writers_of
from headrace.store.changelog import FILLED, SERVING, HandOver
from headrace.store.runs import FIRST_RUN, number
from headrace.topics import RUNS, STATUS, create, open_log, spark_jars, topics
from headrace.watch import Seen, StreamWatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MOST_PER_BATCH = 200_000
BEAT = 0.5
CHANGE_OVER = MINUTE
"""How long after another run began to serve the old one's rows stay: stores change over in the meantime."""
COMPACT = 10 * MINUTE
AT_ONCE, COUNTING = "0 seconds", "2 seconds"
"""Tiles go as fast as they can; counting and dead letters can wait, and leave them the cores."""


@dataclass(frozen=True)
class TileQuery:
    """A running tile query and what its rows are for."""

    tile_set: TileSet
    target: Target
    place: Place
    topic: str
    query: StreamingQuery
    hand_over: HandOver | None = None


@dataclass(frozen=True)
class AdmissionQuery:
    """A running admission query and its counts."""

    stream: Stream
    place: Place
    tally: Tally
    watch: StreamWatch
    query: StreamingQuery


class Pipeline:
    """The queries of a plan over one log."""

    def __init__(self, plan: Plan, config: Config, session: SparkSession, clock: Clock) -> None:
        self.plan, self.named, self.session, self.clock = plan, names(config), session, clock
        self.log = open_log(config, clock)
        self.ids = registry_of(config, [stage.stream for stage in plan.admissions])
        create(self.log, topics(plan, self.named, config.partitions))
        self.partitions = {
            stage.stream.name: len(self.log.end_offsets(self.named.topic(stage.stream.name)))
            for stage in plan.admissions
        }
        self.runs = Runs(self.log, self.named.topic(RUNS))
        self.runs.look()
        self.late = LateJob(config, self.log, session, clock)
        self.admissions = [self._admit(stage) for stage in plan.admissions]
        self.tiles = [self._tile(tile_set, self.runs.serving(tile_set)) for tile_set in plan.tile_sets]
        self.following: list[TileQuery] = []
        self._leaving = [(clock.now(), each, run) for each in plan.tile_sets for run in self._left_over(each)]
        self.status = Status(self.log, self.named.topic(STATUS), clock)
        self._compacted = clock.now()

    @property
    def queries(self) -> list[StreamingQuery]:
        """Every query."""
        return [tile.query for tile in (*self.tiles, *self.following)] + [each.query for each in self.admissions]

    def _judged(self, stream: Stream, begin: Mapping[int, int] | None = None) -> DataFrame:
        topic = self.named.topic(stream.name)
        records = stream_of(self.session, self.log, topic, MOST_PER_BATCH, begin)
        return judged(records, stream, writers_of(stream, self.ids, topic))

    def _place(self, stream: Stream, checkpoint: str) -> Place:
        return Place(self.log, self.clock, self.named.topic(stream.name), self.named.path("checkpoints", checkpoint))

    def _admit(self, stage: Admission) -> AdmissionQuery:
        stream = stage.stream
        place = self._place(stream, f"{stage.id}-{stage.fingerprint}")
        tally = Tally(place.checkpoint / "headrace" / "verdicts.json")
        dead, late = self.named.topic(f"{stream.name}.dead"), self.named.topic(f"{stream.name}.late")
        watch = StreamWatch(stream.name)

        def told(number: int, counts: Mapping[str, int], seen: list[Seen]) -> None:
            tally.add(number, counts)
            watch.batch(seen)

        publish = refused_to_topics(place, stream, Outlet(dead, late, self.partitions[stream.name]), told)
        rows = self._judged(stream)
        query = _start(rows, publish, stage.id, place.checkpoint, mode="append", every=COUNTING)
        return AdmissionQuery(stream, place, tally, watch, query)

    def _tile(self, tile_set: TileSet, hand_over: HandOver | None) -> TileQuery:
        stream, run = tile_set.stream, FIRST_RUN if hand_over is None else hand_over.run
        place = self._place(stream, checkpoint_of(tile_set, run))
        target = Target(run, "on_time", self.partitions[stream.name])
        topic = self.named.topic(f"changelog.{tile_set.id}")
        rows = self._judged(stream, None if hand_over is None else hand_over.begin)
        once = watched(admitted_once(rows.where(happens_in_stream(hand_over)), tile_set), tile_set)
        publish = tiles_to_changelog(place, tile_set, target, topic)
        made = changelog(tiles(once, tile_set, target.partitions), tile_set, target)
        name = tile_set.id if hand_over is None else f"{tile_set.id} run {run}"
        query = _start(made, publish, name, place.checkpoint, mode="update", every=AT_ONCE)
        self.late.add(tile_set, Run(run, hand_over, target.partitions), topic, place.checkpoint)
        return TileQuery(tile_set, target, place, topic, query, hand_over)

    def beat(self) -> None:
        """Fail if a query has failed; say how far the tiles have come and how everything is doing."""
        for query in self.queries:
            if not query.isActive:
                raise RuntimeError(f"query {query.name} has ended: {query.exception()}")
        if self.late.failure is not None:
            raise RuntimeError("the late lane has failed") from self.late.failure
        self._change_over()
        for tile in (*self.tiles, *self.following):
            included = last_batch_end(tile.place.checkpoint)
            if included is not None and included == self.log.end_offsets(tile.place.source):
                moment = as_of(self.log, tile.place.source, included, self.clock)
                self.log.append_batch(tile.topic, [progress_message(tile.tile_set, tile.target, included, moment)])
        self.status.publish(self.admissions, self.tiles, self._runs_told(), self.following)
        self._compact()

    def _change_over(self) -> None:
        """Follow runs that were filled from history, let those serve that have caught up, and end the old ones."""
        self.runs.look()
        for at, old in enumerate(self.tiles):
            waiting = [held for held in self.runs.of(old.tile_set).values() if held.stage == FILLED]
            wanted = waiting[-1] if waiting and number(waiting[-1].run) > number(old.target.run) else None
            follower = next((each for each in self.following if each.tile_set is old.tile_set), None)
            if follower is not None and (wanted is None or wanted.run != follower.target.run):
                self._end(follower)
            elif follower is not None and wanted is not None and self._caught_up(follower, old):
                self.following.remove(follower)
                self.tiles[at] = follower
                self.status.inherit(old, follower)
                self.runs.say(msgspec.structs.replace(wanted, stage=SERVING))
                self._end(old)
            elif follower is None and wanted is not None:
                self.following.append(self._tile(old.tile_set, wanted))
        self._retire()

    def _caught_up(self, follower: TileQuery, old: TileQuery) -> bool:
        """Whether a run has read all that the old one has, and its late lane has been published."""
        read, wanted = last_batch_end(follower.place.checkpoint), last_batch_end(old.place.checkpoint) or {}
        ready = read is not None and all(read.get(p, 0) >= offset for p, offset in wanted.items())
        return ready and self.late.passed(follower.tile_set, follower.target.run)

    def _end(self, tile: TileQuery) -> None:
        tile.query.stop()
        self.late.drop(tile.tile_set, tile.target.run)
        if tile in self.following:
            self.following.remove(tile)
        self._leaving.append((self.clock.now() + CHANGE_OVER, tile.tile_set, tile.target.run))

    def _left_over(self, tile_set: TileSet) -> list[str]:
        """Runs of a tile set that ended before this process began, and still have a checkpoint."""
        serving = self.runs.serving(tile_set)
        if serving is None:
            return []
        older = [FIRST_RUN, *(run for run in self.runs.of(tile_set) if number(run) < number(serving.run))]
        return [run for run in older if self.named.path("checkpoints", checkpoint_of(tile_set, run)).is_dir()]

    def _retire(self) -> None:
        """Take away the rows of runs that ended a while ago."""
        now = self.clock.now()
        for due, tile_set, run in [each for each in self._leaving if each[0] <= now]:
            checkpoint = self.named.path("checkpoints", checkpoint_of(tile_set, run))
            retire(self.log, self.named.topic(f"changelog.{tile_set.id}"), tile_set, run, checkpoint)
            self.runs.forget(tile_set, run)
            self._leaving.remove((due, tile_set, run))

    def _runs_told(self) -> dict[str, Any]:
        """What the status says of runs: which serves, which follow, and how their late lanes do."""
        followed = {tile.tile_set.id: tile.target.run for tile in self.following}
        return {"following": followed, "late": self.late.status(self.plan.tile_sets)}

    def _compact(self) -> None:
        """Keep the changelogs from growing: of every identity, and of the progress, only the newest row stays."""
        if self.clock.now() - self._compacted >= COMPACT:
            self._compacted = self.clock.now()
            for tile in self.tiles:
                self.log.clean(tile.topic)

    def stop(self) -> None:
        """End every query; a batch under way is run again at the next start."""
        self.late.stop()
        for query in self.queries:
            query.stop()
        self.log.close()


def _start(rows: DataFrame, publish: Batch, name: str, checkpoint: Path, *, mode: str, every: str) -> StreamingQuery:
    writer = rows.writeStream.queryName(name).outputMode(mode).option("checkpointLocation", str(checkpoint))
    return writer.foreachBatch(publish).trigger(processingTime=every).start()


def main(plan: Plan, config: Config, stop: threading.Event, clock: Clock | None = None) -> None:
    """Run a plan's pipeline until told to stop."""
    session = local_session(f"headrace {config.name}", jars=spark_jars(config, plan))
    register(session)
    pipeline = Pipeline(plan, config, session, clock or SystemClock())
    pipeline.late.start()
    try:
        while not stop.wait(BEAT):
            pipeline.beat()
    finally:
        pipeline.stop()
        session.stop()
