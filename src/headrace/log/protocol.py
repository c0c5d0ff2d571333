"""What every log does. The conformance suite (`tests/log/test_conformance.py`) is this file as tests.

When an append returns, its records are safe: they survive the death of the process and of the machine, they are
visible to every reader, and their offsets and arrival times will never change. An append that was refused added
nothing; one whose process died before it returned added all of its messages or none. Kafka keeps that for one message;
of a batch that the cluster failed under, it may have kept the beginning in each partition (`kafka` says why, and why
nothing here needs more).

A partition's offsets are dense until `clean` removes records, or until other producers put transactions into Kafka, and
arrival times never go back within it. Nothing is ever skipped silently: a position that retention has passed is an
error, `offset-out-of-range`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from headrace.log.pending_append import Appending
from headrace.log.record import Headers, Message, Position, Record
from headrace.log.topic import FOREVER, Retention, Topic

READ_BYTES = 8 * 1024 * 1024
Offsets = Mapping[int, int]


class Log(Protocol):
    """Topics of partitions of records. Offsets of a topic are a mapping from partition to offset."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        compacted: bool = False,
        retention: Retention = FOREVER,
        arrival: str = "log",
    ) -> Topic:
        """Create a topic, or agree that it is there: another partition count or compaction is refused.

        A new retention replaces the old one. `arrival` says whose clock gives arrival times: "log", or "producer" where
        the log leaves that to producers, as Kafka does; a topic that is there keeps its own.
        """
        ...

    def topics(self) -> dict[str, Topic]:
        """Every topic by name."""
        ...

    def append(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
    ) -> Position:
        """Append one message; safe when this returns."""
        ...

    def append_batch(self, topic: str, messages: Sequence[Message], *, partition: int | None = None) -> list[Position]:
        """Append messages, all or none, in order within each partition; safe when this returns.

        Without `partition`, messages with a key go where Kafka's default partitioner would put them, and those
        without one go together to a partition that changes from batch to batch.
        """
        ...

    def begin_batch(self, topic: str, messages: Sequence[Message]) -> Appending:
        """As `append_batch`, for whoever has something else to do until the messages are safe.

        Batches that were begun one after the other keep their order in each partition. A log that is quick with it, or
        cannot do otherwise, is done with it when this returns.
        """
        ...

    def read(
        self, topic: str, partition: int, offset: int, *, limit: int = 1000, max_bytes: int = READ_BYTES
    ) -> list[Record]:
        """Records from `offset` on, at least one if there is any, at most `limit`, about `max_bytes` of payload.

        Empty exactly at the end offset. Positions before the start or past the end are refused.
        """
        ...

    def peek(self, topic: str, partition: int, offset: int, *, limit: int = 1) -> list[Record]:
        """As `read`, for a reader that does not go on from there: nothing is fetched ahead."""
        ...

    def wait(self, positions: Mapping[str, Offsets], timeout: float) -> Mapping[str, Offsets]:
        """Wait until a partition of some topics has a record at or past its position, at most `timeout` seconds.

        Those of the positions are returned at which there is something to read, as far as they are known without asking
        again; none after a wait in vain.
        """
        ...

    def start_offsets(self, topic: str) -> dict[int, int]:
        """The first offset of each partition that retention has left."""
        ...

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The offset the next record of each partition will get."""
        ...

    def offset_at(self, topic: str, time: int) -> dict[int, int]:
        """For each partition the first offset with `arrived_at >= time`; the end offset where there is none."""
        ...

    def commit(self, group: str, topic: str, offsets: Offsets) -> None:
        """Remember where a named group of readers goes on; partitions left out keep their position."""
        ...

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Where a group goes on; empty for a group that never committed."""
        ...

    def clean(self, topic: str) -> None:
        """Apply retention, and in a compacted topic keep only the greatest offset of each key.

        A log that does this by itself, as Kafka does, does nothing more when it is told to.

        The last record of a partition survives compaction, so that a reader always reaches the end. Tombstones go
        after their own age.
        """
        ...

    def close(self) -> None:
        """Give back files and memory; the log itself stays."""
        ...
