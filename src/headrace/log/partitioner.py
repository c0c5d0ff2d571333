"""Which partition a message goes to: Kafka's default rule, so that both logs agree on where a key lives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from headrace.log.record import Message

_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_M = 0x5BD1E995


@lru_cache(maxsize=65_536)
def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash of Kafka's Java client, as an unsigned number.

    >>> murmur2(b"foobar") - 2**32
    -790332482
    """
    size = len(data)
    h = _SEED ^ size
    whole = size & ~3
    for i in range(0, whole, 4):
        k = (int.from_bytes(data[i : i + 4], "little") * _M) & _MASK
        k ^= k >> 24
        h = ((h * _M) & _MASK) ^ ((k * _M) & _MASK)
    if whole < size:
        h = ((h ^ int.from_bytes(data[whole:], "little")) * _M) & _MASK
    h ^= h >> 13
    h = (h * _M) & _MASK
    return h ^ (h >> 15)


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key.

    >>> partition_of(b"foobar", 10)
    6
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def route(messages: Sequence[Message], partitions: int, *, keyless: int) -> dict[int, list[int]]:
    """Indices of the messages per partition, in order; messages without a key all go to `keyless`.

    >>> route([Message(b"1"), Message(b"2", key=b"foobar")], 10, keyless=3)
    {3: [0], 6: [1]}
    """
    if partitions == 1:
        return {0: list(range(len(messages)))}
    routes: dict[int, list[int]] = {}
    for index, message in enumerate(messages):
        partition = keyless if message.key is None else (murmur2(message.key) & 0x7FFFFFFF) % partitions
        routes.setdefault(partition, []).append(index)
    return routes
