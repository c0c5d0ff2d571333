"""The removal of tiles from Redis that nobody can ask for any more: a walk over all keys, a few at a time.

Several processes may walk at once. What goes into a base goes out of the tiles in the same step, and only if both are
still what was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import HeadraceError
from headrace.store.redis.client import RedisClient
from headrace.store.redis.level_scripts import EXPIRE
from headrace.store.redis.rows import RedisNames, base_value, literal, piece, read_base, run_name, tile
from headrace.tiles.expiry import ON_TIME
from headrace.tiles.identity import placed, run_of, tile_set_of
from headrace.tiles.level_growth import unreadable
from headrace.tiles.levels import BASE, Fold

PART = 1_000
"""Tiles of a key that are removed in one step."""


class RedisSweep:
    """A walk over all keys that begins again when it has come to the end."""

    def __init__(self, client: RedisClient, names: RedisNames) -> None:
        self._client, self._names = client, names
        self._cursor: int | None = 0

    def step(self, folds: Mapping[str, Fold], before: Mapping[tuple[str, str], int], most: int) -> int:
        """Look at about so many keys; how many there were, 0 at the end."""
        if not before or self._cursor is None:
            self._cursor = 0
            return 0
        pattern = literal(self._names.tiles()) + b"*"
        cursor, found = self._client.call("SCAN", self._cursor, "MATCH", pattern, "COUNT", most)
        self._cursor = int(cursor) or None
        looked = 1
        for name in found:
            prefix = name[len(self._names.tiles()) :]
            horizon = before.get((tile_set_of(prefix), run_of(prefix)))
            if horizon is not None:
                looked += self._remove(prefix, horizon, folds[tile_set_of(prefix)])
        return looked

    def _remove(self, prefix: bytes, horizon: int, fold: Fold) -> int:
        names, old = self._names, self._old(prefix, horizon, fold)
        if not old:
            return 1
        keys = [names.counts, names.expired, names.tiles(prefix), names.levels(prefix), names.base(prefix)]
        given: list[Any] = [run_name(tile_set_of(prefix), run_of(prefix)), placed(b"", horizon)]
        if fold.layout.base:
            held = self._client.call("GET", names.base(prefix)) or b""
            parts = [read_base(prefix, held)] if held else []
            try:
                merged = fold.merge(BASE, [*parts, *(piece(prefix, member) for member in old)])
            except HeadraceError as error:
                unreadable(error)
                return 1
            given += [held, base_value(prefix, horizon, merged), *old]
        return 1 + int(self._client.script(EXPIRE, keys, given))

    def _old(self, prefix: bytes, horizon: int, fold: Fold) -> list[bytes]:
        """Some of the tiles that are to go; where there is a base, none of the late lane."""
        at, end = 0, b"(" + placed(b"", horizon)
        while True:
            found = self._client.call("ZRANGEBYLEX", self._names.tiles(prefix), b"-", end, "LIMIT", at, PART)
            old = [member for member in found if not fold.layout.base or tile(prefix, member).lane == ON_TIME]
            if old or len(found) < PART:
                return old
            at += PART
