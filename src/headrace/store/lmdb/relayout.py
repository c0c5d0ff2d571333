"""Levels that are to be cut in another way: those there are go, and keys with enough tiles are told for new ones.

It happens when windows of a view were changed, and when a store that had no levels gets some. Until it is done the
store has no layout, and nobody reads a level row.
"""

from __future__ import annotations

from typing import Any

from headrace.store.lmdb.environment import Environment
from headrace.store.lmdb.meta import Meta, StoreCounts
from headrace.store.lmdb.rows import KeyRows, whole_prefix
from headrace.store.row_bytes import unsealed
from headrace.tiles.identity import is_held, level_of, prefix_length, tile_set_of
from headrace.tiles.level_growth import FRESH, Growth
from headrace.tiles.levels import LevelLayout

PART = 20_000
"""Rows that are looked at in one go."""


class Arranging:
    """The removal of all levels of a tile set."""

    def __init__(self, env: Environment, meta: Meta, tile_set: str) -> None:
        self._env, self._meta, self._tile_set = env, meta, tile_set
        self._key, self._tiles = b"", 0
        self._enough: list[bytes] = []

    def run(self, layout: LevelLayout) -> list[bytes]:
        """Do it, then let the store have another layout; the prefixes of the keys that want levels."""
        self._env.write(lambda transaction: self._meta.cut(transaction, self._tile_set, None))
        after: bytes | None = b""
        while after is not None:
            gone, after = self._part(after)
            if gone:
                self._env.write(lambda transaction, gone=gone: self._remove(transaction, gone))  # type: ignore[misc]
        self._count_tile(b"")
        self._env.write(lambda transaction: self._begin(transaction, layout))
        return self._enough

    def _part(self, after: bytes) -> tuple[list[bytes], bytes | None]:
        """The level rows and growths among the next rows, and where to go on."""
        gone, seen = list[bytes](), 0
        with self._env.reading() as transaction:
            cursor = transaction.cursor(db=self._env.tiles)
            if not cursor.set_range(after + b"\0" if after else b"\0"):
                return gone, None
            for identity, data in cursor:
                length = prefix_length(identity)
                prefix = whole_prefix(identity, length, unsealed(identity, data))
                if tile_set_of(prefix) == self._tile_set:
                    if is_held(identity, length):
                        self._count_tile(prefix)
                    else:
                        gone.append(identity)
                seen += 1
                if seen == PART:
                    return gone, identity
        return gone, None

    def _count_tile(self, prefix: bytes) -> None:
        """Count tiles; those of a key lie side by side."""
        if prefix != self._key:
            if self._tiles >= FRESH:
                self._enough.append(self._key)
            self._key, self._tiles = prefix, 0
        self._tiles += 1

    def _remove(self, transaction: Any, gone: list[bytes]) -> None:
        growths = sum(level_of(identity, prefix_length(identity)) is None for identity in gone)
        for identity in gone:
            transaction.delete(identity, db=self._env.tiles)
        self._meta.count(transaction, StoreCounts(levels=growths - len(gone), growths=-growths))

    def _begin(self, transaction: Any, layout: LevelLayout) -> None:
        for prefix in self._enough:
            KeyRows(transaction, self._env.tiles, prefix).put_growth(Growth(fresh=FRESH))
        self._meta.count(transaction, StoreCounts(growths=len(self._enough)))
        self._meta.cut(transaction, self._tile_set, layout)
