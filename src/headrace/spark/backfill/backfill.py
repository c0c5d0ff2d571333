"""A new run from history: where batch and stream meet, and the batch's tiles from the lake into the changelog.

    lake as it is ──► point, cut, begin ──► tiles before the point, a span of time after the other ──► changelog

The point lies so far back that everything on time that happened before it is in the lake; so nothing is waited for, and
the stream reads the little that came since. How far the batch has come is said after every span: one that was killed
goes on there. What the stream does with the run is `spark.pipeline.pipeline`'s business.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import functions as F  # noqa: N812

from headrace.clock import DAY, Clock
from headrace.errors import DataError
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.lake.counters import TURN
from headrace.lake.imports import positions
from headrace.lake.table import LakeTable
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.plan.model import TileSet
from headrace.spark.admission import OFFSET, PARTITION
from headrace.spark.append import in_parts
from headrace.spark.pipeline.run_scope import in_batch, in_stream
from headrace.spark.pipeline.runs import Runs
from headrace.spark.progress import DECLARED, as_of
from headrace.spark.session import settings
from headrace.spark.silver import EVER, events
from headrace.spark.tiles import Target, changelog, tiles
from headrace.tiles.changelog import FILLED, FILLING, HandOver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEAST_TASKS, EVENTS_PER_TASK = 2, 200_000
WORTH = 200_000
"""Events that are worth a job: it costs about a second before it begins."""


@dataclass(frozen=True)
class Ground:
    """What a backfill works on: a tile set, its stream's topic and silver table, and where tiles go.

    `faults` hears of every step; it is for tests.
    """

    tile_set: TileSet
    log: Log
    source: str
    changelog: str
    silver: LakeTable
    runs: Runs
    partitions: int
    faults: FaultPoints = NO_FAULTS


@dataclass
class Filled:
    """What a backfill has done so far."""

    hand_over: HandOver
    first: int | None
    rows: int = 0
    seconds: float = 0.0


def hand_over(ground: Ground, session: SparkSession, clock: Clock) -> HandOver:
    """Decide on a new run's point, cut and beginning, from the lake as it is now."""
    tile_set, silver = ground.tile_set, ground.silver
    silver.refresh()
    cut = positions(silver)
    logged = {partition: offset for partition, offset in cut.items() if partition >= 0}
    # Whatever the lake does not have arrived then or later, so what happened before the point was late by then.
    known = as_of(ground.log, ground.source, logged, clock)
    if tile_set.stream.arrival.source in DECLARED:
        # By the stream's own time, which may be years away: what comes will go on where the lake ends.
        known = min(known, silver.greatest("_arrived_at") or known)
    point = known - tile_set.stream.allowed_lateness
    point -= point % tile_set.grain
    version = silver.counter(TURN) or 0
    made = HandOver(tile_set.fingerprint, ground.runs.next(tile_set), point, cut, {}, version)
    return msgspec.structs.replace(made, begin=_begin(ground, session, made))


def _begin(ground: Ground, session: SparkSession, made: HandOver) -> dict[int, int]:
    """Where the stream begins: at the first event of each partition that is the stream's."""
    stream = ground.tile_set.stream
    later = events(session, ground.silver, stream, [(made.point, EVER[1])])
    firsts = later.where(in_stream(made)).groupBy(f"`{PARTITION}`").agg(F.expr(f"min(`{OFFSET}`)")).collect()
    starts = ground.log.start_offsets(ground.source)
    begin = {p: made.cut.get(p, starts[p]) for p in starts} | {row[0]: row[1] for row in firsts}
    gone = {p: offset for p, offset in begin.items() if offset < starts[p]}
    if gone:
        message = "The log no longer has the records that a new run would read."
        got = ", ".join(f"partition {p}: wanted {offset:,}, first {starts[p]:,}" for p, offset in gone.items())
        raise DataError("offset-out-of-range", message, got=got, hint="Keep records longer: see log.retention.")
    return begin


def fill(
    ground: Ground,
    session: SparkSession,
    wanted: HandOver,
    *,
    rate: float | None = None,
    at_once: int = DAY,
    worth: int = WORTH,
    progress: Callable[[Filled], None] = lambda _: None,
) -> Filled:
    """Write the tiles of a run's batch that are not there yet.

    Parameters
    ----------
    rate
        The most rows a second to append; no bound when left out.
    at_once
        About how much time is computed at once; what is done is kept after every such span.
    worth
        Neighbouring spans with fewer events than this are computed together.
    progress
        Called after every span.
    """
    began, happened = time.monotonic(), ground.tile_set.stream.event_time
    low = ground.silver.least(happened) if wanted.filled is None else wanted.filled
    done = Filled(wanted, low)
    spans = _spans(low, wanted.point, ground.tile_set.grain, at_once)
    for span, held in _joined(spans, lambda low, high: ground.silver.rows(happened, [(low, high - 1)]), worth):
        with settings(session, _in_parts(max(LEAST_TASKS, held // EVENTS_PER_TASK))):
            rows = _rows(ground, session, wanted, span).toLocalIterator(prefetchPartitions=True)
            for part in in_parts(Message(row.value.encode(), row.key.encode()) for row in rows):
                ground.log.append_batch(ground.changelog, part)
                ground.faults.reach("backfill.tiles.after")
                done.rows += len(part)
                if rate is not None:
                    time.sleep(max(0.0, began + done.rows / rate - time.monotonic()))
        done.hand_over = msgspec.structs.replace(wanted, stage=FILLING, filled=span[1])
        ground.runs.say(done.hand_over)
        ground.faults.reach("backfill.span.after")
        done.seconds = time.monotonic() - began
        progress(done)
    return done


def complete(ground: Ground, done: Filled) -> Filled:
    """Say that a run is filled: its batch is written, and its late lane is published."""
    done.hand_over = msgspec.structs.replace(done.hand_over, stage=FILLED, filled=done.hand_over.point)
    ground.runs.say(done.hand_over)
    ground.faults.reach("backfill.filled.after")
    return done


def _in_parts(tasks: int) -> dict[str, str]:
    """With so many tasks for aggregates, rows are fetched from one after the other."""
    return {"spark.sql.shuffle.partitions": str(tasks), "spark.sql.adaptive.coalescePartitions.enabled": "false"}


def _spans(low: int | None, point: int, grain: int, at_once: int) -> Iterator[tuple[int, int]]:
    """Spans from `low` to the point, none of which cuts a tile.

    >>> list(_spans(5, 50, 10, 25))
    [(0, 20), (20, 40), (40, 50)]
    """
    if low is None:
        return
    length = max(grain, at_once - at_once % grain)
    at = low - low % grain
    while at < point:
        yield at, min(at + length, point)
        at += length


def _joined(
    spans: Iterable[tuple[int, int]], rows: Callable[[int, int], int], worth: int
) -> Iterator[tuple[tuple[int, int], int]]:
    """Spans that are worth a job of their own, with how many events each may have; small ones go with the next.

    >>> list(_joined([(0, 10), (10, 20), (20, 30), (30, 40)], lambda low, _: low, 20))
    [((0, 30), 30), ((30, 40), 30)]
    """
    begun, held, end = None, 0, 0
    for low, high in spans:
        begun, held, end = low if begun is None else begun, held + rows(low, high), high
        if held and held >= worth:
            yield (begun, end), held
            begun, held = None, 0
    if begun is not None and held:
        yield (begun, end), held


def _rows(ground: Ground, session: SparkSession, wanted: HandOver, span: tuple[int, int]) -> DataFrame:
    tile_set = ground.tile_set
    target = Target(wanted.run, "on_time", ground.partitions, version=wanted.version)
    taken = events(session, ground.silver, tile_set.stream, [span]).where(in_batch(wanted))
    return changelog(tiles(taken, tile_set, ground.partitions), tile_set, target)
