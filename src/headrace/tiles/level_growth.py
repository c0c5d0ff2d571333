"""Which level rows new and changed tiles of a key lead to, and what must be read to make them.

A key's `Growth` says how far its levels reach. Before that place every span that has ended, and holds enough to be
worth it, has its row; spans that lost theirs since are holes. From that place on there are no level rows at all, so a
tile that is written there, which is nearly every one, has nothing to remove.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

import msgspec

from headrace.errors import HeadraceError
from headrace.tiles.levels import END, FIRST, LEAST, Band, Fold, LevelLayout, ReadPiece, floor

FRESH = 32
"""New tiles of a key after which its levels are extended."""

HOLES = 4
"""Spans of a key without their rows after which these are made again."""

SAFE = 2**53
"""Level rows lie within as many microseconds of 1970, 285 years: all stores can reckon that far."""

MOST = 1_000
"""About how many tiles are merged in one step: new ones wait for some milliseconds, and a step is worth its commit."""

_logger = logging.getLogger(__name__)


class Growth(msgspec.Struct, array_like=True, gc=False):
    """How far the levels of a key reach.

    Parameters
    ----------
    reached
        Level rows end by here.
    fresh
        How many tiles there are more since.
    holes
        Starts of the spans of level 1 before `reached` in which a tile has changed since.
    """

    reached: int = FIRST
    fresh: int = 0
    holes: list[int] = []

    @property
    def due(self) -> bool:
        """Whether it is time to make rows.

        >>> Growth(fresh=FRESH).due, Growth(holes=[0, 10]).due
        (True, False)
        """
        return self.fresh >= FRESH or len(self.holes) >= HOLES

    def changed(self, layout: LevelLayout, tile: int) -> list[tuple[int, int]]:
        """Take note that a tile is another now; start and level of the rows that are wrong by it.

        >>> layout = LevelLayout("", (10, 50))
        >>> Growth(reached=60).changed(layout, 57), Growth(reached=50).changed(layout, 57)
        ([(50, 1), (50, 2)], [])
        """
        if tile >= self.reached:
            return []
        wrong = covering(layout, tile)
        if wrong and wrong[0][0] not in self.holes:
            self.holes.append(wrong[0][0])
        return wrong


def covering(layout: LevelLayout, tile: int) -> list[tuple[int, int]]:
    """Start and level of every row that could hold a tile.

    >>> covering(LevelLayout("", (10, 50)), 57)
    [(50, 1), (50, 2)]
    """
    placed = [(floor(tile, width), level) for level, width in enumerate(layout.widths, 1)]
    return [(start, level) for start, level in placed if -SAFE <= start < SAFE]


def around(layout: LevelLayout, low: int, high: int, until: int) -> list[Band]:
    """What must be read to make every row that holds a tile of [low, high) and ends by `until`.

    Tiles inside, and levels beside them as far as the widest of these rows reaches.

    >>> around(LevelLayout("", (10, 50, 250)), 60, 70, until=200)
    [Band(low=50, high=60, level=1), Band(low=60, high=70, level=0), Band(low=70, high=100, level=1)]
    """
    left, right = [], []
    inner, outer = low, high
    for below, width in enumerate(layout.widths):
        first, last = max(floor(low, width), FIRST), min(-floor(-high, width), END)
        if first + width > until:
            break
        left.append(Band(first, inner, below))
        inner = first
        if last <= until:
            right.append(Band(outer, last, below))
            outer = last
    middle = Band(low, high, 0)
    return [band for band in (*reversed(left), middle, *right) if band.low < band.high]


def merged(fold: Fold, pieces: Iterable[ReadPiece], low: int, high: int, until: int) -> list[ReadPiece]:
    """The level rows that hold a tile of [low, high) and end by `until`, from what lies `around` it."""
    held, made = list(pieces), []
    for level, width in enumerate(fold.layout.widths, 1):
        first, groups, others = floor(low, width), dict[int, list[ReadPiece]](), list[ReadPiece]()
        for piece in held:
            start = floor(piece.start, width)
            inside = max(first, -SAFE) <= start < high and start + width <= min(until, SAFE)
            (groups.setdefault(start, []) if inside else others).append(piece)
        rows = []
        for start, group in groups.items():
            if len(group) < LEAST:
                others += group
            else:
                rows.append(ReadPiece(start, level, fold.merge(level, group)))
        made += rows
        held = sorted(others + rows, key=lambda piece: piece.start)
    return made


def grown(
    fold: Fold, growth: Growth, until: int, covered: Callable[[Sequence[Band]], Iterable[ReadPiece]]
) -> list[ReadPiece]:
    """All rows that a key lacks of spans that end by `until`.

    Parameters
    ----------
    until
        The start of a tile after which there are others; spans that end later may still change.
    covered
        The pieces of some bands of the key.
    """
    layout, made = fold.layout, list[ReadPiece]()
    for hole in growth.holes:
        end = hole + layout.widths[0]
        made += merged(fold, covered(around(layout, hole, end, growth.reached)), hole, end, growth.reached)
    low = growth.reached
    return made + merged(fold, covered(around(layout, low, until, until)), low, until, until) if until > low else made


def unreadable(error: HeadraceError) -> list[ReadPiece]:
    """No rows, because a tile cannot be read; any other failure is one.

    To read the tile fails as well, and says so; that it is in no level row does no harm.
    """
    if error.code != "bad-changelog":
        raise error
    _logger.error("no levels are made of a tile that cannot be read: %s", error)
    return []
