"""The rows of one key within an LMDB transaction: walked in order, each known to be in its place.

Pages have no checksums of their own, so a damaged one could lead a search astray and hide rows that are there. Hence a
search looks at both rows between which it ended, and a walk sees to it that rows rise: two rows that are whole, in
order and side by side leave nothing out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.store.protocol import StoredTile
from headrace.store.row_bytes import (
    BaseValue,
    DamagedError,
    GrowthValue,
    LevelValue,
    check_place,
    read_base,
    read_growth,
    read_level,
    read_tile,
    read_value,
    sealed,
    tile_of,
    unsealed,
    write,
)
from headrace.tiles.identity import (
    BASE_PLACE,
    GROWTH_PLACE,
    LEVEL_MARK,
    TOP,
    fitted,
    level_lane,
    level_of,
    place_of,
    placed,
    start_of,
)
from headrace.tiles.level_growth import Growth
from headrace.tiles.levels import END, FIRST, ReadPiece

# What stands behind a start in the place of a lane: of tiles alone, what lies after every level.
_LANES = [b"\x02", *(level_lane(level).encode() for level in range(1, TOP + 1))]


class KeyRows:
    """The rows of one key of one run.

    Parameters
    ----------
    whole
        The key's prefix; one that is too long for LMDB is looked for by its digest, and compared with what is found.
    cursor
        To walk with; by default one of its own.
    """

    def __init__(self, transaction: Any, table: Any, whole: bytes, cursor: Any = None) -> None:
        self._transaction, self._table = transaction, table
        self._cursor = transaction.cursor(db=table) if cursor is None else cursor
        self._identity, self._value = b"", b""
        self._place = (FIRST, 0)
        self.prefix = fitted(whole)
        self.whole = None if self.prefix == whole else whole

    def count(self, most: int) -> int:
        """How many tiles there are, a base among them, counted no further than needed."""
        cursor, lane, end, found = self._cursor, len(self.prefix) + 8, self.prefix + GROWTH_PLACE, 0
        if cursor.set_range(self.prefix):
            for identity in cursor.iternext(keys=True, values=False):
                if identity >= end:
                    break
                found += identity[lane : lane + 1] != LEVEL_MARK
                if found == most:
                    break
        return found

    def seek(self, start: int, level: int = TOP) -> tuple[int, int] | None:
        """See `levels.Walk.seek`."""
        cursor = self._cursor
        target = self.prefix + (start - FIRST if start > FIRST else 0).to_bytes(8, "big") + _LANES[level]
        if not cursor.set_range(target):
            self._check_before(target, cursor.last())
            return None
        identity, data = cursor.item()
        if identity == target:
            # Nothing lies between where it was looked for and where it was found.
            self._identity, self._value, self._place = identity, unsealed(identity, data), (start, level)
            return self._place
        if self._check_before(target, cursor.prev()):
            cursor.next()
        else:
            cursor.first()
        identity, data = cursor.item()
        if identity < target:
            raise _disorder()
        return self._met(identity, data)

    def _check_before(self, target: bytes, there: bool) -> bool:
        """See that the row before a place is whole and before it."""
        if there:
            before, data = self._cursor.item()
            check_place(before, data)
            if before >= target:
                raise _disorder()
        return there

    def take(self) -> ReadPiece:
        """See `levels.Walk.take`."""
        return ReadPiece(*self._place, read_level(self._value).partials)

    def gather(self, high: int, found: list[ReadPiece]) -> tuple[int, int] | None:
        """See `levels.Walk.gather`."""
        prefix, last = self.prefix, self._identity
        length, lane = len(prefix), len(prefix) + 8
        end = prefix + ((high - FIRST).to_bytes(8, "big") if high < END else GROWTH_PLACE)
        add, from_bytes = found.append, int.from_bytes
        add(ReadPiece(self._place[0], 0, read_tile(self._value).partials))
        rows = self._cursor.iternext()
        next(rows)
        for identity, data in rows:
            if not last < identity < end or identity[lane : lane + 1] == LEVEL_MARK:
                return self._met(identity, data, last)
            partials = read_tile(unsealed(identity, data)).partials
            add(ReadPiece(from_bytes(identity[length:lane], "big") + FIRST, 0, partials))
            last = identity
        return None

    def _met(self, identity: bytes, data: bytes, last: bytes = b"") -> tuple[int, int] | None:
        """The place of a row that the cursor has come to; None when it is none of this key's tiles and levels."""
        length = len(self.prefix)
        if not identity.startswith(self.prefix):
            check_place(identity, data)
            level = None
        else:
            self._identity, self._value = identity, unsealed(identity, data)
            level = level_of(identity, length)
        if identity <= last:
            raise _disorder()
        if level is None:
            return None
        self._place = (int.from_bytes(identity[length : length + 8], "big") + FIRST, level)
        return self._place

    def items(self, start: int = FIRST) -> Iterator[tuple[bytes, bytes, int]]:
        """Identity, value and level of tiles and level rows from a start on."""
        place = self.seek(start)
        while place is not None:
            yield self._identity, self._value, place[1]
            if not self._cursor.next():
                return
            identity, data = self._cursor.item()
            place = self._met(identity, data, self._identity)

    def mine(self) -> bool:
        """Whether there is a base or any tile, and it is of this key and no other of the same digest."""
        base = self.base()
        if base is not None:
            return base.whole == self.whole
        first = next((value for _, value, level in self.items() if not level), None)
        if first is None or self.whole is None:
            return first is not None
        return read_value(first).whole == self.whole

    def tiles(self, low: int, high: int) -> list[StoredTile]:
        """Tiles that start in [low, high)."""
        found = []
        for identity, kept, level in self.items(low):
            tile, lane = place_of(identity, len(self.prefix))
            if tile >= high:
                break
            if not level:
                value = read_value(kept)
                if value.whole == self.whole:
                    found.append(tile_of(tile, lane, value))
        return found

    def starts(self, start: int, most: int) -> list[int]:
        """The starts of the first tiles from one on."""
        found: list[int] = []
        for identity, _, level in self.items(start):
            if len(found) == most:
                break
            if not level:
                found.append(start_of(identity, len(self.prefix)))
        return found

    def growth(self) -> Growth | None:
        """How far the key's levels reach; None while it has had too few tiles for any."""
        identity = self.prefix + GROWTH_PLACE
        found = self._transaction.get(identity, db=self._table)
        return None if found is None else read_growth(unsealed(identity, found)).growth

    def put_growth(self, growth: Growth) -> None:
        """Keep how far levels reach."""
        identity = self.prefix + GROWTH_PLACE
        value = sealed(identity, write(GrowthValue(growth, self.whole)))
        self._transaction.put(identity, value, db=self._table)

    def drop_growth(self) -> bool:
        """Forget how far levels reach."""
        return bool(self._transaction.delete(self.prefix + GROWTH_PLACE, db=self._table))

    def base(self) -> BaseValue | None:
        """The key's base, if it has one."""
        identity = self.prefix + BASE_PLACE
        found = self._transaction.get(identity, db=self._table)
        return None if found is None else read_base(unsealed(identity, found))

    def put_base(self, end: int, partials: bytes) -> None:
        """Keep a base."""
        identity = self.prefix + BASE_PLACE
        value = write(BaseValue(end, partials, self.whole))
        self._transaction.put(identity, sealed(identity, value), db=self._table)

    def drop_base(self) -> bool:
        """Remove the base."""
        return bool(self._transaction.delete(self.prefix + BASE_PLACE, db=self._table))

    def put_level(self, piece: ReadPiece) -> bool:
        """Keep a level row; whether it is new."""
        identity = placed(self.prefix, piece.start, level_lane(piece.level))
        value = sealed(identity, write(LevelValue(piece.partials, self.whole)))
        if self._transaction.put(identity, value, db=self._table, overwrite=False):
            return True
        self._transaction.put(identity, value, db=self._table)
        return False

    def drop_level(self, start: int, level: int) -> bool:
        """Remove a level row, if there is one."""
        return bool(self._transaction.delete(placed(self.prefix, start, level_lane(level)), db=self._table))


def whole_prefix(identity: bytes, length: int, value: bytes) -> bytes:
    """The whole prefix of the key that a row is of."""
    place = identity[length:]
    if place == BASE_PLACE:
        whole = read_base(value).whole
    elif place == GROWTH_PLACE:
        whole = read_growth(value).whole
    else:
        whole = (read_level(value) if place[8] == 1 else read_value(value)).whole
    return whole or identity[:length]


def _disorder() -> DamagedError:
    return DamagedError("Rows of the store are not in their order.")
