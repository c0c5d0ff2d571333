"""How messages become bytes: a frame holds the messages of one append to one partition, column by column.

    [delta u32]*n if SPARSE  [key length i32]*n if KEYS  [value length i32]*n  [header length i32]*n if HEADERS
    keys  values  headers

A length of -1 is null. Columns make both ways fast: Python slices them, and Arrow takes them as they are
(`log.embedded.arrow`). A frame is not a unit of reading: `records` gives any part of it. Where frames are kept is
`table`'s business.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import repeat

import msgspec

from headrace.log.record import Headers, Message, Record

KEYS, HEADERS, SPARSE = 1, 2, 4
MOST_RECORDS = 2048
MOST_BYTES = 512 * 1024

_encode_headers = msgspec.msgpack.Encoder().encode
decode_headers = msgspec.msgpack.Decoder(Headers).decode


class Packed(msgspec.Struct, frozen=True, gc=False):
    """The part of a frame that does not depend on where and when it is appended."""

    count: int
    flags: int
    body: bytes


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A frame as it is kept: the offsets [base, next) of one append, all of one arrival time."""

    base: int
    next: int
    arrived_at: int
    count: int
    flags: int
    crc: int
    body: bytes

    @property
    def sound(self) -> bool:
        """Whether the bytes are those that were written."""
        return zlib.crc32(self.body) == self.crc


class FrameColumns(msgspec.Struct, frozen=True, gc=False):
    """Where the columns of a frame are in its body."""

    key_lengths: int
    value_lengths: int
    header_lengths: int
    data: int


def columns(frame: Frame) -> FrameColumns:
    """Byte positions of the columns; -1 for one that is not there."""
    width, flags = 4 * frame.count, frame.flags
    keys = width if flags & SPARSE else 0
    values = keys + width if flags & KEYS else keys
    headers = values + width
    data = headers + width if flags & HEADERS else headers
    return FrameColumns(keys if flags & KEYS else -1, values, headers if flags & HEADERS else -1, data)


def pack(messages: Sequence[Message], offsets: Sequence[int] | None = None) -> Packed:
    """Messages as one body; `offsets`, relative to the frame's base, when they are not 0, 1, 2...

    >>> pack([Message(b"abc"), Message(None)]).count
    2
    """
    count, flags = len(messages), 0
    lengths: list[bytes] = []
    data: list[bytes] = []
    if offsets is not None:
        flags |= SPARSE
        lengths.append(struct.pack(f"<{count}I", *offsets))
    keys = [message.key for message in messages]
    if any(key is not None for key in keys):
        flags |= KEYS
        _add(keys, lengths, data)
    _add([message.value for message in messages], lengths, data)
    if any(message.headers for message in messages):
        flags |= HEADERS
        _add([_encode_headers(message.headers) if message.headers else b"" for message in messages], lengths, data)
    return Packed(count, flags, b"".join(lengths + data))


def _add(column: Sequence[bytes | None], lengths: list[bytes], data: list[bytes]) -> None:
    lengths.append(struct.pack(f"<{len(column)}i", *[-1 if item is None else len(item) for item in column]))
    data.append(b"".join([item for item in column if item]))


def split(messages: Sequence[Message], sizes: Sequence[int]) -> Iterator[Packed]:
    """Messages as frames of bounded size, in order; a message larger than the bound has a frame of its own."""
    first, size = 0, 0
    for index, each in enumerate(sizes):
        if index > first and (size + each > MOST_BYTES or index - first >= MOST_RECORDS):
            yield pack(messages[first:index])
            first, size = index, 0
        size += each
    if first < len(messages):
        yield pack(messages[first:])


def offsets_of(frame: Frame) -> Sequence[int]:
    """The offsets of a frame's records, in order."""
    if not frame.flags & SPARSE:
        return range(frame.base, frame.base + frame.count)
    return [frame.base + delta for delta in struct.unpack_from(f"<{frame.count}I", frame.body)]


def records(frame: Frame, topic: str, partition: int, *, offset: int = 0) -> list[Record]:
    """The records of a frame from `offset` on.

    >>> packed = pack([Message(b"a", key=b"k"), Message(b"b")])
    >>> frame = Frame(7, 9, 0, packed.count, packed.flags, 0, packed.body)
    >>> [record.value for record in records(frame, "t", 0, offset=8)]
    [b'b']
    """
    body, count, place = frame.body, frame.count, columns(frame)
    keys: Sequence[bytes | None] = [None] * count
    headers: Sequence[Headers] = [()] * count
    at = place.data
    if place.key_lengths >= 0:
        keys, at = _cut(body, count, place.key_lengths, at)
    values, at = _cut(body, count, place.value_lengths, at)
    if place.header_lengths >= 0:
        headers = [decode_headers(item) if item else () for item in _cut(body, count, place.header_lengths, at)[0]]
    offsets = offsets_of(frame)
    found = list(
        map(Record, repeat(topic), repeat(partition), offsets, repeat(frame.arrived_at), keys, values, headers)
    )
    if offset <= frame.base:
        return found
    return [record for record in found if record.offset >= offset]


def _cut(body: bytes, count: int, lengths: int, at: int) -> tuple[list[bytes | None], int]:
    items: list[bytes | None] = []
    for length in struct.unpack_from(f"<{count}i", body, lengths):
        if length < 0:
            items.append(None)
        else:
            items.append(body[at : at + length])
            at += length
    return items, at
