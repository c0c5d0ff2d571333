"""How the pipeline is doing, told in a topic: verdict counts, lag, batches, state, alarms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.clock import SECOND, Clock
from headrace.log.protocol import Log
from headrace.run.progress import as_of, last_batch_end
from headrace.run.tile_status import DUPLICATE, TileStatus
from headrace.run.verdict import VERDICTS
from headrace.watch.alarm import Alarm

if TYPE_CHECKING:
    from headrace.run.pipeline import AdmissionQuery
    from headrace.run.tile_query import TileQuery

COMPONENT = "pipeline"
EVERY = SECOND


class Status:
    """Publishes the state of the queries, at most once a second."""

    def __init__(self, log: Log, topic: str, clock: Clock) -> None:
        self.log, self.topic, self.clock = log, topic, clock
        self._last = 0
        self._read: dict[str, tuple[int, int]] = {}
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
        admissions: Sequence[AdmissionQuery],
        tiles: Sequence[TileQuery],
        about_runs: Mapping[str, Any],
        following: Sequence[TileQuery] = (),
    ) -> None:
        """Append one record under this component's key; `following` are runs on their way to take others' place."""
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
            "streams": {running.stream.name: self._stream(running, tiles, now) for running in admissions},
            "tile_sets": progress,
            **about_runs,
            "alarms": [alarm.as_json() for alarm in self._alarms(admissions, tiles, now)],
        }
        self.log.append(self.topic, json.dumps(told, separators=(",", ":")).encode(), key=COMPONENT.encode())

    def inherit(self, old: TileQuery, new: TileQuery) -> None:
        """A run takes the place of another, which is told of no more."""
        for tile in (old, new):
            self.of(tile).look(self.clock.now())
        self.of(new).inherit(self.of(old))
        del self._tiles[old.tile_set.id, old.target.run]

    def _stream(self, running: AdmissionQuery, tiles: Sequence[TileQuery], now: int) -> dict[str, Any]:
        """Counts and lag of a stream. Duplicates are found by the first tile query that reads it.

        The two queries go at their own pace; `settled` says that both have counted everything there is. Spark tells
        of a batch's duplicates only after it has committed the batch: those of a batch whose process died right then
        stay counted as admitted, although no value has them twice.
        """
        name = running.stream.name
        counts = {verdict: running.tally.totals.get(verdict, 0) for verdict in VERDICTS}
        read = sum(counts.values())
        ends = self.log.end_offsets(running.place.source)
        settled = last_batch_end(running.place.checkpoint) == ends
        reader = next((tile for tile in tiles if tile.tile_set.stream.name == name), None)
        included = last_batch_end((reader or running).place.checkpoint) or {}
        if reader is not None:
            found = self.of(reader)
            settled = settled and included == ends and found.settled
            counts["duplicate"] = min(found.duplicates.totals.get(DUPLICATE, 0), counts["admitted"])
            counts["admitted"] -= counts["duplicate"]
        before, seen = self._read.get(name, (now, read))
        self._read[name] = (now, read)
        return {
            "read": read,
            "included": {str(partition): included.get(partition, 0) for partition in ends},
            "verdicts": counts,
            "settled": settled,
            "lag_events": sum(end - included.get(partition, 0) for partition, end in ends.items()),
            "lag_seconds": max(0, now - as_of(self.log, running.place.source, included, self.clock)) / SECOND,
            "rate_per_s": round((read - seen) / ((now - before) / SECOND), 1) if now > before else 0.0,
        }

    def _alarms(self, admissions: Sequence[AdmissionQuery], tiles: Sequence[TileQuery], now: int) -> list[Alarm]:
        """What is wrong with streams and with tiles."""
        streams = [alarm for running in admissions for alarm in running.watch.alarms()]
        return streams + [alarm for tile in tiles for alarm in self.of(tile).alarms(now)]
