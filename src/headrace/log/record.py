"""What goes into a log (`Message`) and what comes out (`Record`).

Bytes only: what they mean is `schema`'s business. Nothing here knows where records are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from headrace.errors import DataError, shown
from headrace.plural import show_count

Headers = tuple[tuple[str, bytes], ...]

LARGEST_MESSAGE = 64 * 1024 * 1024
"""Bytes of key, value and headers together; the same order as Kafka's largest sensible `message.max.bytes`."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """A record to be: what a producer decides. Where and when it arrives is decided by the log.

    Parameters
    ----------
    value
        The payload; None is a tombstone, which in a compacted topic says that the key is gone.
    key
        Messages of one key go to one partition. None: the log spreads them.
    headers
        Pairs of a name and bytes; order and repeats are kept.

    Examples
    --------
    >>> Message(b'{"id": "a"}', key=b"card-1").key
    b'card-1'
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()


class Record(msgspec.Struct, frozen=True, gc=False):
    """One entry of a log. `arrived_at` is microseconds in UTC, and never goes back within a partition.

    Examples
    --------
    >>> Record("payments", 0, 7, 1767225600000000, None, b"{}").offset
    7
    """

    topic: str
    partition: int
    offset: int
    arrived_at: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Position(NamedTuple):
    """Where an appended message went.

    >>> Position(partition=0, offset=7)
    Position(partition=0, offset=7)
    """

    partition: int
    offset: int


def sizes(messages: Sequence[Message], *, compacted: bool) -> list[int]:
    """Bytes of each message, after checking that a log can keep it.

    >>> sizes([Message(b"abc", key=b"k")], compacted=False)
    [4]
    """
    found = []
    for message in messages:
        key, value = message.key, message.value
        if (key is not None and type(key) is not bytes) or (value is not None and type(value) is not bytes):
            hint = "Encode text first, as in value.encode()."
            raise DataError(
                "bad-message", "A message's key and value are bytes or None.", got=shown(message), hint=hint
            )
        size = (0 if key is None else len(key)) + (0 if value is None else len(value))
        if message.headers:
            size += _header_size(message)
        if compacted and key is None:
            hint = "Give every message a key, or create the topic with compacted=False."
            raise DataError("bad-message", "A compacted topic takes no message without a key.", hint=hint)
        if size > LARGEST_MESSAGE:
            raise DataError(
                "bad-message", f"A message is larger than {LARGEST_MESSAGE:,} bytes.", got=show_count(size, "byte")
            )
        found.append(size)
    return found


def _header_size(message: Message) -> int:
    for header in message.headers:
        if not (type(header) is tuple and len(header) == 2 and type(header[0]) is str and type(header[1]) is bytes):
            raise DataError("bad-message", "A header is a pair of a name and bytes.", got=shown(header))
        if "\0" in header[0]:
            # Kafka's client would cut the name there without a word.
            raise DataError("bad-message", "The name of a header holds no NUL.", got=shown(header[0]))
    return sum(len(name) + len(value) for name, value in message.headers)
