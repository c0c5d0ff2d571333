"""What every log has in common, whatever it keeps its records in: one message is a batch of one, a look is a read, and
it is closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from headrace.log.pending_append import Appended, Appending
from headrace.log.protocol import READ_BYTES
from headrace.log.record import Headers, Message, Position, Record


class LogBase(ABC):
    """The part of `Log` that follows from the rest."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def append(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
    ) -> Position:
        """See `Log.append`."""
        return self.append_batch(topic, [Message(value, key, headers)], partition=partition)[0]

    @abstractmethod
    def append_batch(self, topic: str, messages: Sequence[Message], *, partition: int | None = None) -> list[Position]:
        """See `Log.append_batch`."""

    def begin_batch(self, topic: str, messages: Sequence[Message]) -> Appending:
        """See `Log.begin_batch`."""
        return Appended(self.append_batch(topic, messages))

    @abstractmethod
    def read(
        self, topic: str, partition: int, offset: int, *, limit: int = 1000, max_bytes: int = READ_BYTES
    ) -> list[Record]:
        """See `Log.read`."""

    def peek(self, topic: str, partition: int, offset: int, *, limit: int = 1) -> list[Record]:
        """See `Log.peek`."""
        return self.read(topic, partition, offset, limit=limit)

    @abstractmethod
    def close(self) -> None:
        """See `Log.close`."""
