"""The default store: a memory-mapped file that needs no service, written by one process and read by many.

A key's tiles and level rows lie side by side in the order of time, so that reading them is one walk. `environment` has
the files, `identity` the order, `lmdb_rows` the rows of a key, `lmdb_change` what a batch does to them, `damage` what
becomes of files that cannot be trusted.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from headrace.faults import NO_FAULTS, FaultPoints
from headrace.store import damage
from headrace.store.lmdb.environment import FIRST_SIZE, Environment, lock_writer
from headrace.store.lmdb.expire import Sweep
from headrace.store.lmdb.meta import Meta
from headrace.store.lmdb.read import StoreQuery, looked_up
from headrace.store.lmdb.relayout import Arranging
from headrace.store.lmdb.rows import KeyRows
from headrace.store.lmdb.write import Changing
from headrace.store.protocol import Stats, StoredTile, StoreRead
from headrace.store.row_bytes import DamagedError, folded
from headrace.tiles.changelog import HandOver, Key, ProgressRow, Row
from headrace.tiles.expiry import outgrown
from headrace.tiles.identity import fitted, prefix_of
from headrace.tiles.level_growth import MOST
from headrace.tiles.levels import END, FIRST, Band, Fold, LevelLayout

_logger = logging.getLogger(__name__)


class LmdbStore:
    """A store in a folder.

    Parameters
    ----------
    folder
        Where the files are; created by the writer. A local disk.
    readonly
        True for a process that only reads; there can be any number beside the one writer.
    map_size
        Bytes to map at first; it doubles when it is full.
    mend
        Whether files that cannot be trusted are set aside and the store begun anew, to be filled from the changelog.
    faults
        Hears of every commit; for tests.

    Examples
    --------
    >>> import tempfile
    >>> from headrace.tiles.changelog import TileRow
    >>> with LmdbStore(tempfile.mkdtemp()) as store:
    ...     store.apply([TileRow("ab", "r", ("42",), 0, "on_time", version=1)], "changelog.x", {0: 1})
    ...     [tile.version for tile in store.tiles("ab", "r", ("42",))], store.position("changelog.x")
    ([1], {0: 1})
    """

    bulk = 20
    """Most of a write is pages, and a page that several rows are on is written once."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        readonly: bool = False,
        map_size: int = FIRST_SIZE,
        mend: bool = False,
        faults: FaultPoints = NO_FAULTS,
    ) -> None:
        self._folder, self._readonly, self._faults = Path(folder), readonly, faults
        self._lock = None if readonly else lock_writer(self._folder)
        self._folds: dict[str, Fold] = {}
        self._due: dict[bytes, str] = {}
        self._damaged: DamagedError | None = None
        try:
            opened = damage.mended if mend and not readonly else Environment
            self._env = opened(self._folder, readonly=readonly, map_size=map_size, faults=faults)
            self._meta = Meta(self._env)
            self._sweep = Sweep(self._env, self._meta)
        except BaseException:
            self._release()
            raise
        if not readonly:
            damage.begin(self._folder)
            faults.reach("store.open.after")

    def __enter__(self) -> LmdbStore:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def apply(self, rows: Iterable[Row], topic: str, positions: Mapping[int, int]) -> None:
        """See `Store.apply`."""
        tiles, about_runs = folded(rows, fitted)
        due: dict[bytes, str] = {}

        def work(transaction: Any) -> None:
            changing = Changing(transaction, self._env.tiles, self._meta)
            changing.apply(tiles)
            self._meta.count(transaction, changing.counts)
            self._meta.say(transaction, about_runs)
            self._meta.move(transaction, topic, positions)
            due.clear()
            due.update(changing.due)

        self._write(work)
        self._due |= {prefix: tile_set for prefix, tile_set in due.items() if tile_set in self._folds}

    def position(self, topic: str) -> dict[int, int]:
        """See `Store.position`."""
        with self._reading() as transaction:
            return self._meta.position(transaction, topic)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[bool]:
        """See `Store.snapshot`."""
        with self._guarded(), self._env.holding():
            yield True

    def tiles(self, tile_set: str, run: str, key: Key, low: int = FIRST, high: int = END) -> list[StoredTile]:
        """See `Store.tiles`."""
        with self._reading() as transaction:
            return KeyRows(transaction, self._env.tiles, prefix_of(tile_set, run, key)).tiles(low, high)

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
        asked = StoreQuery(tile_set, keys, bands, run, layout)

        def work(transaction: Any) -> StoreRead:
            return looked_up(transaction, self._env.tiles, self._meta.known(transaction, tile_set), asked)

        try:
            return self._env.look(work)
        except DamagedError as error:
            self._note(error)
            raise

    def fold_with(self, folds: Mapping[str, Fold]) -> None:
        """See `Store.fold_with`."""
        for tile_set, fold in folds.items():
            with self._reading() as transaction:
                known = self._meta.known(transaction, tile_set)
            if known.layout is not None and known.expired and outgrown(known.layout, fold.layout):
                _logger.warning("tiles are wanted that have gone: the store is emptied and filled from the changelog")
                self.clear()
            if known.layout != fold.layout:
                with self._guarded():
                    enough = Arranging(self._env, self._meta, tile_set).run(fold.layout)
                self._due |= dict.fromkeys(enough, tile_set)
            self._folds[tile_set] = fold

    def compact(self, most: int = MOST) -> int:
        """See `Store.compact`."""
        due, done = list(islice(self._due.items(), most)), 0
        again: dict[bytes, str] = {}
        grown: list[bytes] = []

        def work(transaction: Any) -> None:
            nonlocal done, again
            changing = Changing(transaction, self._env.tiles, self._meta)
            done, again = 0, changing.due
            grown.clear()
            for prefix, tile_set in due:
                if done >= most:
                    break
                done += changing.grow(prefix, tile_set, self._folds[tile_set], most - done)
                grown.append(prefix)
            self._meta.count(transaction, changing.counts)

        if due:
            self._write(work)
        for prefix in grown:
            self._due.pop(prefix, None)
        self._due |= again
        return done

    def holds(self, tile_set: str, run: str, key: Key) -> bool:
        """See `Store.holds`."""
        with self._reading() as transaction:
            return KeyRows(transaction, self._env.tiles, prefix_of(tile_set, run, key)).mine()

    def progress(self, tile_set: str) -> dict[str, ProgressRow]:
        """See `Store.progress`."""
        with self._reading() as transaction:
            return dict(self._meta.known(transaction, tile_set).progress)

    def hand_overs(self, tile_set: str) -> dict[str, HandOver]:
        """See `Store.hand_overs`."""
        with self._reading() as transaction:
            return dict(self._meta.known(transaction, tile_set).hand_overs)

    def stats(self) -> Stats:
        """See `Store.stats`; bytes are those of the pages the rows lie on."""
        with self._reading() as transaction:
            said, counts = transaction.stat(self._env.tiles), self._meta.counts(transaction)
            pages = said["branch_pages"] + said["leaf_pages"] + said["overflow_pages"]
            tiles = said["entries"] - counts.levels - counts.growths - counts.bases
            return Stats(counts.keys, tiles, pages * said["psize"], counts.levels)

    def check(self) -> None:
        """See `Store.check`."""
        if self._damaged is not None:
            raise self._damaged
        with self._guarded():
            self._env.check()
        damage.refuse_noted(self._folder)
        if damage.asked_to_rebuild(self._folder):
            self.clear()
            damage.rebuild_begun(self._folder)
            self._faults.reach("store.rebuild.after")

    def clear(self) -> None:
        """See `Store.clear`."""

        def work(transaction: Any) -> None:
            self._env.empty(transaction)
            for tile_set, fold in self._folds.items():
                self._meta.cut(transaction, tile_set, fold.layout)

        self._write(work)
        self._due.clear()

    def mark_filling(self, filling: bool) -> None:
        """See `Store.mark_filling`."""
        self._write(lambda transaction: self._meta.mark_filling(transaction, filling))

    def expire(self, most: int = MOST) -> int:
        """See `Store.expire`."""
        with self._guarded():
            return self._sweep.step(self._folds, most)

    def close(self) -> None:
        """See `Store.close`."""
        self._env.close()
        if not self._readonly and self._damaged is None:
            self._faults.reach("store.close.before")
            damage.end(self._folder)
            self._faults.reach("store.close.after")
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Any]:
        with self._guarded(), self._env.reading() as transaction:
            yield transaction

    def _write(self, work: Any) -> None:
        with self._guarded():
            self._env.write(work)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Damage is noted, so that the process that met it ends and the next one begins anew."""
        try:
            yield
        except DamagedError as error:
            self._note(error)
            raise

    def _note(self, error: DamagedError) -> None:
        self._damaged = error
        damage.mark(self._folder, str(error))
