"""The default store: a memory-mapped file that needs no service, written by one process and read by many.

A key's tiles lie side by side in tile order, so that reading them is one range scan. `environment` has the files,
`identity` the order; a row's bytes are msgpack.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import HeadraceError
from headrace.store.changelog import HandOver, Key, ProgressRow, Row
from headrace.store.environment import FIRST_SIZE, Environment
from headrace.store.identity import fitted, place_of, placed, prefix_of
from headrace.store.protocol import END, FIRST, Stats, StoredTile
from headrace.store.value import (
    HAND_OVER,
    PROGRESS,
    Change,
    folded,
    read_hand_over,
    read_progress,
    read_value,
    tile_of,
    value_of,
    write,
)

_offsets = msgspec.msgpack.Decoder(dict[int, int]).decode
_count = msgspec.msgpack.Decoder(int).decode


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

    Examples
    --------
    >>> import tempfile
    >>> from headrace.store import TileRow
    >>> with LmdbStore(tempfile.mkdtemp()) as store:
    ...     store.apply([TileRow("ab", "r", ("42",), 0, "on_time", version=1)], "changelog.x", {0: 1})
    ...     [tile.version for tile in store.tiles("ab", "r", ("42",))], store.position("changelog.x")
    ([1], {0: 1})
    """

    def __init__(self, folder: str | os.PathLike[str], *, readonly: bool = False, map_size: int = FIRST_SIZE) -> None:
        self._env = Environment(Path(folder), readonly=readonly, map_size=map_size)

    def __enter__(self) -> LmdbStore:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def apply(self, rows: Iterable[Row], topic: str, positions: Mapping[int, int]) -> None:
        """See `Store.apply`."""
        tiles, about_runs = folded(rows, fitted)
        meta = self._env.meta

        def work(transaction: Any) -> None:
            born = sum(self._change(transaction, identity, change) for identity, change in tiles.items())
            if born:
                transaction.put(b"keys", write(_keys(transaction, meta) + born), db=meta)
            for name, said in about_runs.items():
                if said is None:
                    transaction.delete(_run_name(*name), db=meta)
                else:
                    transaction.put(_run_name(*name), write(said), db=meta)
            found = transaction.get(_position(topic), db=meta)
            known = {} if found is None else _offsets(found)
            transaction.put(_position(topic), write(known | dict(positions)), db=meta)

        self._env.write(work)

    def _change(self, transaction: Any, identity: bytes, change: Change) -> int:
        """Apply one change; how many keys there are more by it."""
        tiles, row = self._env.tiles, change.row
        prefix = fitted(change.prefix)
        whole = None if prefix == change.prefix else change.prefix
        found = transaction.get(identity, db=tiles)
        before = None if found is None else read_value(found)
        if before is not None and before.whole != whole:
            raise HeadraceError("store-failed", "Two keys of the store have one digest.", got=identity.hex())
        if row is None:
            gone = before is not None and transaction.delete(identity, db=tiles)
            return -1 if gone and not self._any(transaction, prefix) else 0
        if before is not None and not change.forget and row.version < before.version:
            return 0
        born = before is None and not self._any(transaction, prefix)
        transaction.put(identity, value_of(row, whole), db=tiles)
        return int(born)

    def _any(self, transaction: Any, prefix: bytes) -> bool:
        return next(self._scan(transaction, prefix), None) is not None

    def _scan(self, transaction: Any, prefix: bytes, low: int = FIRST) -> Iterator[tuple[bytes, bytes]]:
        """Every row of a prefix from a tile on, in order."""
        cursor = transaction.cursor(db=self._env.tiles)
        if cursor.set_range(placed(prefix, low)):
            for identity, value in cursor:
                if not identity.startswith(prefix):
                    return
                yield identity, value

    def position(self, topic: str) -> dict[int, int]:
        """See `Store.position`."""
        with self._env.reading() as transaction:
            found = transaction.get(_position(topic), db=self._env.meta)
            return {} if found is None else _offsets(found)

    def tiles(self, tile_set: str, run: str, key: Key, low: int = FIRST, high: int = END) -> list[StoredTile]:
        """See `Store.tiles`."""
        whole = prefix_of(tile_set, run, key)
        prefix = fitted(whole)
        expected, length = None if prefix == whole else whole, len(prefix)
        found = []
        with self._env.reading() as transaction:
            for identity, data in self._scan(transaction, prefix, max(low, FIRST)):
                tile, lane = place_of(identity, length)
                if tile >= high:
                    break
                value = read_value(data)
                if value.whole == expected:
                    found.append(tile_of(tile, lane, value))
        return found

    def holds(self, tile_set: str, run: str, key: Key) -> bool:
        """See `Store.holds`."""
        whole = prefix_of(tile_set, run, key)
        with self._env.reading() as transaction:
            first = next(self._scan(transaction, fitted(whole)), None)
            return first is not None and read_value(first[1]).whole in (None, whole)

    def progress(self, tile_set: str) -> dict[str, ProgressRow]:
        """See `Store.progress`."""
        return {run: read_progress(data) for run, data in self._about_runs(PROGRESS, tile_set)}

    def hand_overs(self, tile_set: str) -> dict[str, HandOver]:
        """See `Store.hand_overs`."""
        return {run: read_hand_over(data) for run, data in self._about_runs(HAND_OVER, tile_set)}

    def _about_runs(self, kind: str, tile_set: str) -> list[tuple[str, bytes]]:
        """What is kept of one kind for each run of a tile set."""
        prefix, found = _run_name(kind, tile_set, ""), []
        with self._env.reading() as transaction:
            cursor = transaction.cursor(db=self._env.meta)
            cursor.set_range(prefix)
            for name, data in cursor:
                if not name.startswith(prefix):
                    break
                found.append((name[len(prefix) :].decode(), data))
        return found

    def stats(self) -> Stats:
        """See `Store.stats`; bytes are those of the pages the tiles lie on."""
        with self._env.reading() as transaction:
            said = transaction.stat(self._env.tiles)
            pages = said["branch_pages"] + said["leaf_pages"] + said["overflow_pages"]
            return Stats(_keys(transaction, self._env.meta), said["entries"], pages * said["psize"])

    def close(self) -> None:
        """See `Store.close`."""
        self._env.close()


def _keys(transaction: Any, meta: Any) -> int:
    found = transaction.get(b"keys", db=meta)
    return 0 if found is None else _count(found)


def _position(topic: str) -> bytes:
    return b"position:" + topic.encode()


def _run_name(kind: str, tile_set: str, run: str) -> bytes:
    return f"{kind}:{tile_set}\0{run}".encode()
