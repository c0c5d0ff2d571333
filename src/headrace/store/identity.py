"""Identities as bytes: equal exactly when they are, in the order in which tiles are read.

    prefix = kind, length + tile set, length + run, length + key parts        one key of one run
    row    = prefix, tile (eight bytes, sign flipped), lane                   one tile in one lane

A prefix too long for LMDB's 511 bytes is replaced by its digest; the store then keeps the whole one with the row and
compares it, so that a collision is an error and never another key's value.
"""

from __future__ import annotations

import hashlib

from headrace.store.changelog import Key

LONGEST = 511
"""LMDB's limit for a key."""

_ROOM = LONGEST - 8 - 16
_PLAIN, _HASHED = b"\x01", b"\x02"
_FLIP = 2**63


def prefix_of(tile_set: str, run: str, key: Key) -> bytes:
    """The part of an identity that all tiles of a key share, whole.

    >>> prefix_of("ab", "r", ("x",)).hex(" ")
    '01 00 00 00 02 61 62 00 00 00 01 72 00 00 00 06 73 00 00 00 01 78'
    """
    return _PLAIN + _sized(tile_set.encode()) + _sized(run.encode()) + _sized(b"".join(map(_part, key)))


def fitted(prefix: bytes) -> bytes:
    """The prefix as a store's key can carry it.

    >>> len(fitted(prefix_of("ab", "r", ("x" * 1000,))))
    33
    """
    return prefix if len(prefix) <= _ROOM else _HASHED + digest(prefix)


def digest(prefix: bytes) -> bytes:
    """Thirty-two bytes that stand for a long prefix."""
    return hashlib.blake2b(prefix, digest_size=32).digest()


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


def _part(value: str | int | bool) -> bytes:
    # A boolean is an int in Python; in a key `true` and `1` are two things.
    if isinstance(value, bool):
        return b"b1" if value else b"b0"
    if isinstance(value, int):
        return b"i" + (value + _FLIP).to_bytes(8, "big")
    return b"s" + _sized(value.encode())


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
