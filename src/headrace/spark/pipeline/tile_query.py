"""The query that computes the tiles of one run, from the log into the changelog, in whichever mode it is now.

A run has one checkpoint in every mode, so it can be stopped in one and go on in the other. In real-time mode Spark
reads and writes Kafka itself, event by event; in micro-batches our own source reads partitions in step, and a batch's
rows and its progress are appended together. A run that is planned for real-time mode and has a backlog takes it in
micro-batches first, which are faster, and then changes by itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.clock import SECOND
from headrace.log.record import Message
from headrace.plan.model import SPREAD, TileSet
from headrace.spark.failure import text_of
from headrace.spark.pipeline.hot_keys import watched
from headrace.spark.pipeline.kafka_pace import A_FEW_AT_A_TIME, ONE_BY_ONE, KafkaPace, pace_for
from headrace.spark.pipeline.publish import QueryPaths, progress_message, tiles_to_changelog
from headrace.spark.pipeline.real_time_progress import RealTimeProgress
from headrace.spark.pipeline.run_scope import happens_in_stream
from headrace.spark.progress import as_of, forget_cut_off_first, in_stream_time, last_batch, last_batch_end, translate
from headrace.spark.session import settings
from headrace.spark.tiles import Target, admitted_once, changelog, tiles
from headrace.tiles.changelog import HandOver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_logger = logging.getLogger(__name__)

MICRO_BATCH, REAL_TIME = "micro-batch", "real-time"
AT_ONCE = "0 seconds"
"""Micro-batches go as fast as they can."""
BACKLOG = 200_000
"""Records from which on a backlog is taken in micro-batches first: of fewer, the change takes longer than it saves."""
CROWD = 10_000
"""Records from which on those that wait are taken a few at a time."""
EVERY = SECOND
"""How often a real-time query says how far it is."""
WARM_UP = {MICRO_BATCH: 10 * SECOND, REAL_TIME: 30 * SECOND}
"""How long after its start a query is slower than it will be: Java compiles as it goes."""
PRACTICE = 5 * SECOND
"""How long the first real-time batches last: Java compiles what ends a batch as well, and the sooner the better."""
PRACTISED = 5
"""How many of them end before batches have their full length."""
FORGETTING = {"spark.sql.streaming.statefulOperator.incrementalCleanupFactor": "2"}
"""State that nobody needs goes while events come, two rows for each; at the end of a batch all would be searched."""
INITIALIZING = "Initializing sources"
"""What Spark says of a query that takes no events yet."""
NO_WORKER = "Python worker failed to connect back"
TRIES = 3
"""How often a query is started again for want of a worker before the process gives up."""
NEAR = 5.0
"""Seconds for which stopping waits for the end of a real-time batch that is near."""


@dataclass
class TileQuery:
    """A tile query and what its rows are for.

    Parameters
    ----------
    judged
        The run's records with their verdicts, as the source of a mode gives them at a pace.
    sink
        The options of Spark's Kafka sink; None where there is only the way through Python.
    batch
        How long a real-time batch lasts, in microseconds.

    Attributes
    ----------
    late_as_of
        The moment before which everything of the run's late lane arrived that stands in the changelog.
    """

    tile_set: TileSet
    target: Target
    place: QueryPaths
    topic: str
    hand_over: HandOver | None
    judged: Callable[[str, KafkaPace], DataFrame]
    sink: Mapping[str, str] | None = None
    batch: int = 300 * SECOND
    mode: str = MICRO_BATCH
    pace: KafkaPace = ONE_BY_ONE
    query: StreamingQuery = field(init=False)
    started_at: int = field(init=False, default=0)
    late_as_of: int | None = field(init=False, default=None)
    _practice_from: int | None = field(init=False, default=None)
    _looked_at: int = field(init=False, default=-1)
    _real_time_progress: RealTimeProgress | None = field(init=False, default=None)
    _said_at: int = field(init=False, default=0)
    _tried_again: int = field(init=False, default=0)

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
        """Change to real-time mode when the backlog is gone; at the end of a batch, to a query that suits better.

        Spark gives a Python worker ten seconds to start, which a busy machine may not have for it: that is tried again.
        """
        error = None if self.query.isActive else self.query.exception()
        if error is not None and NO_WORKER in text_of(error) and self._tried_again < TRIES:
            self._tried_again += 1
            _logger.warning("query %s is started again: %s", self.query.name, NO_WORKER)
            self.start()
            return
        ended = not self.query.isActive and error is None
        if ended and self.mode == MICRO_BATCH and self.tile_set.mode == REAL_TIME:
            self.start()
        elif self.mode == REAL_TIME and (done := self._last_batch()) != self._looked_at:
            self._looked_at = done
            if self._outgrown(done):
                self.query.stop()
                self.in_real_time(practised=True)

    def _outgrown(self, done: int) -> bool:
        """Whether ends have been practised in short batches, or records come at another pace by now."""
        if self._practice_from is not None:
            return done - self._practice_from >= PRACTISED
        return self._pace() != self.pace

    def _pace(self) -> KafkaPace:
        """A backlog is worked off a few records at a time, whatever comes now."""
        if self._waiting() > CROWD:
            return A_FEW_AT_A_TIME
        return pace_for(self.place.log, self.place.source, self.place.clock, self.pace)

    def _waiting(self) -> int:
        """How many records are in the log and not in what is committed."""
        begun, ends = self._begun(), self.place.log.end_offsets(self.place.source)
        return sum(end - begun.get(partition, 0) for partition, end in ends.items())

    def behind(self) -> bool:
        """Whether there is a backlog for micro-batches: many records, or records of a long time.

        They read partitions in step by arrival; event by event a partition may run ahead of the others, and what these
        still have would be behind the watermark.
        """
        log, clock = self.place.log, self.place.clock
        since = as_of(log, self.place.source, self._begun(), clock)
        return self._waiting() > BACKLOG or clock.now() - since > SPREAD // 2

    def _begun(self) -> dict[int, int]:
        """Where a start goes on."""
        if (done := self.included()) is not None:
            return done
        return self.place.log.start_offsets(self.place.source) if self.hand_over is None else dict(self.hand_over.begin)

    def _rows(self, mode: str) -> DataFrame:
        taken = self.judged(mode, self.pace).where(happens_in_stream(self.hand_over))
        if mode == REAL_TIME:
            once = admitted_once(taken, self.tile_set, self._in_one_task)
        else:
            once = watched(admitted_once(taken, self.tile_set), self.tile_set)
        return changelog(tiles(once, self.tile_set, self.target.partitions), self.tile_set, self.target)

    def _in_one_task(self, rows: DataFrame) -> DataFrame:
        """Rows of all partitions in one place, so that an event need not travel again to find its copies and its tile.

        The rows of a single partition stay where they were read: the whole query is one task.
        """
        return rows.coalesce(1) if self.target.partitions == 1 else rows.repartition(1)

    def in_micro_batches(self, *, to_the_end: bool = False) -> None:
        """Go on in micro-batches, for ever or to the end that the log has now."""
        forget_cut_off_first(self.place.checkpoint)
        translate(self.place.checkpoint, None, self.place.faults)
        if self.sink is not None:
            # Rows of real-time mode may stand before, which were in order.
            begun = self._begun()
            self.place.log.append_batch(self.topic, [self._message(begun, self._known_until(begun))])
        publish = tiles_to_changelog(
            self.place, self.tile_set, self.target, self.topic, self.hand_over, lambda: self.late_as_of
        )
        writer = self._written(self._rows(MICRO_BATCH)).foreachBatch(publish)
        writer = writer.trigger(availableNow=True) if to_the_end else writer.trigger(processingTime=AT_ONCE)
        self._practice_from = None
        self.mode, self.query, self.started_at = MICRO_BATCH, writer.start(), self.place.clock.now()

    def in_real_time(self, *, practised: bool = False) -> None:
        """Go on event by event; in short batches at first, unless their ends were practised."""
        practised = practised or self.batch <= PRACTICE
        self._practice_from = None if practised else self._last_batch()
        translate(self.place.checkpoint, self.place.source, self.place.faults)
        self._real_time_progress, self._looked_at, self.pace = None, self._last_batch(), self._pace()
        rows = self._rows(REAL_TIME)
        writer = self._written(rows).format("kafka").options(**(self.sink or {}), **self.pace.sink)
        length = f"{max(1, (self.batch if practised else PRACTICE) // SECOND)} seconds"
        # PySpark's stubs do not know this trigger yet.
        writer = writer.trigger(realTime=length)  # type: ignore[call-overload]
        with settings(rows.sparkSession, FORGETTING):
            self.mode, self.query, self.started_at = REAL_TIME, writer.start(), self.place.clock.now()

    @property
    def warming(self) -> bool:
        """Whether it has started so recently that how fresh it is says nothing yet."""
        return self._practice_from is not None or self.place.clock.now() - self.started_at < WARM_UP[self.mode]

    def _last_batch(self) -> int:
        done = last_batch(self.place.checkpoint)
        return -1 if done is None else done

    def _written(self, rows: DataFrame) -> DataStreamWriter:
        run = "" if self.hand_over is None else f" run {self.target.run}"
        writer = rows.writeStream.queryName(f"{self.tile_set.id}{run}").outputMode("update")
        return writer.option("checkpointLocation", str(self.place.checkpoint))

    def is_taking(self) -> bool:
        """Whether the query has begun to take events; before that Spark sets up its source and its state."""
        return self.query.isActive and self.query.status["message"] != INITIALIZING

    def included(self) -> dict[int, int] | None:
        """The offsets that follow what is committed; None before the first batch."""
        return last_batch_end(self.place.checkpoint)

    def reached(self) -> dict[int, int]:
        """The offsets that follow what is in the tiles, as far as is known: event by event, more than is committed."""
        committed, live = self.included() or {}, self._real_time_progress
        if self.mode != REAL_TIME or live is None:
            return committed
        return {p: max(live.included.get(p, 0), committed.get(p, 0)) for p in {*live.included, *committed}}

    def progress(self) -> Message | None:
        """What is worth saying now of how far the changelog is; None if nothing is.

        In micro-batches each batch says it with its rows, and between them only that nothing is left. In real-time mode
        the rows themselves say it, in order; what is said now and then is for the times in which none come.
        """
        committed, place = self.included(), self.place
        if self.mode == REAL_TIME:
            if (now := place.clock.now()) - self._said_at < EVERY:
                return None
            self._said_at = now
            if self._real_time_progress is None:
                self._real_time_progress = RealTimeProgress(
                    self.tile_set, self.target.run, place.log, place.source, self.topic
                )
            # Where arrival is declared, a later record may have arrived earlier.
            ordered = self.tile_set.stream.arrival.source == "log"
            included, moment = self._real_time_progress.look(committed or {}, place.clock)
            stream, log = self.tile_set.stream, place.log
            moment = in_stream_time(stream, log, place.source, included, moment, self.hand_over)
            return self._message(included, moment, ordered=ordered)
        if committed is None or committed != place.log.end_offsets(place.source):
            return None
        return self._message(committed, self._known_until(committed))

    def _known_until(self, included: Mapping[int, int]) -> int:
        return self.place.known_until(self.tile_set.stream, included, self.hand_over)

    def _message(self, included: Mapping[int, int], moment: int, *, ordered: bool = False) -> Message:
        return progress_message(self.tile_set, self.target, included, moment, ordered=ordered, late=self.late_as_of)

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
