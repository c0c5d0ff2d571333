"""The store: the newest tiles of every key, and how far the changelog has been folded into it.

A store is a fold of the changelog that can be thrown away and filled again. `tiles.changelog` says what the rows are,
`protocol` what a store does, `memory`, `lmdb` and `redis` are three that do it, `open` opens the one that is set,
`materializer` fills any of them from a log. What the partial columns of a tile mean is not known here: `read.reader`
merges them into feature values.
"""

from __future__ import annotations

from headrace.store.lmdb.store import LmdbStore
from headrace.store.materializer import Materialiser
from headrace.store.memory import MemoryStore
from headrace.store.protocol import Stats, Store, StoredTile
from headrace.store.redis.store import RedisStore
from headrace.tiles.changelog import Gone, HandOver, ProgressRow, Row, TileRow
from headrace.tiles.changelog_format import decode, encode

__all__ = [
    "Gone",
    "HandOver",
    "LmdbStore",
    "Materialiser",
    "MemoryStore",
    "ProgressRow",
    "RedisStore",
    "Row",
    "Stats",
    "Store",
    "StoredTile",
    "TileRow",
    "decode",
    "encode",
]
