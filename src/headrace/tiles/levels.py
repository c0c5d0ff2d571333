"""Coarser levels: the tiles of a key merged over longer spans, so that a long window is read in tens of values.

A level row is a merge of the tiles of one span of one key, all lanes together. It is derived: whoever changes a tile
removes the rows that cover it in the same step, so a level row that exists is right. `cover` reads a range with the
coarsest rows there are and tiles at the edges; `growth` says when and from what rows are made. What the partial columns
mean is known to a `Fold` alone, which comes from whoever knows the plan (`tiles.fold`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from headrace.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND

FIRST, END = -(2**63), 2**63
"""Every tile's start lies in [FIRST, END)."""

EVER = -(2**62)
"""Where the window begins that holds everything."""

BASE = -1
"""The level of a key's base: all tiles together that are kept no longer one by one."""

FACTOR = 8
"""A level is at most this many times as wide as the one below."""

LEAST = 3
"""A row that would stand for fewer pieces is not worth its room."""

WIDEST = 100 * 365 * DAY
_ROUND = sorted(
    step * unit
    for unit, steps in (
        (MILLISECOND, (1, 5, 10, 50, 100, 500)),
        (SECOND, (1, 5, 10, 15, 30)),
        (MINUTE, (1, 5, 10, 15, 30)),
        (HOUR, (1, 2, 3, 6, 12)),
        (DAY, (1,)),
    )
    for step in steps
)


class LevelLayout(msgspec.Struct, frozen=True):
    """How the levels of a tile set are cut; rows of another layout are never read.

    Parameters
    ----------
    digest
        Stands for everything that decides what a level row holds.
    widths
        Microseconds of the spans, level 1 first; each a multiple of the one before, and of the tiles'.
    keep
        For how long after a tile's start something may ask for it, in microseconds; 0 for ever (`expiry`).
    base
        Stands for the columns that are kept beyond that, of all tiles together; empty when there are none.
    """

    digest: str
    widths: tuple[int, ...]
    keep: int = 0
    base: str = ""


class ReadPiece(msgspec.Struct, frozen=True, gc=False):
    """Part of what a range is read from: a tile in one lane (level 0), a level row, or a key's base (level BASE)."""

    start: int
    level: int
    partials: bytes


class Band(NamedTuple):
    """A range of tile starts, and the coarsest level that may be read in it."""

    low: int
    high: int
    level: int


class Fold(Protocol):
    """How the tiles of one tile set are merged."""

    @property
    def layout(self) -> LevelLayout:
        """How its levels are cut."""
        ...

    def merge(self, level: int, pieces: Sequence[ReadPiece]) -> bytes:
        """The partial columns of a row of that level, or of a base; tiles that cannot be read raise `bad-changelog`."""
        ...


def widths(grain: int, longest: int | None) -> tuple[int, ...]:
    """The spans of the levels above a grain, round ones where they fit, up to the longest that is of use.

    >>> [width // MINUTE for width in widths(MINUTE, 30 * DAY)]
    [5, 30, 180, 1440, 11520]
    >>> widths(MINUTE, 4 * MINUTE)
    ()
    """
    found: list[int] = []
    width, most = grain, WIDEST if longest is None else longest
    while True:
        fitting = [each for each in _ROUND if LEAST * width <= each <= FACTOR * width and each % width == 0]
        width = fitting[-1] if fitting else FACTOR * width
        if width > most:
            return tuple(found)
        found.append(width)


def floor(place: int, width: int) -> int:
    """Where the span begins that holds a place.

    >>> floor(-1, 10)
    -10
    """
    return place - place % width


class Walk(Protocol):
    """The rows of a key in order: by start, and of one start the coarsest first. A place is a row's start and level."""

    def seek(self, start: int, level: int) -> tuple[int, int] | None:
        """Go to the first row that begins later, or there and is not of a coarser level; its place, None at the end."""
        ...

    def take(self) -> ReadPiece:
        """What the row holds."""
        ...

    def gather(self, high: int, found: list[ReadPiece]) -> tuple[int, int] | None:
        """Add the tile that is here and those next to it that begin before `high`; the place of the row after them."""
        ...


_NOWHERE = (FIRST - 1, 0)


def cover(walk: Walk, bands: Sequence[Band], widths: Sequence[int]) -> list[ReadPiece]:
    """The pieces that together are all tiles of some bands, each tile once.

    Parameters
    ----------
    walk
        Where they are taken from.
    bands
        In order, without overlap, their ends on the edges of tiles.

    Examples
    --------
    >>> rows = [ReadPiece(0, 1, b"0+1"), ReadPiece(0, 0, b"0"), ReadPiece(1, 0, b"1"), ReadPiece(2, 0, b"2")]
    >>> [piece.partials for piece in cover(Listed(rows), [Band(0, 3, 1)], [2])]
    [b'0+1', b'2']
    >>> [piece.partials for piece in cover(Listed(rows), [Band(0, 1, 1), Band(1, 3, 1)], [2])]
    [b'0', b'1', b'2']
    """
    found: list[ReadPiece] = []
    place: tuple[int, int] | None = _NOWHERE
    for (low, high, coarsest), end in zip(bands, _ends(bands), strict=True):
        usable = widths[:coarsest]
        if place is not None and place[0] < low:
            place = walk.seek(low, _fitting(low, high, usable))
        while place is not None and place[0] < high:
            start, level = place
            if not level:
                # Tiles are the same in every band.
                place = walk.gather(end, found)
                continue
            if level <= coarsest and start + widths[level - 1] <= high:
                found.append(walk.take())
                start += widths[level - 1]
            if start == high:
                place = _NOWHERE
                break
            place = walk.seek(start, _fitting(start, high, usable))
    return found


def _ends(bands: Sequence[Band]) -> list[int]:
    """Where the bands end that lie side by side from each one on."""
    ends: list[int] = []
    for number in range(len(bands) - 1, -1, -1):
        follows = bool(ends) and bands[number + 1].low == bands[number].high
        ends.append(ends[-1] if follows else bands[number].high)
    ends.reverse()
    return ends


def _fitting(start: int, high: int, widths: Sequence[int]) -> int:
    """The coarsest level of which a row can begin at a start and end by `high`."""
    fitting = 0
    for level, width in enumerate(widths, 1):
        if start % width or start + width > high:
            break
        fitting = level
    return fitting


class Listed:
    """A walk over rows in a list."""

    def __init__(self, rows: Sequence[ReadPiece]) -> None:
        self._rows = sorted(rows, key=_order)
        self._at = 0

    def seek(self, start: int, level: int) -> tuple[int, int] | None:
        """See `Walk.seek`."""
        self._at = bisect_left(self._rows, (start, -level), key=_order)
        return self._position()

    def take(self) -> ReadPiece:
        """See `Walk.take`."""
        return self._rows[self._at]

    def gather(self, high: int, found: list[ReadPiece]) -> tuple[int, int] | None:
        """See `Walk.gather`."""
        while (place := self._position()) is not None and place[0] < high and not place[1]:
            found.append(self.take())
            self._at += 1
        return place

    def _position(self) -> tuple[int, int] | None:
        return (self._rows[self._at].start, self._rows[self._at].level) if self._at < len(self._rows) else None


def _order(piece: ReadPiece) -> tuple[int, int]:
    return piece.start, -piece.level
