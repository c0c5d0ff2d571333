"""Levels of a store in Redis, which several processes fill: Redis does not merge, so whoever does must not be late.

A process claims a key: the place up to which it makes rows is noted, and a name of the claim. From then on every change
before that place leaves a hole. What was made counts only while the claim stands, and not where there is a hole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from secrets import token_bytes
from typing import Any

from headrace.errors import HeadraceError
from headrace.store.redis.client import RedisClient
from headrace.store.redis.level_scripts import CLAIM, DROP, WRITE
from headrace.store.redis.read import READ
from headrace.store.redis.rows import RedisNames, level_row, literal, pieces, question, run_name
from headrace.store.redis.script import DAMAGED, DONE
from headrace.store.row_bytes import DamagedError, read_layout, write
from headrace.tiles.expiry import outgrown
from headrace.tiles.identity import run_of, start_of, tile_set_of, tile_set_prefix
from headrace.tiles.level_growth import FRESH, Growth, grown, unreadable
from headrace.tiles.levels import Band, Fold, LevelLayout, ReadPiece

PART = 1_000
"""Keys that are looked at in one command."""


class RedisLevels:
    """The levels of a store in Redis."""

    def __init__(self, client: RedisClient, names: RedisNames) -> None:
        self._client, self._names = client, names
        self.folds: dict[str, Fold] = {}
        self._cut: dict[str, bytes] = {}
        self._due: dict[bytes, str] = {}

    def look(self) -> None:
        """See how levels are cut now: another process may have begun to cut them in another way."""
        found = self._client.call("HGETALL", self._names.layouts)
        self._cut = {tile_set.decode(): layout for tile_set, layout in found.items()}

    def cuts(self, runs: Iterable[tuple[str, str]]) -> list[Any]:
        """How the tile sets of some runs are cut, as the script takes it."""
        wanted = list(runs)
        given: list[Any] = [len(wanted)]
        for tile_set, run in wanted:
            kept = self._cut.get(tile_set, b"")
            layout = read_layout(kept) if kept else LevelLayout("", ())
            given += [tile_set, run_name(tile_set, run), kept, int(bool(layout.base)), len(layout.widths)]
            given += layout.widths
        return given

    def due(self, keys: Iterable[bytes]) -> None:
        """Take note of keys whose time it is."""
        start = len(self._names.tiles())
        for key in keys:
            tile_set = tile_set_of(key[start:])
            if tile_set in self.folds:
                self._due[key[start:]] = tile_set

    def fold_with(self, folds: Mapping[str, Fold]) -> None:
        """See `Store.fold_with`."""
        self.look()
        for tile_set, fold in folds.items():
            self.folds[tile_set] = fold
            if self._cut.get(tile_set) != write(fold.layout):
                self._arrange(tile_set, fold.layout)

    def outgrown(self, folds: Mapping[str, Fold]) -> bool:
        """Whether tiles are wanted that may have gone."""
        self.look()
        gone = {name.partition(b"\0")[0].decode() for name in self._client.call("HKEYS", self._names.expired)}
        known = {tile_set: read_layout(self._cut[tile_set]) for tile_set in folds if self._cut.get(tile_set)}
        return any(outgrown(layout, folds[each].layout) for each, layout in known.items() if each in gone)

    def _arrange(self, tile_set: str, layout: LevelLayout) -> None:
        """Remove all levels of a tile set, then let it have another layout."""
        self._client.call("HSET", self._names.layouts, tile_set, b"")
        keys = self._keys(self._names.levels(), tile_set)
        while part := list(islice(keys, PART)):
            self._client.script(DROP, [self._names.counts, *part], [])
        for key in self._keys(self._names.tiles(), tile_set):
            if self._client.call("ZCARD", key) >= FRESH:
                self._due[key[len(self._names.tiles()) :]] = tile_set
        self._client.call("HSET", self._names.layouts, tile_set, write(layout))
        self.look()

    def _keys(self, begin: bytes, tile_set: str) -> Iterator[bytes]:
        """The names of a tile set's keys that begin in one way."""
        pattern = literal(begin + tile_set_prefix(tile_set)) + b"*"
        cursor = 0
        while True:
            cursor, found = self._client.call("SCAN", cursor, "MATCH", pattern, "COUNT", PART)
            yield from found
            if not int(cursor):
                return

    def forget(self) -> None:
        """The store is empty now, but for how levels are cut."""
        self._due.clear()
        for tile_set, fold in self.folds.items():
            self._client.call("HSET", self._names.layouts, tile_set, write(fold.layout))
        self.look()

    def compact(self, most: int) -> int:
        """See `Store.compact`."""
        done = 0
        for prefix, tile_set in list(islice(self._due.items(), most)):
            if done >= most:
                break
            self._due.pop(prefix)
            done += self._grow(prefix, tile_set, self.folds[tile_set], most - done)
        return done

    def _grow(self, prefix: bytes, tile_set: str, fold: Fold, most: int) -> int:
        layout, claim = write(fold.layout), token_bytes(8)
        names = self._names
        keys = [names.layouts, names.tiles(prefix), names.levels(prefix)]
        outcome, *told = self._client.script(CLAIM, keys, [tile_set, layout, claim, most, FRESH])
        if outcome == DAMAGED:
            raise DamagedError("A value in the store is not the one that was written.", where=self._client.address)
        if outcome != DONE:
            return 1
        made, until, more, holes = told
        growth = Growth(start_of(made, 0), 0, [start_of(holes[at : at + 8], 0) for at in range(0, len(holes), 8)])
        worked = 0

        def covered(bands: Sequence[Band]) -> list[ReadPiece]:
            nonlocal worked
            found = self._covered(tile_set, prefix, bands, fold.layout)
            worked += len(found)
            return found

        try:
            rows = grown(fold, growth, start_of(until, 0), covered)
        except HeadraceError as error:
            rows, until, more = unreadable(error), made, False
        given: list[Any] = [tile_set, layout, claim, until]
        for row in rows:
            place, value = level_row(prefix, row)
            given += [place, fold.layout.widths[row.level - 1], value]
        self._client.script(WRITE, [names.counts, names.layouts, names.levels(prefix)], given)
        if more:
            self._due[prefix] = tile_set
        return worked + 1

    def _covered(self, tile_set: str, prefix: bytes, bands: Sequence[Band], layout: LevelLayout) -> list[ReadPiece]:
        keys, given = question(self._names, (tile_set, run_of(prefix)), [prefix], bands, layout)
        _, _, _, _, _, *found = self._client.script(READ, keys, given)
        return (pieces(prefix, found[0]) if found else None) or []
