"""A merge for the store tests that forgets nothing: a row says of how much and of which tiles it is made."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from headrace.tiles.levels import BASE, Band, LevelLayout, ReadPiece

GRAIN = 10
WIDTHS = (40, 160, 640)


class Counting:
    """Sums the only column there is; a piece comes to its total and the places of its tiles."""

    def __init__(self, widths: tuple[int, ...] = WIDTHS, digest: str = "one", *, keep: int = 0, base: str = "") -> None:
        self.layout = LevelLayout(digest, widths, keep, base)
        self.merged = 0

    def merge(self, level: int, pieces: Sequence[ReadPiece]) -> bytes:
        self.merged += len(pieces)
        if level != BASE:
            width = self.layout.widths[level - 1]
            assert len({piece.start // width for piece in pieces}) == 1, "pieces of two spans in one row"
        return json.dumps({"level": level, **told(pieces)}).encode()


def told(pieces: Iterable[ReadPiece]) -> dict[str, object]:
    """What pieces come to together."""
    total, tiles = 0, Counter[int]()
    for piece in pieces:
        said = json.loads(piece.partials)
        if piece.level:
            assert said["level"] == piece.level
            total += said["total"]
            tiles.update({int(tile): count for tile, count in said["tiles"].items()})
        else:
            total += said["count_1"]
            tiles[piece.start] += 1
    return {"total": total, "tiles": {str(tile): tiles[tile] for tile in sorted(tiles)}}


def bands_of(edges: Sequence[int], level: int = 99) -> list[Band]:
    """Bands between edges, by number of tiles."""
    places = sorted({edge * GRAIN for edge in edges})
    return [Band(low, high, level) for low, high in pairwise(places)]
