"""How the pipeline is doing, told in a topic: verdict counts, lag, batches, state, alarms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.clock import SECOND, Clock
from headrace.log.protocol import Log
from headrace.run.progress import as_of, last_batch, last_batch_end
from headrace.run.tally import Tally
from headrace.run.verdict import VERDICTS
from headrace.watch.alarm import DROPPED, Alarm, dropped_alarm

if TYPE_CHECKING:
    from headrace.run.pipeline import AdmissionQuery, TileQuery

COMPONENT = "pipeline"
EVERY = SECOND


class Status:
    """Publishes the state of the queries, at most once a second."""

    def __init__(self, log: Log, topic: str, clock: Clock) -> None:
        self.log, self.topic, self.clock = log, topic, clock
        self._last = 0
        self._read: dict[str, tuple[int, int]] = {}
        self._duplicates: dict[str, Tally] = {}
        self._inherited: dict[str, int | None] = {}
        self._dropping: dict[str, int] = {}

    def publish(
        self, admissions: Sequence[AdmissionQuery], tiles: Sequence[TileQuery], about_runs: Mapping[str, Any]
    ) -> None:
        """Append one record under this component's key."""
        now = self.clock.now()
        if now - self._last < EVERY:
            return
        self._last = now
        progress = {tile.tile_set.id: self._tile_progress(tile) for tile in tiles}
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
        """A run takes the place of another: it has read the same, and counts on from there."""
        self._tile_progress(old)
        tally = Tally(_file(new))
        tally.totals, tally.batch = dict(self._duplicates[old.tile_set.id].totals), -1
        tally.add(last_batch(new.place.checkpoint) or 0, {})
        self._duplicates[new.tile_set.id] = tally
        self._inherited[new.tile_set.id] = tally.batch

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
            found = self._duplicates[reader.tile_set.id]
            told = last_batch(reader.place.checkpoint) in (found.batch, self._inherited[reader.tile_set.id])
            settled = settled and included == ends and told
            counts["duplicate"] = min(found.totals.get("duplicate", 0), counts["admitted"])
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

    def _tile_progress(self, tile: TileQuery) -> dict[str, Any]:
        """What Spark says of the query's last batches; duplicates are added up from all of them."""
        if tile.tile_set.id not in self._duplicates:
            self._duplicates[tile.tile_set.id] = Tally(_file(tile))
            self._inherited[tile.tile_set.id] = last_batch(tile.place.checkpoint)
        tally = self._duplicates[tile.tile_set.id]
        # An idle query tells of the batch it has not run yet; only what added rows is a batch.
        run = [told for told in tile.query.recentProgress if "addBatch" in told.durationMs]
        for told in run:
            if told.batchId > tally.batch:
                dropped = sum(state.numRowsDroppedByWatermark for state in told.stateOperators)
                tally.add(told.batchId, {"duplicate": _metric(told, "numDroppedDuplicateRows"), DROPPED: dropped})
        if not run:
            return {"batch": None, DROPPED: tally.totals.get(DROPPED, 0), "run": tile.target.run}
        last = run[-1]
        states = last.stateOperators
        return {
            "batch": last.batchId,
            "batch_ms": last.batchDuration,
            "state_rows": sum(state.numRowsTotal for state in states),
            "state_bytes": sum(state.memoryUsedBytes for state in states),
            DROPPED: tally.totals.get(DROPPED, 0),
            "run": tile.target.run,
        }

    def _alarms(self, admissions: Sequence[AdmissionQuery], tiles: Sequence[TileQuery], now: int) -> list[Alarm]:
        """What is wrong: rates that jumped, arrivals that went back, and rows that the watermark dropped."""
        found = [alarm for running in admissions for alarm in running.watch.alarms()]
        for tile in tiles:
            name, dropped = tile.tile_set.id, self._duplicates[tile.tile_set.id].totals.get(DROPPED, 0)
            if dropped:
                since = self._dropping.setdefault(name, now)
                found.append(dropped_alarm(tile.tile_set.stream.name, name, dropped, since))
        return found


def _file(tile: TileQuery) -> Path:
    return tile.place.checkpoint / "headrace" / "duplicates.json"


def _metric(progress: Any, name: str) -> int:
    return sum(int(state.customMetrics.get(name, 0)) for state in progress.stateOperators)
