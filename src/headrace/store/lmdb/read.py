"""One look into an LMDB store: which run is read, and what it holds of some keys in some bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.store.lmdb.meta import TileSetMeta
from headrace.store.lmdb.rows import KeyRows
from headrace.store.protocol import StoreRead
from headrace.tiles.changelog import Key
from headrace.tiles.expiry import other_base
from headrace.tiles.identity import prefix_of
from headrace.tiles.levels import BASE, EVER, Band, LevelLayout, ReadPiece, cover
from headrace.tiles.run_choice import choose_run


class StoreQuery(NamedTuple):
    """What is asked for; see `Store.read`."""

    tile_set: str
    keys: Sequence[Key]
    bands: Sequence[Band]
    run: str | None
    layout: LevelLayout | None


def looked_up(transaction: Any, table: Any, known: TileSetMeta, asked: StoreQuery) -> StoreRead:
    """The answer to a question, all of one transaction."""
    tile_set, keys, bands, run, layout = asked
    read, said = choose_run(known.progress, known.hand_overs, run)
    if read is None:
        return StoreRead(None, None, [None] * len(keys), filling=known.filling)
    if layout is None or known.layout != layout:
        bands = [Band(band.low, band.high, 0) for band in bands]
    widths = () if layout is None else layout.widths
    expired = known.expired.get(read)
    ever = bands[0].low if expired is not None and bands and bands[0].low <= EVER else None
    same = layout is not None and known.layout is not None and known.layout.base == layout.base
    found: list[list[ReadPiece] | None] = []
    for key in keys:
        rows = KeyRows(transaction, table, prefix_of(tile_set, read, key))
        pieces = _pieces(rows, bands, widths)
        found.append(pieces if ever is None else _with_base(rows, pieces, ever, same=same))
    return StoreRead(read, said, found, expired, known.filling)


def _pieces(rows: KeyRows, bands: Sequence[Band], widths: Sequence[int]) -> list[ReadPiece] | None:
    """The pieces of a key; None when there is no such key."""
    if rows.whole is not None and not rows.mine():
        return None
    found = cover(rows, bands, widths)
    return found if found or rows.mine() else None


def _with_base(rows: KeyRows, pieces: list[ReadPiece] | None, low: int, *, same: bool) -> list[ReadPiece] | None:
    """The pieces of a key with its base before them; one of other columns than the reader knows is refused."""
    base = None if pieces is None else rows.base()
    if base is None or pieces is None:
        return pieces
    if not same:
        raise other_base()
    return [ReadPiece(low, BASE, base.partials), *pieces]
