"""The removal of tiles from an LMDB store that nobody can ask for any more: a walk over all keys, a few at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.errors import HeadraceError
from headrace.store.lmdb.environment import Environment
from headrace.store.lmdb.meta import Meta, StoreCounts
from headrace.store.lmdb.rows import KeyRows, whole_prefix
from headrace.store.row_bytes import read_value, unsealed
from headrace.tiles.expiry import ON_TIME, horizons
from headrace.tiles.identity import GROWTH_PLACE, place_of, prefix_length, run_of, start_of, tile_set_of
from headrace.tiles.level_growth import unreadable
from headrace.tiles.levels import BASE, FIRST, Fold, ReadPiece

PART = 2_000
"""Rows of a key that are removed in one transaction."""


class Sweep:
    """A walk over all keys that begins again when it has come to the end."""

    def __init__(self, env: Environment, meta: Meta) -> None:
        self._env, self._meta = env, meta
        self._at = b""

    def step(self, folds: Mapping[str, Fold], most: int) -> int:
        """Look at about so many rows; how many there were, 0 at the end."""
        looked = 0
        found: list[tuple[bytes, int]] = []
        with self._env.reading() as transaction:
            before = self._horizons(transaction, folds)
            for whole in self._keys(transaction, most) if before else ():
                looked += 1
                horizon = before.get((tile_set_of(whole), run_of(whole)))
                rows = KeyRows(transaction, self._env.tiles, whole)
                if horizon is not None and _old(rows, horizon, folds[tile_set_of(whole)]):
                    found.append((whole, horizon))
        for whole, horizon in found:
            looked += self._remove(whole, horizon, folds[tile_set_of(whole)])
        if not looked:
            self._at = b""
        return looked

    def _horizons(self, transaction: Any, folds: Mapping[str, Fold]) -> dict[tuple[str, str], int]:
        found = {}
        for tile_set, fold in folds.items():
            known = self._meta.known(transaction, tile_set)
            if known.layout == fold.layout:
                ages = horizons(fold.layout, known.progress, known.hand_overs)
                found.update({(tile_set, run): horizon for run, horizon in ages.items()})
        return found

    def _keys(self, transaction: Any, most: int) -> Any:
        """The whole prefixes of the next keys."""
        cursor = transaction.cursor(db=self._env.tiles)
        for _ in range(most):
            if not cursor.set_range(self._at):
                return
            identity, data = cursor.item()
            length = prefix_length(identity)
            yield whole_prefix(identity, length, unsealed(identity, data))
            self._at = identity[:length] + GROWTH_PLACE + b"\0"

    def _remove(self, whole: bytes, horizon: int, fold: Fold) -> int:
        """Remove the tiles of a key before a start, and the level rows that begin before it; how many there were."""
        removed = 0

        def work(transaction: Any) -> None:
            nonlocal removed
            rows, counts = KeyRows(transaction, self._env.tiles, whole), StoreCounts()
            gone = _before(rows, horizon, fold, PART + 1)
            before = horizon
            if len(gone) > PART:
                # The rest has its turn the next time round.
                before = start_of(gone[-1][0], len(rows.prefix))
                gone = [row for row in gone if start_of(row[0], len(rows.prefix)) < before]
            if fold.layout.base:
                counts.bases += _fold(rows, fold, gone, before)
            for identity, _, level in gone:
                transaction.delete(identity, db=self._env.tiles)
                counts.levels -= bool(level)
            if not rows.count(1):
                counts.keys -= 1
                counts.growths -= rows.drop_growth()
            self._meta.expire(transaction, tile_set_of(whole), run_of(whole), before)
            self._meta.count(transaction, counts)
            removed = len(gone)

        try:
            self._env.write(work)
        except HeadraceError as error:
            unreadable(error)
        return removed


def _fold(rows: KeyRows, fold: Fold, gone: Sequence[tuple[bytes, bytes, int]], end: int) -> bool:
    """Merge tiles into the key's base; whether it had none before."""
    tiles = [(identity, value) for identity, value, level in gone if not level]
    if not tiles:
        return False
    held = rows.base()
    pieces = [] if held is None else [ReadPiece(FIRST, BASE, held.partials)]
    pieces += [ReadPiece(start_of(each, len(rows.prefix)), 0, read_value(value).partials) for each, value in tiles]
    rows.put_base(end, fold.merge(BASE, pieces))
    return held is None


def _old(rows: KeyRows, horizon: int, fold: Fold) -> bool:
    """Whether a key has something to remove."""
    return next(iter(_before(rows, horizon, fold, 1)), None) is not None


def _before(rows: KeyRows, horizon: int, fold: Fold, most: int | None = None) -> list[tuple[bytes, bytes, int]]:
    """The rows of a key that are to be removed; where there is a base, tiles of the late lane are not."""
    found: list[tuple[bytes, bytes, int]] = []
    for identity, value, level in rows.items():
        start, lane = place_of(identity, len(rows.prefix))
        if start >= horizon or len(found) == most:
            break
        if level or not fold.layout.base or lane == ON_TIME:
            found.append((identity, value, level))
    return found
