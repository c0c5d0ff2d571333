"""A log in this process's memory, for tests and for `headrace.testing`: the protocol in its plainest form.

It keeps nothing after the process. Several threads may append and tail at once.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.clock import Clock, SystemClock
from headrace.log.base import LogBase
from headrace.log.partitioner import route
from headrace.log.protocol import READ_BYTES, Offsets
from headrace.log.read_slice import OffsetSpan
from headrace.log.record import Message, Position, Record, sizes
from headrace.log.topic import FOREVER, Retention, Topic, agree, check_limit, check_name, check_offset, unknown


@dataclass
class _Partition:
    records: list[Record] = field(default_factory=list)
    start: int = 0
    end: int = 0
    arrived_at: int = 0


@dataclass
class _Shelf:
    topic: Topic
    partitions: list[_Partition]
    committed: dict[str, dict[int, int]] = field(default_factory=dict)
    keyless: int = 0


class MemoryLog(LogBase):
    """A log in memory.

    Parameters
    ----------
    clock
        Where arrival times come from.

    Examples
    --------
    >>> log = MemoryLog()
    >>> log.create_topic("payments").partitions
    1
    >>> log.append("payments", b"{}", key=b"card-1")
    Position(partition=0, offset=0)
    >>> log.read("payments", 0, 0)[0].value
    b'{}'
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._shelves: dict[str, _Shelf] = {}
        self._changed = threading.Condition()

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        compacted: bool = False,
        retention: Retention = FOREVER,
        arrival: str = "log",
    ) -> Topic:
        """See `Log.create_topic`."""
        topic = Topic(name, partitions, compacted, retention, arrival)
        with self._changed:
            shelf = self._shelves.get(name)
            if shelf is None:
                self._shelves[name] = _Shelf(topic, [_Partition() for _ in range(partitions)])
            else:
                agree(shelf.topic, topic)
                shelf.topic = topic
        return topic

    def topics(self) -> dict[str, Topic]:
        """See `Log.topics`."""
        return {name: shelf.topic for name, shelf in sorted(self._shelves.items())}

    def append_batch(self, topic: str, messages: Sequence[Message], *, partition: int | None = None) -> list[Position]:
        """See `Log.append_batch`."""
        shelf = self._shelf(topic)
        if partition is not None:
            shelf.topic.check_partition(partition)
        sizes(messages, compacted=shelf.topic.compacted)
        with self._changed:
            if partition is None:
                routes = route(messages, shelf.topic.partitions, keyless=shelf.keyless)
                shelf.keyless = (shelf.keyless + 1) % shelf.topic.partitions
            else:
                routes = {partition: list(range(len(messages)))}
            found: dict[int, Position] = {}
            for number, indices in routes.items():
                target = shelf.partitions[number]
                target.arrived_at = max(self._clock.now(), target.arrived_at)
                for index in indices:
                    m = messages[index]
                    found[index] = Position(number, target.end)
                    target.records.append(
                        Record(topic, number, target.end, target.arrived_at, m.key, m.value, m.headers)
                    )
                    target.end += 1
            self._changed.notify_all()
        return [found[index] for index in range(len(messages))]

    def read(
        self, topic: str, partition: int, offset: int, *, limit: int = 1000, max_bytes: int = READ_BYTES
    ) -> list[Record]:
        """See `Log.read`."""
        check_limit(limit)
        shelf = self._shelf(topic)
        shelf.topic.check_partition(partition)
        with self._changed:
            source = shelf.partitions[partition]
            check_offset(shelf.topic, partition, offset, start=source.start, end=source.end)
            first = bisect_left(source.records, offset, key=lambda record: record.offset)
            taken: list[Record] = []
            size = 0
            for record in source.records[first : first + limit]:
                size += _size(record)
                if taken and size > max_bytes:
                    break
                taken.append(record)
        return taken

    def spans(self, topic: str, partition: int, offset: int, *, limit: int) -> list[OffsetSpan]:
        """See `slice.Spanned`; every record is a span."""
        return [
            OffsetSpan(record.arrived_at, partition, record.offset, record.offset + 1)
            for record in self.read(topic, partition, offset, limit=limit)
        ]

    def wait(self, positions: Mapping[str, Offsets], timeout: float) -> Mapping[str, Offsets]:
        """See `Log.wait`."""

        def passed() -> dict[str, Offsets]:
            found: dict[str, Offsets] = {}
            for topic, at in positions.items():
                ends = self.end_offsets(topic)
                if beyond := {number: offset for number, offset in at.items() if ends[number] > offset}:
                    found[topic] = beyond
            return found

        with self._changed:
            return self._changed.wait_for(passed, timeout)

    def start_offsets(self, topic: str) -> dict[int, int]:
        """See `Log.start_offsets`."""
        return {number: partition.start for number, partition in enumerate(self._shelf(topic).partitions)}

    def end_offsets(self, topic: str) -> dict[int, int]:
        """See `Log.end_offsets`."""
        return {number: partition.end for number, partition in enumerate(self._shelf(topic).partitions)}

    def offset_at(self, topic: str, time: int) -> dict[int, int]:
        """See `Log.offset_at`."""
        found = {}
        with self._changed:
            for number, partition in enumerate(self._shelf(topic).partitions):
                first = bisect_left(partition.records, time, key=lambda record: record.arrived_at)
                found[number] = partition.records[first].offset if first < len(partition.records) else partition.end
        return found

    def commit(self, group: str, topic: str, offsets: Offsets) -> None:
        """See `Log.commit`."""
        check_name(group, "group")
        shelf = self._shelf(topic)
        with self._changed:
            for number, offset in offsets.items():
                shelf.topic.check_partition(number)
                partition = shelf.partitions[number]
                check_offset(shelf.topic, number, offset, start=0, end=partition.end)
            shelf.committed.setdefault(group, {}).update(offsets)

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """See `Log.committed`."""
        return dict(sorted(self._shelf(topic).committed.get(group, {}).items()))

    def clean(self, topic: str) -> None:
        """See `Log.clean`."""
        shelf = self._shelf(topic)
        with self._changed:
            for partition in shelf.partitions:
                _retain(partition, shelf.topic.retention, self._clock.now())
                if shelf.topic.compacted:
                    _compact(partition, self._clock.now() - shelf.topic.retention.tombstone_age)

    def close(self) -> None:
        """See `Log.close`; a memory log has nothing to give back."""

    def _shelf(self, topic: str) -> _Shelf:
        shelf = self._shelves.get(topic)
        if shelf is None:
            raise unknown(topic, list(self._shelves))
        return shelf


def _size(record: Record) -> int:
    return (
        len(record.key or b"") + len(record.value or b"") + sum(len(name) + len(data) for name, data in record.headers)
    )


def _retain(partition: _Partition, retention: Retention, now: int) -> None:
    drop = 0
    if retention.age is not None:
        drop = bisect_left(partition.records, now - retention.age, key=lambda record: record.arrived_at)
    if retention.size is not None:
        total = sum(_size(record) for record in partition.records[drop:])
        while total > retention.size and drop < len(partition.records) - 1:
            total -= _size(partition.records[drop])
            drop += 1
    if drop:
        del partition.records[:drop]
        partition.start = partition.records[0].offset if partition.records else partition.end


def _compact(partition: _Partition, tombstones_before: int) -> None:
    latest = {record.key: record.offset for record in partition.records}
    partition.records = [
        record
        for record in partition.records
        if latest[record.key] == record.offset
        and (record.value is not None or record.arrived_at >= tombstones_before or record.offset == partition.end - 1)
    ]
