"""The query that computes the tiles of one run, from the log into the changelog, in whichever mode it is now.

A run has one checkpoint in every mode, so it can be stopped in one and go on in the other. In real-time mode Spark
reads and writes Kafka itself, event by event; in micro-batches our own source reads partitions in step, and a batch's
rows and its progress are appended together. A run that is planned for real-time mode and has a backlog takes it in
micro-batches first, which are faster, and then changes by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.clock import SECOND, Clock
from headrace.plan.model import SPREAD, TileSet
from headrace.run.hot_keys import watched
from headrace.run.progress import as_of, last_batch, last_batch_end, translate
from headrace.run.publish import Place, tiles_to_changelog
from headrace.run.reach import happens_in_stream
from headrace.run.real_time_progress import RealTimeProgress
from headrace.run.tiles import Target, admitted_once, changelog, tiles
from headrace.store.changelog import HandOver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

MICRO_BATCH, REAL_TIME = "micro-batch", "real-time"
AT_ONCE = "0 seconds"
"""Micro-batches go as fast as they can."""
BACKLOG = 20_000
"""Records from which on a backlog is taken in micro-batches first."""
NEAR = 5.0
"""Seconds for which stopping waits for the end of a real-time batch that is near."""


@dataclass
class TileQuery:
    """A tile query and what its rows are for.

    Parameters
    ----------
    judged
        The run's records with their verdicts, as the source of a mode gives them.
    sink
        The options of Spark's Kafka sink; None where there is only the way through Python.
    batch
        How long a real-time batch lasts, in microseconds.
    """

    tile_set: TileSet
    target: Target
    place: Place
    topic: str
    hand_over: HandOver | None
    judged: Callable[[str], DataFrame]
    sink: Mapping[str, str] | None = None
    batch: int = 300 * SECOND
    mode: str = MICRO_BATCH
    query: StreamingQuery = field(init=False)
    _real_time_progress: RealTimeProgress | None = field(init=False, default=None)

    def start(self) -> TileQuery:
        """Start in the mode that is right now."""
        if self.tile_set.mode != REAL_TIME or self.sink is None:
            self.in_micro_batches()
        elif self.behind():
            self.in_micro_batches(to_the_end=True)
        else:
            self.in_real_time()
        return self

    def look(self) -> None:
        """Change to real-time mode when the backlog is gone."""
        ended = not self.query.isActive and self.query.exception() is None
        if ended and self.mode == MICRO_BATCH and self.tile_set.mode == REAL_TIME:
            self.start()

    def behind(self) -> bool:
        """Whether there is a backlog for micro-batches: many records, or records of a long time.

        They read partitions in step by arrival; event by event a partition may run ahead of the others, and what these
        still have would be behind the watermark.
        """
        log, begun = self.place.log, self.included()
        if begun is None:
            begun = log.start_offsets(self.place.source) if self.hand_over is None else dict(self.hand_over.begin)
        waiting = sum(end - begun.get(p, 0) for p, end in log.end_offsets(self.place.source).items())
        oldest = as_of(log, self.place.source, begun, self.place.clock)
        return waiting > BACKLOG or self.place.clock.now() - oldest > SPREAD // 2

    def _rows(self, mode: str) -> DataFrame:
        taken = self.judged(mode).where(happens_in_stream(self.hand_over))
        once = admitted_once(taken, self.tile_set)
        if mode == MICRO_BATCH:
            once = watched(once, self.tile_set)
        return changelog(tiles(once, self.tile_set, self.target.partitions), self.tile_set, self.target)

    def in_micro_batches(self, *, to_the_end: bool = False) -> None:
        """Go on in micro-batches, for ever or to the end that the log has now."""
        translate(self.place.checkpoint, None)
        publish = tiles_to_changelog(self.place, self.tile_set, self.target, self.topic)
        writer = self._written(self._rows(MICRO_BATCH)).foreachBatch(publish)
        writer = writer.trigger(availableNow=True) if to_the_end else writer.trigger(processingTime=AT_ONCE)
        self.mode, self.query = MICRO_BATCH, writer.start()

    def in_real_time(self) -> None:
        """Go on event by event."""
        translate(self.place.checkpoint, self.place.source)
        self._real_time_progress = None
        writer = self._written(self._rows(REAL_TIME)).format("kafka").options(**(self.sink or {}))
        length = f"{max(1, self.batch // SECOND)} seconds"
        # PySpark's stubs do not know this trigger yet.
        self.mode, self.query = REAL_TIME, writer.trigger(realTime=length).start()  # type: ignore[call-overload]

    def _written(self, rows: DataFrame) -> DataStreamWriter:
        run = "" if self.hand_over is None else f" run {self.target.run}"
        writer = rows.writeStream.queryName(f"{self.tile_set.id}{run}").outputMode("update")
        return writer.option("checkpointLocation", str(self.place.checkpoint))

    def included(self) -> dict[int, int] | None:
        """The offsets that follow what is committed; None before the first batch."""
        return last_batch_end(self.place.checkpoint)

    def progress(self, clock: Clock) -> tuple[dict[int, int], int] | None:
        """The offsets that follow what is in the changelog, and the time before which everything is; None if unknown.

        In micro-batches each batch says it with its rows; between them it is worth saying only that nothing is left.
        """
        committed = self.included()
        if self.mode == REAL_TIME:
            if self._real_time_progress is None:
                place = self.place
                self._real_time_progress = RealTimeProgress(
                    self.tile_set, self.target.run, place.log, place.source, self.topic
                )
            return self._real_time_progress.look(committed or {}, clock)
        if committed is None or committed != self.place.log.end_offsets(self.place.source):
            return None
        return committed, as_of(self.place.log, self.place.source, committed, clock)

    def stop(self) -> None:
        """End it; a batch under way is run again at the next start, unless its end is near."""
        if self.mode == REAL_TIME:
            self._await_boundary()
        self.query.stop()

    def _await_boundary(self) -> None:
        done = last_batch(self.place.checkpoint)
        begun = 0.0 if done is None else (self.place.checkpoint / "commits" / str(done)).stat().st_mtime
        if self.query.isActive and begun and begun + self.batch / SECOND - time.time() < NEAR:
            deadline = time.monotonic() + 2 * NEAR
            while last_batch(self.place.checkpoint) == done and self.query.isActive and time.monotonic() < deadline:
                time.sleep(0.05)
