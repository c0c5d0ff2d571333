"""The rows of one key within an LMDB transaction: walked in order, each known to be in its place.

Pages have no checksums of their own, so a damaged one could lead a search astray and hide rows that are there. Hence a
search looks at both rows between which it ended, and a walk sees to it that rows rise: two rows that are whole, in
order and side by side leave nothing out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.store.growth import Growth
from headrace.store.identity import (
    BASE_PLACE,
    GROWTH_PLACE,
    TOP,
    fitted,
    is_held,
    level_lane,
    level_of,
    place_of,
    placed,
    start_of,
)
from headrace.store.levels import FIRST, Piece
from headrace.store.protocol import StoredTile
from headrace.store.value import (
    BaseValue,
    DamagedError,
    GrowthValue,
    LevelValue,
    check_place,
    read_base,
    read_growth,
    read_level,
    read_value,
    sealed,
    tile_of,
    unsealed,
    write,
)

# What stands behind a start in the place of a lane: of tiles alone, what lies after every level.
_LANES = [b"\x02", *(level_lane(level).encode() for level in range(1, TOP + 1))]


class KeyRows:
    """The rows of one key of one run.

    Parameters
    ----------
    whole
        The key's prefix; one that is too long for LMDB is looked for by its digest, and compared with what is found.
    """

    def __init__(self, transaction: Any, table: Any, whole: bytes) -> None:
        self._transaction, self._table = transaction, table
        self._opened: Any = None
        self._identity, self._data = b"", b""
        self._place = (FIRST, 0)
        self.prefix = fitted(whole)
        self.whole = None if self.prefix == whole else whole

    @property
    def _cursor(self) -> Any:
        if self._opened is None:
            self._opened = self._transaction.cursor(db=self._table)
        return self._opened

    def count(self, most: int) -> int:
        """How many tiles there are, a base among them, counted no further than needed."""
        cursor, prefix, found = self._cursor, self.prefix, 0
        if cursor.set_range(prefix):
            for identity in cursor.iternext(keys=True, values=False):
                if not identity.startswith(prefix):
                    break
                found += is_held(identity, len(prefix))
                if found == most:
                    break
        return found

    def seek(self, start: int, level: int = TOP) -> tuple[int, int] | None:
        """See `levels.Walk.seek`."""
        target = self.prefix + (start - FIRST if start > FIRST else 0).to_bytes(8, "big") + _LANES[level]
        if not self._cursor.set_range(target):
            self._check_before(target, self._cursor.last())
            return None
        if level and self._cursor.key() == target:
            # Nothing lies between where it was looked for and where it was found.
            self._identity, self._data, self._place = target, self._cursor.value(), (start, level)
            return self._place
        if self._check_before(target, self._cursor.prev()):
            self._cursor.next()
        else:
            self._cursor.first()
        place = self._here(b"")
        if self._identity < target:
            raise _disorder()
        return place

    def _check_before(self, target: bytes, there: bool) -> bool:
        """See that the row before a place is whole and before it."""
        if there:
            before, data = self._cursor.item()
            check_place(before, data)
            if before >= target:
                raise _disorder()
        return there

    def next(self) -> tuple[int, int] | None:
        """See `levels.Walk.next`."""
        return self._here(self._identity) if self._cursor.next() else None

    def take(self) -> Piece:
        """See `levels.Walk.take`."""
        value = unsealed(self._identity, self._data)
        partials = read_level(value).partials if self._place[1] else read_value(value).partials
        return Piece(*self._place, partials)

    def _here(self, last: bytes) -> tuple[int, int] | None:
        """The place of the row that the cursor is at; None when it is none of this key's tiles and levels."""
        self._identity, self._data = identity, data = self._cursor.item()
        check_place(identity, data)
        if identity <= last:
            raise _disorder()
        if not identity.startswith(self.prefix):
            return None
        length = len(self.prefix)
        level = level_of(identity, length)
        if level is None:
            return None
        self._place = (start_of(identity, length), level)
        return self._place

    def items(self, start: int = FIRST) -> Iterator[tuple[bytes, Any, int]]:
        """Identity, sealed value and level of tiles and level rows from a start on."""
        place = self.seek(start)
        while place is not None:
            yield self._identity, self._data, place[1]
            place = self.next()

    def mine(self) -> bool:
        """Whether there is a base or any tile, and it is of this key and no other of the same digest."""
        base = self.base()
        if base is not None:
            return base.whole == self.whole
        first = next(((identity, data) for identity, data, level in self.items() if not level), None)
        if first is None or self.whole is None:
            return first is not None
        return read_value(unsealed(*first)).whole == self.whole

    def tiles(self, low: int, high: int) -> list[StoredTile]:
        """Tiles that start in [low, high)."""
        found = []
        for identity, data, level in self.items(low):
            tile, lane = place_of(identity, len(self.prefix))
            if tile >= high:
                break
            if not level:
                value = read_value(unsealed(identity, data))
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

    def put_growth(self, growth: Growth) -> bool:
        """Keep how far levels reach; whether that is new."""
        identity = self.prefix + GROWTH_PLACE
        value = sealed(identity, write(GrowthValue(growth, self.whole)))
        if self._transaction.put(identity, value, db=self._table, overwrite=False):
            return True
        self._transaction.put(identity, value, db=self._table)
        return False

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

    def put_level(self, piece: Piece) -> bool:
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
