"""The rows of a store in Redis: what its keys are called, what members look like, and how they are asked for.

    tile     tile (eight bytes, sign flipped), lane, 0, version (eight bytes, sign flipped), seal, msgpack of the row
    level    start (as a tile), 1, coarsest first, 0, seal, packed partial columns

The scripts that read and write them are in `redis_script`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headrace.store.protocol import StoredTile
from headrace.store.row_bytes import (
    HAND_OVER,
    PROGRESS,
    RowChange,
    read_layout,
    read_value,
    sealed,
    tile_of,
    unsealed,
    value_of,
    write,
)
from headrace.tiles.expiry import other_base
from headrace.tiles.identity import level_lane, placed
from headrace.tiles.levels import BASE, END, EVER, FIRST, Band, LevelLayout, ReadPiece

_EIGHT = 8


class RedisNames:
    """The keys of a store.

    >>> RedisNames("shop").position("changelog.x")
    b'shop:position:changelog.x'
    """

    def __init__(self, namespace: str) -> None:
        self.all = namespace.encode() + b":"
        self.counts, self.layouts = self.all + b"counts:", self.all + b"layouts:"
        self.expired = self.all + b"expired:"

    def tiles(self, prefix: bytes = b"") -> bytes:
        """The tiles of a key."""
        return self.all + b"tiles:" + prefix

    def levels(self, prefix: bytes = b"") -> bytes:
        """The level rows of a key."""
        return self.all + b"levels:" + prefix

    def base(self, prefix: bytes = b"") -> bytes:
        """The base of a key."""
        return self.all + b"base:" + prefix

    def position(self, topic: str) -> bytes:
        """Where a topic goes on."""
        return self.all + b"position:" + topic.encode()

    def about(self, kind: str, tile_set: str) -> bytes:
        """What the runs of a tile set have said."""
        return self.all + kind.encode() + b":" + tile_set.encode()


def literal(text: bytes) -> bytes:
    """A pattern that stands for exactly this text.

    >>> literal(b"a*b")
    b'a\\\\*b'
    """
    return re.sub(rb"([*?\[\]\\])", rb"\\\1", text)


def run_name(tile_set: str, run: str) -> bytes:
    """What a run is called in the hash `expired`."""
    return f"{tile_set}\0{run}".encode()


def changed(identity: bytes, change: RowChange) -> tuple[bytes, int, bytes]:
    """A change as the script takes it."""
    place, row = identity[len(change.prefix) :] + b"\0", change.row
    if row is None:
        return place, int(change.forget), b""
    version = placed(b"", row.version)
    return place, int(change.forget), version + sealed(identity + version, value_of(row))


def base_value(prefix: bytes, end: int, partials: bytes) -> bytes:
    """A base as it is kept."""
    return placed(b"", end) + sealed(prefix + placed(b"", end), partials)


def read_base(prefix: bytes, value: bytes, start: int = FIRST) -> ReadPiece:
    """A base from what is kept, as a piece that begins at a start."""
    return ReadPiece(start, BASE, unsealed(prefix + value[:_EIGHT], value[_EIGHT:]))


def level_row(prefix: bytes, piece: ReadPiece) -> tuple[bytes, bytes]:
    """A level row as the script takes it: its place and its value."""
    place = placed(b"", piece.start, level_lane(piece.level))
    return place + b"\0", sealed(prefix + place, piece.partials)


def tile(prefix: bytes, member: bytes) -> StoredTile:
    """A tile from a member of a sorted set."""
    lane_end = member.index(b"\0", _EIGHT)
    version_end = lane_end + 1 + _EIGHT
    identity = prefix + member[:lane_end] + member[lane_end + 1 : version_end]
    value = read_value(unsealed(identity, member[version_end:]))
    return tile_of(_start(member), member[_EIGHT:lane_end].decode(), value)


def piece(prefix: bytes, member: bytes) -> ReadPiece:
    """A piece from a member of either sorted set."""
    if member[_EIGHT] != 1:
        held = tile(prefix, member)
        return ReadPiece(held.tile, 0, held.partials)
    lane_end = _EIGHT + 2
    partials = unsealed(prefix + member[:lane_end], member[lane_end + 1 :])
    return ReadPiece(_start(member), ord(level_lane(0)[1]) - member[_EIGHT + 1], partials)


def _start(member: bytes) -> int:
    return int.from_bytes(member[:_EIGHT], "big") - END


def question(
    names: RedisNames, of: tuple[str, str], prefixes: Iterable[bytes], bands: Sequence[Band], layout: LevelLayout | None
) -> tuple[list[bytes], list[Any]]:
    """Keys and arguments with which the rows of some keys of a tile set and a run are asked for."""
    tile_set = of[0]
    keys = [names.counts, names.layouts, names.expired]
    keys += [names.about(PROGRESS, tile_set), names.about(HAND_OVER, tile_set)]
    keys += [name for prefix in prefixes for name in (names.tiles(prefix), names.levels(prefix), names.base(prefix))]
    widths = () if layout is None else layout.widths
    given: list[Any] = [tile_set, run_name(*of), b"" if layout is None else write(layout)]
    given += [len(widths), *widths, len(bands)]
    for low, high, coarsest in bands:
        given += [placed(b"", max(low, FIRST)), b"" if high >= END else placed(b"", max(high, FIRST)), coarsest]
    return keys, given


def pieces(prefix: bytes, found: Sequence[Any]) -> list[ReadPiece] | None:
    """The rows of a key in an answer, without its base; None when there is no such key."""
    there, _, *members = found
    return [piece(prefix, member) for member in members] if there else None


def with_base(prefix: bytes, found: Sequence[Any], low: int) -> list[ReadPiece] | None:
    """The rows of a key in an answer, with its base before them."""
    held = pieces(prefix, found)
    return [read_base(prefix, found[1], low), *held] if held is not None and found[1] else held


def about_run(run: str, said: Any) -> tuple[bytes, bytes]:
    """What is said of a run, as it is kept; nothing when it is no more."""
    return run.encode(), b"" if said is None else sealed(run.encode(), write(said))


def about_runs(found: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    """What is said of each run, from a hash as scripts return it."""
    for run, said in zip(found[::2], found[1::2], strict=True):
        yield run.decode(), unsealed(run, said)


def read_pieces(
    prefixes: Sequence[bytes], found: Sequence[Any], bands: Sequence[Band], layout: LevelLayout | None, kept: bytes
) -> list[list[ReadPiece] | None]:
    """The pieces of each key, with its base where everything is asked for."""
    both = list(zip(prefixes, found, strict=True))
    if not bands or bands[0].low > EVER:
        return [pieces(*each) for each in both]
    if any(each[1] for each in found) and (layout is None or not kept or read_layout(kept).base != layout.base):
        raise other_base()
    return [with_base(prefix, each, bands[0].low) for prefix, each in both]


def counted(positions: Mapping[int, int]) -> list[int]:
    """Positions as the script takes them."""
    return [len(positions), *(number for pair in positions.items() for number in pair)]
