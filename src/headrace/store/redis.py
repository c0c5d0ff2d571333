"""A store in Redis, for when several serving processes are to share one.

The tiles of a key are one sorted set whose members are in the order of their bytes, so that a range of tiles is one
command. Every replica may fill it: a batch counts only if the store still is where this one last left or found it, so
what another has folded in is never undone. A Redis that lost its memory is filled again for the same reason.

    member = tile (eight bytes, sign flipped), lane, 0, version (eight bytes, sign flipped), msgpack of the row
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Self

from headrace.errors import HeadraceError, shown
from headrace.store.changelog import HandOver, Key, ProgressRow, Row
from headrace.store.identity import placed, prefix_of
from headrace.store.protocol import END, FIRST, Stats, StoredTile
from headrace.store.redis_client import RedisClient
from headrace.store.redis_script import APPLY, MOVED, OTHER_FORMAT
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

FORMAT = b"1"
_EIGHT = 8


class RedisStore:
    """A store in one Redis; not in a cluster of them.

    Parameters
    ----------
    url
        redis://user:password@host:port/number, rediss://... for TLS, or unix:///path?db=number.
    namespace
        What all of the store's keys begin with; stores of one namespace are one store.

    Examples
    --------
    >>> try:
    ...     RedisStore("redis://:open-sesame@127.0.0.1:1")
    ... except HeadraceError as error:
    ...     error.code, error.got.partition(": ")[0]
    ('store-unreachable', 'redis://127.0.0.1:1/0')
    """

    def __init__(self, url: str, *, namespace: str = "headrace") -> None:
        self._client = RedisClient(url)
        self._namespace = namespace.encode() + b":"
        # Where this process last left or found each topic. Asking and noting is one step, or what is noted could be
        # newer than what the asker was told.
        self._at: dict[str, dict[int, int]] = {}
        self._asking = threading.Lock()
        try:
            self._check_format()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _check_format(self) -> None:
        found = self._client.call("HGET", self._key("counts"), "format")
        if found not in (None, FORMAT):
            raise self._other_format(found)

    def apply(self, rows: Iterable[Row], topic: str, positions: Mapping[int, int]) -> None:
        """See `Store.apply`; `store-moved` when another process has applied since this one last did or looked."""
        tiles, about_runs = folded(rows, bytes)
        expected = self._at.get(topic)
        keys = [self._key("counts"), self._position(topic)]
        given: list[Any] = [FORMAT, -1] if expected is None else [FORMAT, *_counted(expected)]
        given += [*_counted(positions), len(tiles)]
        for identity, change in tiles.items():
            keys.append(self._key("tiles", change.prefix))
            given += _changed(identity, change)
        given.append(len(about_runs))
        for (kind, tile_set, run), said in about_runs.items():
            keys.append(self._key(kind, tile_set.encode()))
            given += [run.encode(), b"" if said is None else write(said)]
        self._check(self._client.script(APPLY, keys, given), topic)
        if expected is not None:
            self._at[topic] = expected | dict(positions)

    def _check(self, outcome: int, topic: str) -> None:
        if outcome == OTHER_FORMAT:
            raise self._other_format(self._client.call("HGET", self._key("counts"), "format"))
        if outcome == MOVED:
            self._at.pop(topic, None)
            message, hint = "Another process has moved the store on, or emptied it.", "Go on at its position."
            raise HeadraceError("store-moved", message, got=self._client.address, hint=hint, where=topic)

    def position(self, topic: str) -> dict[int, int]:
        """See `Store.position`."""
        with self._asking:
            found = self._client.call("HGETALL", self._position(topic))
            at = {int(partition): int(offset) for partition, offset in found.items()}
            self._at.setdefault(topic, at)
            return at

    def tiles(self, tile_set: str, run: str, key: Key, low: int = FIRST, high: int = END) -> list[StoredTile]:
        """See `Store.tiles`."""
        if low >= END or high <= FIRST:
            return []
        first = b"[" + placed(b"", max(low, FIRST))
        last = b"+" if high >= END else b"(" + placed(b"", high)
        name = self._key("tiles", prefix_of(tile_set, run, key))
        return [_read(member) for member in self._client.call("ZRANGEBYLEX", name, first, last)]

    def holds(self, tile_set: str, run: str, key: Key) -> bool:
        """See `Store.holds`."""
        return bool(self._client.call("EXISTS", self._key("tiles", prefix_of(tile_set, run, key))))

    def progress(self, tile_set: str) -> dict[str, ProgressRow]:
        """See `Store.progress`."""
        found = self._client.call("HGETALL", self._key(PROGRESS, tile_set.encode()))
        return {run.decode(): read_progress(said) for run, said in found.items()}

    def hand_overs(self, tile_set: str) -> dict[str, HandOver]:
        """See `Store.hand_overs`."""
        found = self._client.call("HGETALL", self._key(HAND_OVER, tile_set.encode()))
        return {run.decode(): read_hand_over(said) for run, said in found.items()}

    def stats(self) -> Stats:
        """See `Store.stats`; bytes are those of the rows, without what Redis needs around them."""
        found = self._client.call("HMGET", self._key("counts"), "keys", "tiles", "bytes")
        return Stats(*(int(count or 0) for count in found))

    def close(self) -> None:
        """See `Store.close`."""
        self._client.close()

    def _key(self, kind: str, name: bytes = b"") -> bytes:
        return self._namespace + kind.encode() + b":" + name

    def _position(self, topic: str) -> bytes:
        return self._key("position", topic.encode())

    def _other_format(self, found: Any) -> HeadraceError:
        hint = "Delete the keys of its namespace: the store is filled again from the changelog."
        message = "The store was written in a format this version does not know."
        where = f"{self._client.address}, {self._namespace.decode()}*"
        return HeadraceError("store-format", message, got=shown(found), hint=hint, where=where)


def _counted(positions: Mapping[int, int]) -> list[int]:
    """Positions as the script takes them."""
    return [len(positions), *(number for pair in positions.items() for number in pair)]


def _changed(identity: bytes, change: Change) -> tuple[bytes, int, bytes]:
    """A change as the script takes it."""
    place, row = identity[len(change.prefix) :] + b"\0", change.row
    return place, int(change.forget), b"" if row is None else placed(b"", row.version) + value_of(row)


def _read(member: bytes) -> StoredTile:
    """A tile from a member of a sorted set."""
    lane_end = member.index(b"\0", _EIGHT)
    tile = int.from_bytes(member[:_EIGHT], "big") - END
    return tile_of(tile, member[_EIGHT:lane_end].decode(), read_value(member[lane_end + 1 + _EIGHT :]))
