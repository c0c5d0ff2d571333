"""How far a real-time query has come between the ends of its batches, told from the rows it has written.

Spark tells nothing of a real-time batch before its end, which is minutes away. But rows leave the query in the order in
which it read each partition, as long as it has one task for each of its steps: a row that names an offset comes after
everything that was read before. What stands behind the last row without leaving one (refused, late or filtered
records) is looked at here. A duplicate cannot be told from a record that is still under way; then the time stands still
until the next record or the end of the batch, which is safe: it is said to be older than it is.
"""

from __future__ import annotations

from headrace.clock import Clock
from headrace.log.protocol import Log
from headrace.plan.model import TileSet
from headrace.run.progress import as_of
from headrace.run.verdict import reader
from headrace.store.changelog import positions_of

PART = 5_000
TAIL = 200
"""How many records behind the last row are looked at, in each partition."""


class RealTimeProgress:
    """Follows a run's rows in its changelog."""

    def __init__(self, tile_set: TileSet, run: str, log: Log, source: str, changelog: str) -> None:
        self.log, self.source, self.changelog = log, source, changelog
        self._mine = f'{{"tiles":"{tile_set.fingerprint}","run":"{run}",'.encode()
        self._judge, self._wanted = reader(tile_set.stream), tile_set.where.python() if tile_set.where else None
        self._at = log.end_offsets(changelog)
        self.included: dict[int, int] = {}

    def look(self, committed: dict[int, int], clock: Clock) -> tuple[dict[int, int], int]:
        """The offsets that follow what is in the tiles, and the time before which everything is."""
        self._follow()
        for partition, offset in committed.items():
            self.included[partition] = max(self.included.get(partition, 0), offset)
        for partition, end in self.log.end_offsets(self.source).items():
            self.included[partition] = self._past_the_silent(partition, self.included.get(partition, 0), end)
        return dict(self.included), as_of(self.log, self.source, self.included, clock)

    def _follow(self) -> None:
        for partition in self._at:
            while found := self.log.read(self.changelog, partition, self._at[partition], limit=PART):
                self._at[partition] = found[-1].offset + 1
                for record in found:
                    if record.key is not None and record.value is not None and record.key.startswith(self._mine):
                        for source, offset in positions_of(record.value).items():
                            self.included[source] = max(self.included.get(source, 0), offset)

    def _past_the_silent(self, partition: int, at: int, end: int) -> int:
        """The next offset after records that leave no row."""
        if at >= end:
            return at
        for record in self.log.read(self.source, partition, at, limit=TAIL):
            judged = self._judge(record)
            counts = judged.verdict == "admitted" and not judged.closed and judged.event is not None
            if counts and (self._wanted is None or self._wanted(judged.event.row) is True):  # type: ignore[union-attr]
                return record.offset
            at = record.offset + 1
        return at
