"""How far a run has come, told at every row, where rows come in the order in which records were read.

In real-time mode a row that names an offset comes after the rows of everything before it. So all that had arrived in a
partition before the newest event of a row is in the store together with that row, and what is served is known to be as
fresh as the last event, without anybody having to say so. A progress record says whether a run's rows are in order, and
covers the partitions and times in which nothing comes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from headrace.store.protocol import Store
from headrace.tiles.changelog import Gone, ProgressRow, Row, TileRow


class InOrder:
    """Follows the rows of a changelog.

    Examples
    --------
    >>> from headrace.store.memory import MemoryStore
    >>> said = ProgressRow("ab", "1", {0: 5}, as_of=70, ordered=True)
    >>> row = TileRow("ab", "1", ("ann",), 0, "on_time", 1, positions={0: 9}, max_arrived_at=90)
    >>> InOrder(MemoryStore()).told([said, row])
    [ProgressRow(tile_set='ab', run='1', positions={0: 9}, as_of=90, ordered=True, late_as_of=None)]
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._said: dict[tuple[str, str], ProgressRow | None] = {}
        self._arrived: dict[tuple[str, str], dict[int, tuple[int, int]]] = {}

    def told(self, rows: Iterable[Row]) -> list[ProgressRow]:
        """What these rows say beyond the progress records among them, for each run that they are of."""
        moved = set()
        for row in rows:
            run = (row.tile_set, row.run)
            if isinstance(row, ProgressRow) or (isinstance(row, Gone) and row.tile is None):
                self._said[run] = row if isinstance(row, ProgressRow) else None
                if not (isinstance(row, ProgressRow) and row.ordered):
                    self._arrived.pop(run, None)
                moved.add(run)
            elif isinstance(row, TileRow) and row.lane == "on_time" and self._take(run, row):
                moved.add(run)
        return [found for run in sorted(moved) if (found := self._reached(run)) is not None]

    def _last(self, run: tuple[str, str]) -> ProgressRow | None:
        if run not in self._said:
            self._said[run] = self._store.progress(run[0]).get(run[1])
        return self._said[run]

    def _take(self, run: tuple[str, str], row: TileRow) -> bool:
        """Remember the newest event of a row, if it is known which partition it came from."""
        last = self._last(run)
        if last is None or not last.ordered or len(row.positions) != 1 or row.max_arrived_at is None:
            return False
        ((partition, offset),) = row.positions.items()
        held = self._arrived.setdefault(run, {})
        held[partition] = max(held.get(partition, (0, 0)), (offset, row.max_arrived_at))
        return True

    def _reached(self, run: tuple[str, str]) -> ProgressRow | None:
        last, arrived = self._said.get(run), self._arrived.get(run)
        if last is None or not arrived:
            return None
        nothing = (0, 0)
        as_of = min(max(last.as_of, arrived.get(p, nothing)[1]) for p in last.positions)
        positions = {p: max(offset, arrived.get(p, nothing)[0]) for p, offset in last.positions.items()}
        reached = msgspec.structs.replace(last, positions=positions, as_of=as_of)
        return reached if reached != last else None
