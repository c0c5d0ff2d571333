"""The live pipeline in micro-batches: one admission query per stream and one tile query per tile set.

Records come from the project's log, tiles go to the changelog. A failing query ends the process: whoever supervises it
starts it again, and the checkpoint and idempotent writes make that harmless. How it is doing is told in the topic
`headrace.status` (`run.status`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.clock import MINUTE, Clock, SystemClock
from headrace.config import Config, names
from headrace.define.stream import Stream
from headrace.plan.model import Admission, Plan, TileSet
from headrace.run.admit import judged
from headrace.run.progress import as_of, last_batch_end
from headrace.run.publish import Batch, Outlet, Place, progress_message, refused_to_topics, tiles_to_changelog
from headrace.run.records import stream_of
from headrace.run.session import local_session
from headrace.run.source import register
from headrace.run.status import Status
from headrace.run.tally import Tally
from headrace.run.tiles import Target, admitted_once, changelog, tiles
from headrace.schema.registry_ids import registry_of
from headrace.schema.writers import writers_of
from headrace.topics import STATUS, create, open_log, spark_jars, topics
from headrace.watch import Seen, StreamWatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ONLY_RUN = "1"
"""A run is one hand-over from history to live; until there are several, everything is the first."""
MOST_PER_BATCH = 200_000
BEAT = 0.5
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
        self.admissions = [self._admit(stage) for stage in plan.admissions]
        self.tiles = [self._tile(tile_set) for tile_set in plan.tile_sets]
        self.status = Status(self.log, self.named.topic(STATUS), clock)
        self._compacted = clock.now()

    @property
    def queries(self) -> list[StreamingQuery]:
        """Every query."""
        return [running.query for running in self.admissions] + [running.query for running in self.tiles]

    def _records(self, stream: Stream) -> DataFrame:
        return stream_of(self.session, self.log, self.named.topic(stream.name), MOST_PER_BATCH)

    def _judged(self, stream: Stream) -> DataFrame:
        return judged(self._records(stream), stream, writers_of(stream, self.ids, self.named.topic(stream.name)))

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

    def _tile(self, tile_set: TileSet) -> TileQuery:
        stream = tile_set.stream
        place = self._place(stream, f"{tile_set.id}-{tile_set.fingerprint}")
        target = Target(ONLY_RUN, "on_time", self.partitions[stream.name])
        topic = self.named.topic(f"changelog.{tile_set.id}")
        once = admitted_once(self._judged(stream), tile_set)
        publish = tiles_to_changelog(place, tile_set, target, topic)
        rows = changelog(tiles(once, tile_set, target.partitions), tile_set, target)
        query = _start(rows, publish, tile_set.id, place.checkpoint, mode="update", every=AT_ONCE)
        return TileQuery(tile_set, target, place, topic, query)

    def beat(self) -> None:
        """Fail if a query has failed; say how far the tiles have come and how everything is doing."""
        for query in self.queries:
            if not query.isActive:
                raise RuntimeError(f"query {query.name} has ended: {query.exception()}")
        for tile in self.tiles:
            included = last_batch_end(tile.place.checkpoint)
            if included is not None and included == self.log.end_offsets(tile.place.source):
                moment = as_of(self.log, tile.place.source, included, self.clock)
                self.log.append_batch(tile.topic, [progress_message(tile.tile_set, tile.target, included, moment)])
        self.status.publish(self.admissions, self.tiles)
        self._compact()

    def _compact(self) -> None:
        """Keep the changelogs from growing: of every identity, and of the progress, only the newest row stays."""
        if self.clock.now() - self._compacted >= COMPACT:
            self._compacted = self.clock.now()
            for tile in self.tiles:
                self.log.clean(tile.topic)

    def stop(self) -> None:
        """End every query; a batch under way is run again at the next start."""
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
    try:
        while not stop.wait(BEAT):
            pipeline.beat()
    finally:
        pipeline.stop()
        session.stop()
