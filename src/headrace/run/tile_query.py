"""The query that computes the tiles of one run, from the log into the changelog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.plan.model import TileSet
from headrace.run.hot_keys import watched
from headrace.run.progress import last_batch_end
from headrace.run.publish import Place, tiles_to_changelog
from headrace.run.reach import happens_in_stream
from headrace.run.tiles import Target, admitted_once, changelog, tiles
from headrace.store.changelog import HandOver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

AT_ONCE = "0 seconds"
"""Tiles go as fast as they can."""


@dataclass(frozen=True)
class TileQuery:
    """A running tile query and what its rows are for."""

    tile_set: TileSet
    target: Target
    place: Place
    topic: str
    query: StreamingQuery
    hand_over: HandOver | None = None

    def included(self) -> dict[int, int] | None:
        """The offsets that follow what is in the tiles; None before the first batch."""
        return last_batch_end(self.place.checkpoint)

    def stop(self) -> None:
        """End it; a batch under way is run again at the next start."""
        self.query.stop()


def start(
    judged: DataFrame, tile_set: TileSet, hand_over: HandOver | None, target: Target, place: Place, topic: str
) -> TileQuery:
    """Start the query of a run over its stream's judged records."""
    once = watched(admitted_once(judged.where(happens_in_stream(hand_over)), tile_set), tile_set)
    rows = changelog(tiles(once, tile_set, target.partitions), tile_set, target)
    name = tile_set.id if hand_over is None else f"{tile_set.id} run {target.run}"
    writer = rows.writeStream.queryName(name).outputMode("update").option("checkpointLocation", str(place.checkpoint))
    publish = tiles_to_changelog(place, tile_set, target, topic)
    query = writer.foreachBatch(publish).trigger(processingTime=AT_ONCE).start()
    return TileQuery(tile_set, target, place, topic, query, hand_over)
