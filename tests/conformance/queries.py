"""Tile queries as the live pipeline has them, started, stopped and killed at will."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from unittest import mock

from headrace.clock import SECOND
from headrace.plan.model import TileSet
from headrace.spark.progress import last_batch
from headrace.tiles.changelog import HandOver
from headrace.tiles.run_choice import FIRST_RUN
from tests.conformance.definitions import PARTITIONS
from tests.conformance.world import World

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headrace.spark.pipeline.tile_query import TileQuery

PATIENCE = 180
"""Seconds."""
BATCH = 5 * SECOND
"""How long a batch of real-time mode lasts here."""


class DiedError(Exception):
    """What stands for a process that is killed: before it has published a batch, or before Spark has noted that."""


def started(
    world: World,
    session: SparkSession,
    tile_set: TileSet,
    most: int,
    *,
    dies: str | None = None,
    begun: HandOver | None = None,
) -> StreamingQuery:
    """A tile query as the pipeline has it, to the end of the log or killed `before` or `after` publishing batch 1."""
    from headrace.spark.admission import judged
    from headrace.spark.pipeline.hot_keys import watched
    from headrace.spark.pipeline.publish import QueryPaths, tiles_to_changelog
    from headrace.spark.pipeline.run_scope import happens_in_stream
    from headrace.spark.records import stream_of
    from headrace.spark.tiles import Target, admitted_once, changelog, tiles

    stream, target = tile_set.stream, Target(begun.run if begun else FIRST_RUN, "on_time", PARTITIONS)
    place = QueryPaths(world.log, world.clock, stream.name, world.folder / "checkpoints" / tile_set.id)
    publish = tiles_to_changelog(place, tile_set, target, f"changelog.{tile_set.id}")
    records = stream_of(session, world.log, stream.name, most, begun.begin if begun else None)
    once = admitted_once(judged(records, stream).where(happens_in_stream(begun)), tile_set)
    rows = changelog(tiles(watched(once, tile_set), tile_set, PARTITIONS), tile_set, target)

    def published(batch: DataFrame, number: int) -> None:
        if number == 1 and dies == "before":
            raise DiedError("before batch 1")
        publish(batch, number)
        if number == 1 and dies == "after":
            raise DiedError("after batch 1")

    writer = rows.writeStream.outputMode("update").option("checkpointLocation", str(place.checkpoint))
    query = writer.foreachBatch(published).trigger(availableNow=True).start()
    _begun(query)
    return query


def _begun(query: StreamingQuery) -> None:
    """Wait until a query has its source: each starts a Python process, for which Spark waits only ten seconds."""
    deadline = time.monotonic() + PATIENCE
    while query.isActive and query.status["message"].startswith("Initializing") and time.monotonic() < deadline:
        query.awaitTermination(0.05)


def stopped_after(query: StreamingQuery, batches: int) -> None:
    """Stop a query when it has done so many batches; another may be under way."""
    deadline = time.monotonic() + PATIENCE
    while query.isActive and len(query.recentProgress) < batches:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the query makes no progress: {query.lastProgress}")
        query.awaitTermination(0.05)
    query.stop()
    _refuse_drops(query)


def died(query: StreamingQuery) -> None:
    """Wait until a query has died as it was told to."""
    try:
        query.awaitTermination(PATIENCE)
    except Exception as error:
        if "DiedError" not in str(error):
            raise
        return
    raise ValueError("the query should have died")


def finished(query: StreamingQuery) -> None:
    """Wait until a query has read all there is."""
    if not query.awaitTermination(PATIENCE):
        raise TimeoutError(f"the query has not come to its end: {query.lastProgress}")
    _refuse_drops(query)


def _refuse_drops(query: StreamingQuery) -> None:
    """Spark's own watermark must never drop a row: that would be silent loss."""
    for progress in query.recentProgress:
        for state in progress.stateOperators:
            if state.numRowsDroppedByWatermark:
                raise ValueError(f"Spark's watermark has dropped {state.numRowsDroppedByWatermark} rows: {progress}")


def real_time_query(world: World, session: SparkSession, tile_set: TileSet, topic: str) -> TileQuery:
    """A tile query that is planned for real-time mode, not started."""
    from headrace.log.kafka.log import KafkaLog
    from headrace.spark.admission import judged
    from headrace.spark.pipeline.kafka_pace import KafkaPace
    from headrace.spark.pipeline.publish import QueryPaths
    from headrace.spark.pipeline.tile_query import REAL_TIME, TileQuery
    from headrace.spark.records import real_time_stream, sink_options, stream_of
    from headrace.spark.tiles import Target

    log, stream = world.log, tile_set.stream
    assert isinstance(log, KafkaLog)

    def records(mode: str, pace: KafkaPace) -> DataFrame:
        if mode == REAL_TIME:
            return judged(real_time_stream(session, log, stream.name, pace=pace), stream)
        return judged(stream_of(session, log, stream.name, 500), stream)

    place = QueryPaths(log, world.clock, stream.name, world.folder / "real-time" / tile_set.id)
    target = Target(FIRST_RUN, "on_time", PARTITIONS)
    planned = dataclasses.replace(tile_set, mode=REAL_TIME)
    return TileQuery(planned, target, place, topic, None, records, sink_options(log, topic), batch=BATCH)


def killed_when_written(tile: TileQuery) -> None:
    """Stop a real-time query in the middle of a batch, of which some rows are in the changelog."""
    log, before = tile.place.log, last_batch(tile.place.checkpoint)
    end = log.end_offsets(tile.topic)[0]
    _until(tile, lambda: log.end_offsets(tile.topic)[0] > end)
    tile.query.stop()
    assert last_batch(tile.place.checkpoint) == before, "a batch was committed meanwhile: nothing is run again"


def in_long_batches_after_short_ones(tile: TileQuery) -> None:
    """Go on event by event, in short batches until one has ended, and then a few at a time, as if many came."""
    from headrace.spark.pipeline import kafka_pace as pace
    from headrace.spark.pipeline import tile_query

    tile.batch = tile_query.PRACTICE + SECOND
    with mock.patch.object(tile_query, "PRACTISED", 1), mock.patch.object(pace, "BUSY", 0):
        with mock.patch.object(pace, "BUSY", 2**62):
            tile.in_real_time()
        short = tile.query
        assert tile.pace == pace.ONE_BY_ONE

        def changed() -> bool:
            assert tile.warming
            tile.look()
            return tile.query is not short

        _until(tile, changed)
        assert tile.pace == pace.A_FEW_AT_A_TIME


def committed(tile: TileQuery, batches: int) -> None:
    """Wait until a query has committed so many more batches."""
    wanted = (last_batch(tile.place.checkpoint) or 0) + batches
    _until(tile, lambda: (last_batch(tile.place.checkpoint) or 0) >= wanted)
    _refuse_drops(tile.query)


def read_to_the_end(tile: TileQuery) -> None:
    """Wait until a real-time query has committed all there is, and say so as the pipeline does."""
    log, source = tile.place.log, tile.place.source
    _until(tile, lambda: tile.included() == log.end_offsets(source))
    said = tile.progress()
    assert said is not None
    log.append_batch(tile.topic, [said])
    tile.query.stop()
    _refuse_drops(tile.query)


def _until(tile: TileQuery, reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not reached():
        if not tile.query.isActive or time.monotonic() > deadline:
            raise TimeoutError(f"{tile.query.exception()} {tile.query.lastProgress}")
        time.sleep(0.05)
