"""The status of the pipeline: lag, batches, state, alarms.

What became of records is in the archive's status; `status.streams` puts the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.alarms.alarm import StreamAlarm
from headrace.clock import SECOND, Clock
from headrace.log.protocol import Log
from headrace.spark.pipeline.tile_status import TileStatus
from headrace.spark.progress import as_of
from headrace.status.records import PipelineStatus, StreamProgress
from headrace.status.topic import StatusPublisher

if TYPE_CHECKING:
    from headrace.spark.pipeline.tile_query import TileQuery


class Status:
    """Publishes the state of the queries, at most once a second."""

    def __init__(self, log: Log, topic: str, clock: Clock) -> None:
        self.log, self.clock = log, clock
        self._publisher = StatusPublisher(log, topic, clock)
        self._done: dict[str, tuple[int, int]] = {}
        self._tiles: dict[tuple[str, str], TileStatus] = {}

    def of(self, tile: TileQuery) -> TileStatus:
        """What a tile query has told."""
        key = (tile.tile_set.id, tile.target.run)
        held = self._tiles.get(key)
        if held is None or held.tile is not tile:
            held = self._tiles[key] = TileStatus(tile)
        return held

    def publish(
        self,
        tiles: Sequence[TileQuery],
        following: Sequence[TileQuery] = (),
        alarms: Sequence[StreamAlarm] = (),
    ) -> None:
        """Publish the status; `following` are runs that are about to serve, `alarms` are those that no query has."""
        if not self._publisher.is_due():
            return
        now = self.clock.now()
        for tile in (*tiles, *following):
            self.of(tile).look(now)
        raised = [*alarms, *(alarm for tile in tiles for alarm in self.of(tile).alarms(now))]
        self._publisher.publish(
            PipelineStatus(
                streams=self._streams(tiles, now),
                tile_sets={tile.tile_set.id: self.of(tile).status(now) for tile in tiles},
                following={tile.tile_set.id: tile.target.run for tile in following},
                alarms=[alarm.status() for alarm in raised],
            )
        )

    def forget(self, tile: TileQuery) -> None:
        """Another run has taken the place of this one, which is told of no more."""
        self._tiles.pop((tile.tile_set.id, tile.target.run), None)

    def _streams(self, tiles: Sequence[TileQuery], now: int) -> dict[str, StreamProgress]:
        """How far each stream has come, by the first tile query that reads it."""
        first: dict[str, TileQuery] = {}
        for tile in tiles:
            first.setdefault(tile.tile_set.stream.name, tile)
        return {name: self._stream(name, tile, now) for name, tile in first.items()}

    def _stream(self, name: str, tile: TileQuery, now: int) -> StreamProgress:
        source = tile.place.source
        reached, ends = self.log.start_offsets(source) | tile.reached(), self.log.end_offsets(source)
        done = sum(reached.values())
        before, seen = self._done.get(name, (now, done))
        self._done[name] = (now, done)
        return StreamProgress(
            included={partition: reached[partition] for partition in ends},
            lag_events=sum(end - reached[partition] for partition, end in ends.items()),
            lag_seconds=max(0, now - as_of(self.log, source, reached, self.clock)) / SECOND,
            rate_per_s=round((done - seen) / ((now - before) / SECOND), 1) if now > before else 0.0,
        )
