"""What stores of bytes share: a batch folded to one change for each identity, and rows as msgpack under a seal.

`lmdb` and `redis` decide where the bytes lie; which of two rows of an identity stays is said in `protocol`. A seal is
two checksums: of the identity alone, by which a row that is only passed is known to be in its place, and of both.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from zlib import crc32

import msgspec

from headrace.errors import HeadraceError, shown
from headrace.store.protocol import StoredTile
from headrace.tiles.changelog import Gone, HandOver, ProgressRow, Row, TileRow
from headrace.tiles.identity import placed, prefix_of
from headrace.tiles.level_growth import Growth
from headrace.tiles.levels import LevelLayout

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


class _Tile(msgspec.Struct, array_like=True, gc=False):
    """The beginning of a tile's row: what a read needs."""

    version: int
    partials: bytes


class LevelValue(msgspec.Struct, array_like=True, gc=False):
    """A level row as it is kept."""

    partials: bytes
    whole: bytes | None = None


class GrowthValue(msgspec.Struct, array_like=True, gc=False):
    """How far a key's levels reach, as it is kept."""

    growth: Growth
    whole: bytes | None = None


class BaseValue(msgspec.Struct, array_like=True, gc=False):
    """A key's base as it is kept: on-time tiles before `end` are in it."""

    end: int
    partials: bytes
    whole: bytes | None = None


class RowChange(msgspec.Struct, gc=False):
    """What a batch does to one identity: forget what is stored, then offer a row."""

    tile_set: str
    prefix: bytes
    forget: bool = False
    row: TileRow | None = None


write = msgspec.msgpack.Encoder().encode
read_value = msgspec.msgpack.Decoder(Value).decode
read_tile = msgspec.msgpack.Decoder(_Tile).decode
read_level = msgspec.msgpack.Decoder(LevelValue).decode
read_growth = msgspec.msgpack.Decoder(GrowthValue).decode
read_base = msgspec.msgpack.Decoder(BaseValue).decode
read_layout = msgspec.msgpack.Decoder(LevelLayout).decode
read_progress = msgspec.msgpack.Decoder(ProgressRow).decode
read_hand_over = msgspec.msgpack.Decoder(HandOver).decode


class DamagedError(HeadraceError):
    """What a store holds is not what was written to it; it is never handed out."""

    http_status = 503

    def __init__(self, message: str, *, got: str | None = None, where: str | None = None) -> None:
        hint = "When serving starts it fills the store again from the changelog; `headrace store rebuild` does so now."
        super().__init__("store-damaged", message, got=got, hint=hint, where=where)


SEAL = 8
"""Bytes of a seal."""

# Without it, zeros where a row was would be a row of nothing under a seal that fits.
_SEED = 0x9E3779B1
_seal = struct.Struct(">II").pack


def sealed(identity: bytes, value: bytes) -> bytes:
    """A value with its checksums before it.

    >>> unsealed(b"here", sealed(b"here", b"value"))
    b'value'
    """
    place = crc32(identity, _SEED)
    return _seal(place, crc32(value, place)) + value


def unsealed(identity: bytes, data: bytes) -> bytes:
    """The value under a seal; one that is broken is refused with `store-damaged`.

    >>> unsealed(b"there", sealed(b"here", b"value"))
    Traceback (most recent call last):
    headrace.store.row_bytes.DamagedError: A value in the store is not the one that was written.
      ...
    """
    value, place = data[SEAL:], crc32(identity, _SEED)
    if data[:SEAL] != _seal(place, crc32(value, place)):
        raise _damaged(identity)
    return value


def check_place(identity: bytes, data: bytes) -> None:
    """Refuse a row that is not where it was written; of what it holds nothing is said."""
    if len(data) < SEAL or int.from_bytes(data[:4], "big") != crc32(identity, _SEED):
        raise _damaged(identity)


def _damaged(identity: bytes) -> DamagedError:
    return DamagedError("A value in the store is not the one that was written.", got=shown(identity))


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
) -> tuple[dict[bytes, RowChange], dict[RunName, ProgressRow | HandOver | None]]:
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
    tiles: dict[bytes, RowChange] = {}
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
            identity = placed(fitted(prefix), row.tile, row.lane)
            change = tiles.get(identity)
            if change is None:
                change = tiles[identity] = RowChange(row.tile_set, prefix)
            if isinstance(row, Gone):
                change.forget, change.row = True, None
            elif change.row is None or row.version >= change.row.version:
                change.row = row
    return tiles, about_runs
