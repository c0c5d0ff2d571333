"""What stores of bytes share: a batch folded to one change for each identity, and a tile's row as msgpack.

`lmdb` and `redis` decide where the bytes lie; which of two rows of an identity stays is said in `protocol`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from headrace.store.changelog import Gone, HandOver, ProgressRow, Row, TileRow
from headrace.store.identity import placed, prefix_of
from headrace.store.protocol import StoredTile

PROGRESS, HAND_OVER = "progress", "hand-over"

RunName = tuple[str, str, str]
"""Progress or hand-over, the tile set, the run."""


class Value(msgspec.Struct, array_like=True, gc=False):
    """A tile's row as it is kept; `whole` is the prefix when the key in the table is only its digest."""

    version: int
    partials: bytes
    positions: Mapping[int, int]
    times: tuple[int | None, int | None]
    whole: bytes | None = None


class Change(msgspec.Struct, gc=False):
    """What a batch does to one identity: forget what is stored, then offer a row."""

    prefix: bytes
    forget: bool = False
    row: TileRow | None = None


write = msgspec.msgpack.Encoder().encode
read_value = msgspec.msgpack.Decoder(Value).decode
read_progress = msgspec.msgpack.Decoder(ProgressRow).decode
read_hand_over = msgspec.msgpack.Decoder(HandOver).decode


def value_of(row: TileRow, whole: bytes | None = None) -> bytes:
    """The bytes of a row without its identity.

    >>> read_value(value_of(TileRow("ab", "r", ("42",), 0, "on_time", version=3))).version
    3
    """
    return write(Value(row.version, row.partials, row.positions, (row.max_event_time, row.max_arrived_at), whole))


def tile_of(tile: int, lane: str, value: Value) -> StoredTile:
    """A row as it is handed out.

    >>> tile_of(0, "late", Value(3, b"{}", {}, (None, None))).lane
    'late'
    """
    return StoredTile(tile, lane, value.version, value.partials, value.positions, *value.times)


def folded(
    rows: Iterable[Row], fitted: Callable[[bytes], bytes]
) -> tuple[dict[bytes, Change], dict[RunName, ProgressRow | HandOver | None]]:
    """What a batch comes to: one change for each identity, so that a row rewritten ten times is written once.

    Parameters
    ----------
    rows
        In the order of the changelog.
    fitted
        Makes a prefix as long as the store can take.

    Examples
    --------
    >>> row = TileRow("ab", "r", ("42",), 0, "on_time", version=1)
    >>> tiles, about_runs = folded([row, row, Gone("ab", "r")], bytes)
    >>> len(tiles), about_runs
    (1, {('progress', 'ab', 'r'): None, ('hand-over', 'ab', 'r'): None})
    """
    tiles: dict[bytes, Change] = {}
    about_runs: dict[RunName, ProgressRow | HandOver | None] = {}
    for row in rows:
        if isinstance(row, ProgressRow):
            about_runs[PROGRESS, row.tile_set, row.run] = row
        elif isinstance(row, HandOver):
            about_runs[HAND_OVER, row.tile_set, row.run] = row
        elif row.tile is None:
            about_runs |= {(kind, row.tile_set, row.run): None for kind in (PROGRESS, HAND_OVER)}
        else:
            prefix = prefix_of(row.tile_set, row.run, row.key)
            change = tiles.setdefault(placed(fitted(prefix), row.tile, row.lane), Change(prefix))
            if isinstance(row, Gone):
                change.forget, change.row = True, None
            elif change.row is None or row.version >= change.row.version:
                change.row = row
    return tiles, about_runs
