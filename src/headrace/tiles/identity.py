"""Identities as bytes: equal exactly when they are, in the order in which tiles are read.

    prefix = kind, length + tile set, length + run, length + key parts        one key of one run
    row    = prefix, tile (eight bytes, sign flipped), lane                   one tile in one lane
    level  = prefix, start (as a tile), 1, coarsest first                     one row of a coarser level
    base   = prefix, the first place there is                                 tiles that have gone, together
    growth = prefix, the last place there is                                  how far the levels reach

A prefix too long for LMDB's 511 bytes is replaced by its digest; the store then keeps the whole one with the row and
compares it, so that a collision is an error and never another key's value.
"""

from __future__ import annotations

import functools
import hashlib
import struct

from headrace.tiles.changelog import Key

LONGEST = 511
"""LMDB's limit for a key."""

TOP = 100
"""More levels than there are."""

_LEVEL, _GROWTH = 0x01, 0x7E
_ROOM = LONGEST - 8 - 16
_PLAIN, _HASHED = b"\x01", b"\x02"
_FLIP = 2**63
_DIGEST = 32
_one_text = struct.Struct(">IcI").pack


def prefix_of(tile_set: str, run: str, key: Key) -> bytes:
    """The part of an identity that all tiles of a key share, whole.

    >>> prefix_of("ab", "r", ("x",)).hex(" ")
    '01 00 00 00 02 61 62 00 00 00 01 72 00 00 00 06 73 00 00 00 01 78'
    """
    head = _run_prefix(tile_set, run)
    if len(key) == 1 and type(key[0]) is str:
        # What most keys are, without the calls.
        text = key[0].encode()
        return head + _one_text(len(text) + 5, b"s", len(text)) + text
    return head + _sized(b"".join(map(_part, key)))


@functools.lru_cache(maxsize=256)
def _run_prefix(tile_set: str, run: str) -> bytes:
    return tile_set_prefix(tile_set) + _sized(run.encode())


def tile_set_prefix(tile_set: str) -> bytes:
    """What the prefixes of all keys of a tile set begin with.

    >>> prefix_of("ab", "r", ("x",)).startswith(tile_set_prefix("ab"))
    True
    """
    return _PLAIN + _sized(tile_set.encode())


def fitted(prefix: bytes) -> bytes:
    """The prefix as a store's key can carry it.

    >>> len(fitted(prefix_of("ab", "r", ("x" * 1000,))))
    33
    """
    return prefix if len(prefix) <= _ROOM else _HASHED + digest(prefix)


def digest(prefix: bytes) -> bytes:
    """Thirty-two bytes that stand for a long prefix."""
    return hashlib.blake2b(prefix, digest_size=_DIGEST).digest()


def tile_set_of(prefix: bytes) -> str:
    """The tile set in a whole prefix.

    >>> tile_set_of(prefix_of("ab12", "r", ("x",)))
    'ab12'
    """
    return prefix[5 : 5 + int.from_bytes(prefix[1:5], "big")].decode()


def run_of(prefix: bytes) -> str:
    """The run in a whole prefix.

    >>> run_of(prefix_of("ab12", "r", ("x",)))
    'r'
    """
    start = 5 + int.from_bytes(prefix[1:5], "big")
    return prefix[start + 4 : start + 4 + int.from_bytes(prefix[start : start + 4], "big")].decode()


def prefix_length(identity: bytes) -> int:
    """How long the prefix of an identity is.

    >>> prefix_length(placed(prefix_of("ab", "r", ("x",)), 0, "late"))
    22
    """
    if identity.startswith(_HASHED):
        return 1 + _DIGEST
    at = 1
    for _ in range(3):
        at += 4 + int.from_bytes(identity[at : at + 4], "big")
    return at


def placed(prefix: bytes, tile: int, lane: str = "") -> bytes:
    """The identity of one row, or with no lane the place before the first lane of a tile.

    >>> placed(b"", -1) < placed(b"", 0, "late") < placed(b"", 0, "on_time") < placed(b"", 1)
    True
    """
    return prefix + (tile + _FLIP).to_bytes(8, "big") + lane.encode()


def place_of(identity: bytes, prefix_length: int) -> tuple[int, str]:
    """Tile and lane at the end of an identity.

    >>> place_of(placed(b"key", -5, "late"), 3)
    (-5, 'late')
    """
    split = prefix_length + 8
    return int.from_bytes(identity[prefix_length:split], "big") - _FLIP, identity[split:].decode()


def start_of(identity: bytes, prefix_length: int) -> int:
    """The start of a tile or level row.

    >>> start_of(placed(b"key", -5, "late"), 3)
    -5
    """
    return int.from_bytes(identity[prefix_length : prefix_length + 8], "big") - _FLIP


def level_lane(level: int) -> str:
    """What a level row has in the place of a lane: before every lane, and a coarser level before a finer one.

    >>> level_lane(2) < level_lane(1) < "late"
    True
    """
    return chr(_LEVEL) + chr(_GROWTH - level)


LEVEL_MARK = bytes([_LEVEL])
"""What a level row has after its start."""

BASE_PLACE = b"\0" * 9
"""Where a key's base is, after its prefix: before every row of the first tile there can be."""

GROWTH_PLACE = b"\xff" * 8 + bytes([_GROWTH])
"""Where a key's growth is, after its prefix: behind every lane of the last tile there can be."""


def level_of(identity: bytes, prefix_length: int) -> int | None:
    """The level of a row; 0 of a tile's, None of a key's growth and base.

    >>> level_of(placed(b"key", 0, level_lane(3)), 3), level_of(placed(b"key", 0, "late"), 3)
    (3, 0)
    """
    kind = identity[prefix_length + 8]
    if kind == _LEVEL:
        return _GROWTH - identity[prefix_length + 9]
    return None if kind in (_GROWTH, 0) else 0


def is_held(identity: bytes, prefix_length: int) -> bool:
    """Whether a row is a tile or a base: something of the key itself.

    >>> is_held(placed(b"key", 0, "late"), 3), is_held(b"key" + BASE_PLACE, 3), is_held(b"key" + GROWTH_PLACE, 3)
    (True, True, False)
    """
    kind = identity[prefix_length + 8]
    return kind not in (_LEVEL, _GROWTH)


def _part(value: str | int | bool) -> bytes:
    # A boolean is an int in Python; in a key `true` and `1` are two things.
    if isinstance(value, bool):
        return b"b1" if value else b"b0"
    if isinstance(value, int):
        return b"i" + (value + _FLIP).to_bytes(8, "big")
    return b"s" + _sized(value.encode())


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
