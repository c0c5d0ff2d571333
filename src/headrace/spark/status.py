"""How the pipeline is doing, told in a topic: lag, batches, state, alarms.

What became of records is the archive's word; `headrace.standing` puts the two together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.alarms.alarm import Alarm
from headrace.clock import SECOND, Clock
from headrace.log.protocol import Log
from headrace.spark.pipeline.tile_status import TileStatus
from headrace.spark.progress import as_of

if TYPE_CHECKING:
    from headrace.spark.pipeline.tile_query import TileQuery

COMPONENT = "pipeline"
EVERY = SECOND


class Status:
    """Publishes the state of the queries, at most once a second."""

    def __init__(self, log: Log, topic: str, clock: Clock) -> None:
        self.log, self.topic, self.clock = log, topic, clock
        self._last = 0
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
        about_runs: Mapping[str, Any],
        following: Sequence[TileQuery] = (),
        alarms: Sequence[Alarm] = (),
    ) -> None:
        """Append one record under this component's key; `following` are runs on their way to take others' place.

        `alarms` are those that no query tells of.
        """
        now = self.clock.now()
        if now - self._last < EVERY:
            return
        self._last = now
        for tile in (*tiles, *following):
            self.of(tile).look(now)
        progress = {tile.tile_set.id: self.of(tile).told(now) for tile in tiles}
        told = {
            "component": COMPONENT,
            "at": now,
            "streams": self._streams(tiles, now),
            "tile_sets": progress,
            **about_runs,
            "alarms": [
                alarm.as_json() for alarm in (*alarms, *(each for tile in tiles for each in self.of(tile).alarms(now)))
            ],
        }
        self.log.append(self.topic, json.dumps(told, separators=(",", ":")).encode(), key=COMPONENT.encode())

    def forget(self, tile: TileQuery) -> None:
        """Another run has taken the place of this one, which is told of no more."""
        self._tiles.pop((tile.tile_set.id, tile.target.run), None)

    def _streams(self, tiles: Sequence[TileQuery], now: int) -> dict[str, Any]:
        """How far each stream has come, by the first tile query that reads it."""
        first: dict[str, TileQuery] = {}
        for tile in tiles:
            first.setdefault(tile.tile_set.stream.name, tile)
        return {name: self._stream(name, tile, now) for name, tile in first.items()}

    def _stream(self, name: str, tile: TileQuery, now: int) -> dict[str, Any]:
        source = tile.place.source
        reached, ends = self.log.start_offsets(source) | tile.reached(), self.log.end_offsets(source)
        done = sum(reached.values())
        before, seen = self._done.get(name, (now, done))
        self._done[name] = (now, done)
        return {
            "included": {str(partition): reached[partition] for partition in ends},
            "lag_events": sum(end - reached[partition] for partition, end in ends.items()),
            "lag_seconds": max(0, now - as_of(self.log, source, reached, self.clock)) / SECOND,
            "rate_per_s": round((done - seen) / ((now - before) / SECOND), 1) if now > before else 0.0,
        }
