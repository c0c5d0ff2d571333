"""The rows of one key in memory: tiles and level rows in order, and the base that is left of tiles that have gone."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from headrace.errors import HeadraceError
from headrace.store.protocol import StoredTile
from headrace.tiles.changelog import TileRow
from headrace.tiles.expiry import ON_TIME
from headrace.tiles.level_growth import FRESH, Growth, grown, unreadable
from headrace.tiles.levels import BASE, FIRST, Band, Fold, LevelLayout, ReadPiece, cover

Place = tuple[int, int, str]
"""A row's start, its level (negative: the coarsest comes first) and its lane."""


class KeyInMemory:
    """The rows of one key of one run, in order."""

    def __init__(self, tile_set: str) -> None:
        self.tile_set = tile_set
        self.tiles: dict[Place, StoredTile] = {}
        self.levels: dict[Place, ReadPiece] = {}
        self.growth = Growth()
        self.base: tuple[int, bytes] | None = None
        self._places: list[Place] = []
        self._at = 0

    @property
    def empty(self) -> bool:
        return not self.tiles and self.base is None

    def takes(self, row: TileRow, fold: Fold) -> bool:
        """Whether a tile that is so old is kept one by one."""
        if self.base is None:
            return bool(fold.layout.base)
        return row.lane != ON_TIME or row.tile >= self.base[0]

    def expire(self, before: int, fold: Fold) -> bool:
        """Remove tiles that begin before a start; whether there were any."""
        base = bool(fold.layout.base)
        gone = [place for place in self.tiles if place[0] < before and (place[2] == ON_TIME or not base)]
        if gone and base:
            held = [] if self.base is None else [ReadPiece(FIRST, BASE, self.base[1])]
            try:
                merged = fold.merge(
                    BASE, [*held, *(ReadPiece(at[0], 0, self.tiles[at].partials) for at in sorted(gone))]
                )
            except HeadraceError as error:
                return bool(unreadable(error))
            self.base = (before, merged)
        for place in gone:
            del self.tiles[place]
        for place in [place for place in self.levels if place[0] < before] if gone else ():
            del self.levels[place]
        self._places = sorted([*self.tiles, *self.levels])
        return bool(gone)

    def put(self, row: TileRow, fold: Fold | None) -> None:
        place = (row.tile, 0, row.lane)
        if place not in self.tiles:
            insort(self._places, place)
            self.growth.fresh += 1
        if self.tiles.get(place) != stored(row):
            self.tiles[place] = stored(row)
            self._changed(row.tile, fold)

    def remove(self, place: Place, fold: Fold | None) -> None:
        if self.base is not None and place[0] < self.base[0] and place[2] == ON_TIME:
            # Only a run that is being removed as a whole has tombstones of what is final.
            self.base = None
        if self.tiles.pop(place, None) is not None:
            del self._places[bisect_left(self._places, place)]
            self._changed(place[0], fold)

    def _changed(self, tile: int, fold: Fold | None) -> None:
        for start, level in [] if fold is None else self.growth.changed(fold.layout, tile):
            if self.levels.pop((start, -level, ""), None) is not None:
                del self._places[bisect_left(self._places, (start, -level, ""))]

    def between(self, low: int, high: int) -> list[StoredTile]:
        first, last = (bisect_left(self._places, (edge, -99, "")) for edge in (low, high))
        return [self.tiles[place] for place in self._places[first:last] if place[1] == 0]

    def covered(self, bands: Sequence[Band], layout: LevelLayout | None) -> list[ReadPiece]:
        usable = bands if layout is not None else [Band(band.low, band.high, 0) for band in bands]
        return cover(self, usable, () if layout is None else layout.widths)

    def seek(self, start: int, level: int) -> tuple[int, int] | None:
        self._at = bisect_left(self._places, (start, -level, ""))
        return self._position()

    def take(self) -> ReadPiece:
        return self.levels[self._places[self._at]]

    def gather(self, high: int, found: list[ReadPiece]) -> tuple[int, int] | None:
        while (place := self._position()) is not None and place[0] < high and not place[1]:
            found.append(ReadPiece(place[0], 0, self.tiles[self._places[self._at]].partials))
            self._at += 1
        return place

    def _position(self) -> tuple[int, int] | None:
        if self._at == len(self._places):
            return None
        start, level, _ = self._places[self._at]
        return start, -level

    def forget_levels(self) -> None:
        self.levels.clear()
        self._places = sorted(self.tiles)
        self.growth = Growth(fresh=len(self.tiles))

    def grow(self, fold: Fold, most: int) -> int:
        first = bisect_left(self._places, (self.growth.reached, -99, ""))
        starts = [start for start, level, _ in self._places[first:] if level == 0][: most + 1]
        until = starts[-1] if starts else self.growth.reached
        try:
            made = grown(fold, self.growth, until, lambda bands: self.covered(bands, fold.layout))
        except HeadraceError as error:
            made, until, starts = unreadable(error), self.growth.reached, []
        for piece in made:
            place = (piece.start, -piece.level, "")
            if place not in self.levels:
                insort(self._places, place)
            self.levels[place] = piece
        self.growth = Growth(until, FRESH if len(starts) > most else 0)
        return len(starts) + 1


def stored(row: TileRow) -> StoredTile:
    """A row without the key it is found by."""
    times = (row.max_event_time, row.max_arrived_at)
    return StoredTile(row.tile, row.lane, row.version, row.partials, row.positions, *times)
