"""How far a real-time query has come between the ends of its batches, told from the rows it has written.

Spark tells nothing of a real-time batch before its end, which is minutes away. But rows leave the query in the order
in which it read each partition, as long as it has one task for each of its steps: a row that names an offset comes
after everything that was read before. Whoever reads all rows anyway knows as much at every row
(`store.implied_progress`); here only the last ones are looked at, now and then, for the times in which nothing comes.
What stands behind the last row without leaving one (refused, late or filtered records) is looked at too. A duplicate
cannot be told from a record that is still under way; then the time stands still until the next record or the end of
the batch, which is safe: it is said to be older than it is.
"""

from __future__ import annotations

from headrace.clock import Clock
from headrace.log.protocol import Log
from headrace.meaning.verdict import reader
from headrace.plan.model import TileSet
from headrace.spark.progress import GUARD
from headrace.tiles.changelog_format import positions_of, prefix

TAIL = 200
"""How many of the last rows, and how many records behind them in each partition, are looked at."""


class RealTimeProgress:
    """Follows a run's rows in its changelog."""

    def __init__(self, tile_set: TileSet, run: str, log: Log, source: str, changelog: str) -> None:
        self.log, self.source, self.changelog = log, source, changelog
        self._mine = prefix(tile_set.fingerprint, run)
        self._judge, self._wanted = reader(tile_set.stream), tile_set.where.python() if tile_set.where else None
        (self._at,) = log.end_offsets(changelog).values()
        self._partitions = len(log.end_offsets(source))
        self.included: dict[int, int] = {}

    def look(self, committed: dict[int, int], clock: Clock) -> tuple[dict[int, int], int]:
        """The offsets that follow what is in the tiles, and the time before which everything is."""
        now = clock.now() - GUARD
        self._follow()
        moments = [now]
        ends = self.log.end_offsets(self.source)
        if len(ends) != self._partitions:
            # The query was made for those there were: new ones would be read late, or only when the others end.
            raise RuntimeError(f"topic {self.source} had {self._partitions} partitions and has {len(ends)} now")
        for partition, end in ends.items():
            at = max(self.included.get(partition, 0), committed.get(partition, 0))
            self.included[partition], waiting = self._past_the_silent(partition, at, end)
            moments += [] if waiting is None else [waiting]
        return dict(self.included), min(moments)

    def _follow(self) -> None:
        (end,) = self.log.end_offsets(self.changelog).values()
        at, self._at = max(self._at, end - TAIL), end
        for record in self.log.peek(self.changelog, 0, at, limit=TAIL) if at < end else ():
            if record.key is not None and record.value is not None and record.key.startswith(self._mine):
                for source, offset in positions_of(record.value).items():
                    self.included[source] = max(self.included.get(source, 0), offset)

    def _past_the_silent(self, partition: int, at: int, end: int) -> tuple[int, int | None]:
        """The next offset after records that leave no row, and when what is there arrived at the earliest."""
        arrived = None
        for record in self.log.peek(self.source, partition, at, limit=TAIL) if at < end else ():
            judged, arrived = self._judge(record), record.arrived_at
            counts = judged.verdict == "admitted" and not judged.closed and judged.event is not None
            if counts and (self._wanted is None or self._wanted(judged.event.row) is True):  # type: ignore[union-attr]
                return record.offset, arrived
            at = record.offset + 1
        return at, arrived if at < end else None
