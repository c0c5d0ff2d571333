"""What changes the rows of an LMDB store: a batch of tiles, and the making of level rows.

Rows are changed key by key. A tile that is written where levels reach takes the level rows that hold it with it, in the
same transaction, so that none that stays is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import msgspec

from headrace.errors import HeadraceError
from headrace.store.lmdb.meta import Meta, StoreCounts, TileSetMeta
from headrace.store.lmdb.rows import KeyRows
from headrace.store.row_bytes import RowChange, read_value, sealed, unsealed, value_of
from headrace.tiles.expiry import ON_TIME
from headrace.tiles.identity import place_of, run_of, start_of
from headrace.tiles.level_growth import FRESH, Growth, grown, unreadable
from headrace.tiles.levels import Fold, LevelLayout, cover


class _Version(msgspec.Struct, array_like=True, gc=False):
    """The beginning of a tile's value."""

    version: int


_read_version = msgspec.msgpack.Decoder(_Version).decode


class Changing:
    """Changes to the rows of a store within one transaction.

    Attributes
    ----------
    counts
        How much more there is by them.
    due
        Prefixes of the keys whose levels are to be made, with their tile set.
    """

    def __init__(self, transaction: Any, table: Any, meta: Meta) -> None:
        self._transaction, self._table, self._meta = transaction, table, meta
        self._cursor = transaction.cursor(db=table)
        self._known: dict[str, TileSetMeta] = {}
        self.counts = StoreCounts()
        self.due: dict[bytes, str] = {}

    def apply(self, tiles: Mapping[bytes, RowChange]) -> None:
        """Apply the changes of a batch, by identity."""
        # In the order of the table, so that what is looked for lies next to what was found.
        ordered = [(identity, tiles[identity]) for identity in sorted(tiles)]
        for whole, changes in groupby(ordered, key=lambda each: each[1].prefix):
            self._key(self._rows(whole), list(changes))

    def _rows(self, whole: bytes) -> KeyRows:
        return KeyRows(self._transaction, self._table, whole, self._cursor)

    def _tile_set_meta(self, tile_set: str) -> TileSetMeta:
        known = self._known.get(tile_set)
        if known is None:
            known = self._known[tile_set] = self._meta.look(self._transaction, tile_set)
        return known

    def _key(self, rows: KeyRows, changes: list[tuple[bytes, RowChange]]) -> None:
        """Apply the changes of one key."""
        known = self._tile_set_meta(changes[0][1].tile_set)
        layout, expired = known.layout, known.expired.get(run_of(changes[0][1].prefix)) if known.expired else None
        if expired is not None:
            changes = [each for each in changes if self._is_kept(rows, *each, expired, layout)]
        growth = None if layout is None else rows.growth()
        held = -1 if growth is None else FRESH
        born, gone, touched = 0, 0, list[bytes]()
        for identity, change in changes:
            row = change.row
            data = None if row is None else sealed(identity, value_of(row, rows.whole))
            if data is not None and self._transaction.put(identity, data, db=self._table, overwrite=False):
                held = rows.count(FRESH + 1) - 1 if held < 0 else held
                born += 1
                touched.append(identity)
                continue
            found = self._transaction.get(identity, db=self._table)
            # A row that comes again, as after a crash, changes nothing, and the level rows that hold it stay.
            if data == found or not self._counts(change, self._before(identity, found, rows.whole)):
                continue
            if row is None:
                held = rows.count(FRESH) if held < 0 else held
                gone += self._transaction.delete(identity, db=self._table)
            else:
                self._transaction.put(identity, data, db=self._table)
            touched.append(identity)
        left = bool(born or rows.count(1)) if gone else True
        if held >= 0:
            self.counts.keys += left - (held > 0)
        if layout is None or not touched or not (growth or born):
            return
        if growth is None:
            if held + born < FRESH:
                return
            growth = Growth(fresh=held)
            self.counts.growths += 1
        growth.fresh += born
        for identity in touched:
            for start, level in growth.changed(layout, start_of(identity, len(rows.prefix))):
                self.counts.levels -= rows.drop_level(start, level)
        self._keep(rows, growth if left else None, change)

    def _is_kept(
        self, rows: KeyRows, identity: bytes, change: RowChange, expired: int, layout: LevelLayout | None
    ) -> bool:
        """Whether a change is of a tile that is still kept one by one.

        A tombstone of one that is in the key's base is of a run that is being removed as a whole.
        """
        tile, lane = place_of(identity, len(rows.prefix))
        if tile >= expired:
            return True
        base = rows.base()
        if base is None:
            return change.row is None or (layout is not None and bool(layout.base))
        if lane != ON_TIME or tile >= base.end:
            return True
        if change.row is None:
            self.counts.bases -= rows.drop_base()
            if not rows.count(1):
                self.counts.keys -= 1
                self.counts.growths -= rows.drop_growth()
        return False

    @staticmethod
    def _counts(change: RowChange, before: int) -> bool:
        """Whether a change makes a difference to a row of that version."""
        return change.row is None or change.forget or change.row.version >= before

    def _keep(self, rows: KeyRows, growth: Growth | None, change: RowChange) -> None:
        """Keep how far levels reach, and see whether it is time to make some."""
        if growth is None:
            self.counts.growths -= rows.drop_growth()
            return
        rows.put_growth(growth)
        if growth.due:
            self.due[change.prefix] = change.tile_set

    def _before(self, identity: bytes, found: bytes, whole: bytes | None) -> int:
        """The version of the row that is there."""
        value = unsealed(identity, found)
        if whole is not None and read_value(value).whole != whole:
            raise HeadraceError("store-failed", "Two keys of the store have one digest.", got=identity.hex())
        return _read_version(value).version

    def grow(self, whole: bytes, tile_set: str, fold: Fold, most: int) -> int:
        """Make the level rows that a key lacks, from at most so many new tiles; how much work that was."""
        rows = self._rows(whole)
        growth = rows.growth()
        if growth is None:
            return 1
        starts = rows.starts(growth.reached, most + 1)
        until, worked = starts[-1] if starts else growth.reached, 0

        def covered(bands: Any) -> Any:
            nonlocal worked
            found = cover(rows, bands, fold.layout.widths)
            worked += len(found)
            return found

        try:
            made = grown(fold, growth, until, covered)
        except HeadraceError as error:
            made, until, starts = unreadable(error), growth.reached, []
        for piece in made:
            self.counts.levels += rows.put_level(piece)
        more = len(starts) > most
        rows.put_growth(Growth(until, FRESH if more else 0))
        if more:
            self.due[whole] = tile_set
        return worked + 1
