"""What one tile query has told so far: batches, state, dropped rows, hot keys.

Spark tells of a batch after it has committed it. What must survive a restart is kept in a small file beside the query's
checkpoint. `spark.status` puts it together with everything else.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headrace.alarms.alarm import DROPPED, StreamAlarm, dropped_alarm, hot_key_alarm
from headrace.alarms.hot_keys import HotKeys
from headrace.clock import show_time
from headrace.plan.model import TileSet
from headrace.spark.durable_counts import Tally
from headrace.spark.pipeline import hot_keys, query_state
from headrace.status.records import HotKeyShare, TileSetStatus

if TYPE_CHECKING:
    from headrace.spark.pipeline.tile_query import TileQuery

SINCE = "since"


class TileStatus:
    """Follows one tile query by the progress it makes."""

    def __init__(self, tile: TileQuery) -> None:
        self.tile = tile
        self.dropped = Tally(tile.place.checkpoint / "headrace" / "dropped.json")
        self.keys = HotKeys()
        self._seen, self._newest = -1, 0
        self._last: Any = None

    @property
    def lost(self) -> int:
        """How many rows the watermark has dropped, which the run's tiles lack."""
        return self.dropped.totals.get(DROPPED, 0)

    def look(self, now: int) -> None:
        """Take in what the query has told since the last look."""
        for told in self.tile.query.recentProgress:
            # An idle query tells of the batch it has not run yet; only what added rows is a batch.
            if told.batchId > self._seen and "addBatch" in told.durationMs:
                self._take(told, now)
                self._seen, self._last = told.batchId, told

    def _take(self, told: Any, now: int) -> None:
        dropped = sum(each.numRowsDroppedByWatermark for each in told.stateOperators)
        if dropped and told.batchId > self.dropped.batch:
            since = {} if SINCE in self.dropped.totals else {SINCE: now}
            self.dropped.add(told.batchId, {DROPPED: dropped, **since})
        self.keys.feed(now, *hot_keys.counted(told))
        self._newest = max(self._newest, query_state.newest(told) or 0)

    def status(self, now: int) -> TileSetStatus:
        """How the query is doing."""
        status = TileSetStatus(
            dropped_by_watermark=self.lost,
            run=self.tile.target.run,
            mode=self.tile.mode,
            warming=self.tile.warming,
            checkpoint=self.tile.place.checkpoint.name,
            hot_keys=[HotKeyShare(key=json.loads(key), share=round(share, 4)) for key, share in self.keys.top(now)],
            hot_keys_of=self.keys.events(now),
        )
        if self._last is not None:
            status.batch, status.batch_ms = self._last.batchId, self._last.batchDuration
            status.operators = operators = query_state.operator_states(self._last)
            status.state_rows = sum(state.rows for state in operators.values())
            status.state_bytes = sum(state.memory_bytes for state in operators.values())
            status.watermark = _shown(query_state.watermark(self._last))
            status.newest = _shown(self._newest or None)
        return status

    def alarms(self, now: int) -> list[StreamAlarm]:
        """What is wrong: rows that the watermark dropped, and keys that much of what is read belongs to."""
        tile_set, rows = self.tile.tile_set, self.lost
        of = (tile_set.stream.name, tile_set.id)
        found = [dropped_alarm(*of, rows, self.dropped.totals[SINCE])] if rows else []
        hot = self.keys.hot(now)
        return found + [hot_key_alarm(*of, shown_key(tile_set, one.key), one.share, hot[one]) for one in hot]


def _shown(moment: int | None) -> str | None:
    return None if moment is None else show_time(moment)


def shown_key(tile_set: TileSet, key: str) -> str:
    """A key as people read it."""
    parts = json.loads(key)
    return ", ".join(f"{name}={parts.get(name, 'null')}" for name, _ in tile_set.key)
