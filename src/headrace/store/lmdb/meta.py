"""What an LMDB store knows beside its rows: positions, what runs have said, how levels are cut, how much there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.store.lmdb.environment import Environment
from headrace.store.row_bytes import (
    HAND_OVER,
    PROGRESS,
    RunName,
    read_hand_over,
    read_layout,
    read_progress,
    unsealed,
    write,
)
from headrace.tiles.changelog import HandOver, ProgressRow
from headrace.tiles.levels import LevelLayout

FILLING = b"filling"
_LAYOUT, EXPIRED = b"layout:", "expired"
_read_offsets = msgspec.msgpack.Decoder(dict[int, int]).decode


class StoreCounts(msgspec.Struct, array_like=True):
    """How many keys, level rows, notes of growth and bases there are."""

    keys: int = 0
    levels: int = 0
    growths: int = 0
    bases: int = 0

    def plus(self, more: StoreCounts) -> StoreCounts:
        """Both together.

        >>> StoreCounts(1).plus(StoreCounts(2, 3))
        StoreCounts(keys=3, levels=3, growths=0, bases=0)
        """
        both = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(more), strict=True)
        return StoreCounts(*(one + other for one, other in both))


_read_count = msgspec.msgpack.Decoder(int).decode
_read_counts = msgspec.msgpack.Decoder(StoreCounts).decode


class TileSetMeta(msgspec.Struct, frozen=True, gc=False):
    """What is known of a tile set as of a transaction, of which `expired` is the start before which tiles are gone."""

    transaction: int
    progress: dict[str, ProgressRow]
    hand_overs: dict[str, HandOver]
    layout: LevelLayout | None
    expired: dict[str, int]
    filling: bool


class Meta:
    """The table `meta` of a store."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._known: dict[str, TileSetMeta] = {}

    def position(self, transaction: Any, topic: str) -> dict[int, int]:
        """The next offset of each partition of a topic."""
        found = self._noted(transaction, b"position:" + topic.encode())
        return {} if found is None else _read_offsets(found)

    def move(self, transaction: Any, topic: str, positions: Mapping[int, int]) -> None:
        """Remember where a topic goes on."""
        moved = self.position(transaction, topic) | dict(positions)
        self._env.note(transaction, b"position:" + topic.encode(), write(moved))

    def counts(self, transaction: Any) -> StoreCounts:
        """How much there is."""
        found = self._noted(transaction, b"counts")
        return StoreCounts() if found is None else _read_counts(found)

    def count(self, transaction: Any, more: StoreCounts) -> None:
        """Take note that there is more or less."""
        if more != StoreCounts():
            self._env.note(transaction, b"counts", write(self.counts(transaction).plus(more)))

    def say(self, transaction: Any, about_runs: Mapping[RunName, ProgressRow | HandOver | None]) -> None:
        """Keep what is said of runs."""
        for name, said in about_runs.items():
            if said is None:
                transaction.delete(_run_name(*name), db=self._env.meta)
            else:
                self._env.note(transaction, _run_name(*name), write(said))

    def known(self, transaction: Any, tile_set: str) -> TileSetMeta:
        """What is known of a tile set; looked up once for each state of the store."""
        held, at = self._known.get(tile_set), transaction.id()
        if held is None or held.transaction != at:
            held = self._known[tile_set] = self.look(transaction, tile_set)
        return held

    def look(self, transaction: Any, tile_set: str) -> TileSetMeta:
        """The same, looked up: for a transaction that writes, whose number is that of its outcome."""
        progress = {run: read_progress(data) for run, data in self._runs(transaction, PROGRESS, tile_set)}
        hand_overs = {run: read_hand_over(data) for run, data in self._runs(transaction, HAND_OVER, tile_set)}
        expired = {run: _read_count(data) for run, data in self._runs(transaction, EXPIRED, tile_set)}
        layout = self._noted(transaction, _LAYOUT + tile_set.encode())
        cut = None if layout is None else read_layout(layout)
        filling = self._noted(transaction, FILLING) is not None
        return TileSetMeta(transaction.id(), progress, hand_overs, cut, expired, filling)

    def mark_filling(self, transaction: Any, filling: bool) -> None:
        """Take note that an empty store begins to be filled, or that it is full."""
        if filling:
            self._env.note(transaction, FILLING, b"")
        else:
            transaction.delete(FILLING, db=self._env.meta)

    def _runs(self, transaction: Any, kind: str, tile_set: str) -> list[tuple[str, bytes]]:
        """What is kept of one kind for each run of a tile set."""
        prefix = _run_name(kind, tile_set, "")
        return [(name[len(prefix) :].decode(), data) for name, data in self._entries_with(transaction, prefix)]

    def expire(self, transaction: Any, tile_set: str, run: str, before: int) -> None:
        """Take note that tiles before a start may be missing from now on."""
        known = self.look(transaction, tile_set).expired.get(run)
        if known is None or known < before:
            self._env.note(transaction, _run_name(EXPIRED, tile_set, run), write(before))

    def cut(self, transaction: Any, tile_set: str, layout: LevelLayout | None) -> None:
        """Keep how the levels of a tile set are cut; None when it has none."""
        if layout is None:
            transaction.delete(_LAYOUT + tile_set.encode(), db=self._env.meta)
        else:
            self._env.note(transaction, _LAYOUT + tile_set.encode(), write(layout))

    def _noted(self, transaction: Any, name: bytes) -> bytes | None:
        return self._env.noted(transaction, name)

    def _entries_with(self, transaction: Any, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Names that begin in one way, and what is kept under them."""
        found = []
        cursor = transaction.cursor(db=self._env.meta)
        cursor.set_range(prefix)
        for name, data in cursor:
            if not name.startswith(prefix):
                break
            found.append((name, unsealed(name, data)))
        return found


def _run_name(kind: str, tile_set: str, run: str) -> bytes:
    return f"{kind}:{tile_set}\0{run}".encode()
