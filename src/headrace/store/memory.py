"""A store in this process's memory, for tests and for `headrace.testing`: the fold in its plainest form."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from headrace.store.changelog import Gone, HandOver, Key, ProgressRow, Row, TileRow
from headrace.store.identity import prefix_of
from headrace.store.protocol import END, FIRST, Stats, StoredTile


class MemoryStore:
    """A store in memory; several threads may read while one applies.

    Examples
    --------
    >>> store = MemoryStore()
    >>> store.apply([TileRow("ab", "r", ("42",), 0, "on_time", version=1)], "changelog.x", {0: 1})
    >>> [tile.version for tile in store.tiles("ab", "r", ("42",))], store.position("changelog.x")
    ([1], {0: 1})
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[bytes, dict[tuple[int, str], StoredTile]] = {}
        self._progress: dict[str, dict[str, ProgressRow]] = {}
        self._hand_overs: dict[str, dict[str, HandOver]] = {}
        self._positions: dict[str, dict[int, int]] = {}

    def apply(self, rows: Iterable[Row], topic: str, positions: Mapping[int, int]) -> None:
        """See `Store.apply`."""
        listed = list(rows)
        with self._lock:
            for row in listed:
                match row:
                    case TileRow():
                        self._put(row)
                    case ProgressRow():
                        self._progress.setdefault(row.tile_set, {})[row.run] = row
                    case HandOver():
                        self._hand_overs.setdefault(row.tile_set, {})[row.run] = row
                    case Gone():
                        self._remove(row)
            self._positions[topic] = self._positions.get(topic, {}) | dict(positions)

    def _put(self, row: TileRow) -> None:
        held = self._keys.setdefault(prefix_of(row.tile_set, row.run, row.key), {})
        before = held.get((row.tile, row.lane))
        if before is None or row.version >= before.version:
            held[row.tile, row.lane] = stored(row)

    def _remove(self, gone: Gone) -> None:
        if gone.tile is None:
            self._progress.get(gone.tile_set, {}).pop(gone.run, None)
            self._hand_overs.get(gone.tile_set, {}).pop(gone.run, None)
            return
        prefix = prefix_of(gone.tile_set, gone.run, gone.key)
        held = self._keys.get(prefix, {})
        held.pop((gone.tile, gone.lane), None)
        if not held:
            self._keys.pop(prefix, None)

    def position(self, topic: str) -> dict[int, int]:
        """See `Store.position`."""
        with self._lock:
            return dict(self._positions.get(topic, {}))

    def tiles(self, tile_set: str, run: str, key: Key, low: int = FIRST, high: int = END) -> list[StoredTile]:
        """See `Store.tiles`."""
        with self._lock:
            held = self._keys.get(prefix_of(tile_set, run, key), {})
            return [tile for place, tile in sorted(held.items()) if low <= place[0] < high]

    def holds(self, tile_set: str, run: str, key: Key) -> bool:
        """See `Store.holds`."""
        with self._lock:
            return prefix_of(tile_set, run, key) in self._keys

    def progress(self, tile_set: str) -> dict[str, ProgressRow]:
        """See `Store.progress`."""
        with self._lock:
            return dict(self._progress.get(tile_set, {}))

    def hand_overs(self, tile_set: str) -> dict[str, HandOver]:
        """See `Store.hand_overs`."""
        with self._lock:
            return dict(self._hand_overs.get(tile_set, {}))

    def stats(self) -> Stats:
        """See `Store.stats`; bytes are those of the partial columns."""
        with self._lock:
            tiles = [tile for held in self._keys.values() for tile in held.values()]
            return Stats(len(self._keys), len(tiles), sum(len(tile.partials) for tile in tiles))

    def close(self) -> None:
        """See `Store.close`; memory has nothing to give back."""


def stored(row: TileRow) -> StoredTile:
    """A row without the key it is found by."""
    times = (row.max_event_time, row.max_arrived_at)
    return StoredTile(row.tile, row.lane, row.version, row.partials, row.positions, *times)
