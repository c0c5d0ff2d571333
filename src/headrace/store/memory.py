"""A store in this process's memory, for tests and for `headrace.testing`: the fold in its plainest form."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from headrace.store.memory_key import KeyInMemory
from headrace.store.protocol import Stats, StoredTile, StoreRead
from headrace.tiles.changelog import Gone, HandOver, Key, ProgressRow, Row, TileRow
from headrace.tiles.expiry import horizons, other_base, outgrown
from headrace.tiles.identity import prefix_of, run_of
from headrace.tiles.level_growth import MOST
from headrace.tiles.levels import BASE, END, EVER, FIRST, Band, Fold, LevelLayout, ReadPiece
from headrace.tiles.run_choice import choose_run


class MemoryStore:
    """A store in memory; several threads may read while one applies.

    Examples
    --------
    >>> store = MemoryStore()
    >>> store.apply([TileRow("ab", "r", ("42",), 0, "on_time", version=1)], "changelog.x", {0: 1})
    >>> [tile.version for tile in store.tiles("ab", "r", ("42",))], store.position("changelog.x")
    ([1], {0: 1})
    """

    bulk = 1

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[bytes, KeyInMemory] = {}
        self._progress: dict[str, dict[str, ProgressRow]] = {}
        self._hand_overs: dict[str, dict[str, HandOver]] = {}
        self._positions: dict[str, dict[int, int]] = {}
        self._folds: dict[str, Fold] = {}
        self._due: dict[bytes, Fold] = {}
        self._expired: dict[tuple[str, str], int] = {}
        self._filling = False

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
        prefix = prefix_of(row.tile_set, row.run, row.key)
        held = self._keys.setdefault(prefix, KeyInMemory(row.tile_set))
        before = held.tiles.get((row.tile, 0, row.lane))
        if row.tile < self._expired.get((row.tile_set, row.run), FIRST) and not held.takes(
            row, self._folds[row.tile_set]
        ):
            if held.empty:
                self._keys.pop(prefix)
        elif before is None or row.version >= before.version:
            held.put(row, self._folds.get(row.tile_set))
            self._note(prefix, held)

    def _remove(self, gone: Gone) -> None:
        if gone.tile is None:
            self._progress.get(gone.tile_set, {}).pop(gone.run, None)
            self._hand_overs.get(gone.tile_set, {}).pop(gone.run, None)
            return
        prefix = prefix_of(gone.tile_set, gone.run, gone.key)
        held = self._keys.get(prefix)
        if held is not None:
            held.remove((gone.tile, 0, gone.lane), self._folds.get(gone.tile_set))
            self._note(prefix, held)
            if held.empty:
                self._keys.pop(prefix)
                self._due.pop(prefix, None)

    def _note(self, prefix: bytes, held: KeyInMemory) -> None:
        if held.growth.due and held.tile_set in self._folds:
            self._due[prefix] = self._folds[held.tile_set]

    def position(self, topic: str) -> dict[int, int]:
        """See `Store.position`."""
        with self._lock:
            return dict(self._positions.get(topic, {}))

    def snapshot(self) -> AbstractContextManager[bool]:
        """See `Store.snapshot`: every read is of its own."""
        return nullcontext(False)

    def tiles(self, tile_set: str, run: str, key: Key, low: int = FIRST, high: int = END) -> list[StoredTile]:
        """See `Store.tiles`."""
        with self._lock:
            held = self._keys.get(prefix_of(tile_set, run, key))
            return [] if held is None else held.between(low, high)

    def read(
        self,
        tile_set: str,
        keys: Sequence[Key],
        bands: Sequence[Band],
        *,
        run: str | None = None,
        layout: LevelLayout | None = None,
    ) -> StoreRead:
        """See `Store.read`."""
        with self._lock:
            progress, hand_overs = self._progress.get(tile_set, {}), self._hand_overs.get(tile_set, {})
            read, said = choose_run(progress, hand_overs, run)
            fold = self._folds.get(tile_set)
            usable = layout if fold is not None and fold.layout == layout else None
            found = [self._pieces(tile_set, read, key, bands, usable) for key in keys]
            return StoreRead(read, said, found, self._expired.get((tile_set, read or "")), self._filling)

    def _pieces(
        self, tile_set: str, run: str | None, key: Key, bands: Sequence[Band], layout: LevelLayout | None
    ) -> list[ReadPiece] | None:
        held = None if run is None else self._keys.get(prefix_of(tile_set, run, key))
        if held is None:
            return None
        found = held.covered(bands, layout)
        if held.base is None or not bands or bands[0].low > EVER:
            return found
        if layout is None:
            raise other_base()
        return [ReadPiece(bands[0].low, BASE, held.base[1]), *found]

    def fold_with(self, folds: Mapping[str, Fold]) -> None:
        """See `Store.fold_with`."""
        with self._lock:
            for tile_set, fold in folds.items():
                known = self._folds.get(tile_set)
                self._folds[tile_set] = fold
                gone = any(each == tile_set for each, _ in self._expired)
                if known is not None and gone and outgrown(known.layout, fold.layout):
                    self._clear()
                if known is None or known.layout != fold.layout:
                    for prefix, held in self._keys.items():
                        if held.tile_set == tile_set:
                            held.forget_levels()
                            self._note(prefix, held)

    def compact(self, most: int = MOST) -> int:
        """See `Store.compact`."""
        done = 0
        while done < most and self._due:
            with self._lock:
                prefix, fold = self._due.popitem()
                done += self._keys[prefix].grow(fold, most - done)
                self._note(prefix, self._keys[prefix])
        return done

    def check(self) -> None:
        """See `Store.check`; nobody reaches into memory."""

    def clear(self) -> None:
        """See `Store.clear`."""
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        for held in (self._keys, self._progress, self._hand_overs, self._positions, self._due, self._expired):
            held.clear()

    def mark_filling(self, filling: bool) -> None:
        """See `Store.mark_filling`."""
        self._filling = filling

    def expire(self, most: int = MOST) -> int:
        """See `Store.expire`; memory is looked at in one go."""
        del most
        with self._lock:
            for prefix, held in list(self._keys.items()):
                fold, run = self._folds.get(held.tile_set), run_of(prefix)
                if fold is not None:
                    progress, begun = self._progress.get(held.tile_set, {}), self._hand_overs.get(held.tile_set, {})
                    before = horizons(fold.layout, progress, begun).get(run)
                    if before is not None and held.expire(before, fold):
                        known = self._expired.get((held.tile_set, run), before)
                        self._expired[held.tile_set, run] = max(known, before)
                    if held.empty:
                        self._keys.pop(prefix)
                        self._due.pop(prefix, None)
        return 0

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
            tiles = [tile.partials for held in self._keys.values() for tile in held.tiles.values()]
            levels = [piece.partials for held in self._keys.values() for piece in held.levels.values()]
            return Stats(len(self._keys), len(tiles), sum(map(len, tiles)) + sum(map(len, levels)), len(levels))

    def close(self) -> None:
        """See `Store.close`; memory has nothing to give back."""
