"""Changelog rows from Spark into the log, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from headrace.log.record import Message

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
PART = 5_000
"""Records in one append, and in one read."""


def messages(rows: pa.Table) -> list[Message]:
    """What the columns `key` and `value` hold, as messages."""
    keys, values = rows.column("key").to_pylist(), rows.column("value").to_pylist()
    return [Message(value.encode(), key.encode()) for key, value in zip(keys, values, strict=True)]


def in_parts(given: Iterable[T]) -> Iterator[list[T]]:
    """Messages, or what becomes messages, in parts of one append each.

    >>> [len(part) for part in in_parts([Message(b"")] * 12_000)]
    [5000, 5000, 2000]
    """
    left = iter(given)
    while part := list(islice(left, PART)):
        yield part
