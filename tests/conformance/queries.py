"""Tile queries as the live pipeline has them, started, stopped and killed at will."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headrace.plan.model import TileSet
from headrace.store import HandOver
from headrace.store.runs import FIRST_RUN
from tests.conformance.definitions import PARTITIONS
from tests.conformance.world import World

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PATIENCE = 180
"""Seconds."""


class DiedError(Exception):
    """What stands for a process that is killed after it has published a batch and before Spark has noted that."""


def started(
    world: World,
    session: SparkSession,
    tile_set: TileSet,
    most: int,
    *,
    dies: bool = False,
    begun: HandOver | None = None,
) -> StreamingQuery:
    """A tile query as `run.pipeline` has it, to the end of the log."""
    from headrace.run.admit import judged
    from headrace.run.hot_keys import watched
    from headrace.run.publish import Place, tiles_to_changelog
    from headrace.run.reach import happens_in_stream
    from headrace.run.records import stream_of
    from headrace.run.tiles import Target, admitted_once, changelog, tiles

    stream, target = tile_set.stream, Target(begun.run if begun else FIRST_RUN, "on_time", PARTITIONS)
    place = Place(world.log, world.clock, stream.name, world.folder / "checkpoints" / tile_set.id)
    publish = tiles_to_changelog(place, tile_set, target, f"changelog.{tile_set.id}")
    records = stream_of(session, world.log, stream.name, most, begun.begin if begun else None)
    once = admitted_once(judged(records, stream).where(happens_in_stream(begun)), tile_set)
    rows = changelog(tiles(watched(once, tile_set), tile_set, PARTITIONS), tile_set, target)

    def published(batch: DataFrame, number: int) -> None:
        publish(batch, number)
        if dies:
            raise DiedError(f"after batch {number}")

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
