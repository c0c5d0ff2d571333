"""How far a bounded read goes: partitions advance together by arrival time, so that none runs ahead of another.

Dedup and watermarks allow for the spread of arrival times among unread partitions; a share per partition, as Kafka's
source takes it, would let that spread grow with the backlog. This takes records in the order (arrived_at, partition,
offset) and stops after `most`. It looks at spans of offsets, not at records, so it costs little beside reading them; a
log that cannot tell spans (Kafka) is asked by bisection where it stood at a time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

from headrace.clock import MILLISECOND, SystemClock
from headrace.log.protocol import Log, Offsets

SPANS = 1000
LAST = 1 << 43
"""Milliseconds: the year 2248, after everything."""


class OffsetSpan(NamedTuple):
    """Offsets [base, next) of one partition that arrived at one time."""

    arrived_at: int
    partition: int
    base: int
    next: int


@runtime_checkable
class Spanned(Protocol):
    """A log that knows the arrival times of its offsets without reading the records."""

    def spans(self, topic: str, partition: int, offset: int, *, limit: int) -> list[OffsetSpan]:
        """Spans with something at or past `offset`, in order; empty at the end offset."""
        ...


def cut(log: Log, topic: str, before: int) -> dict[int, int]:
    """Where each partition stands at a moment: every record before these offsets had arrived by then, none after.

    It holds when the log's clock has passed the moment by so much that nothing earlier can still appear.

    >>> from headrace.log import MemoryLog
    >>> log = MemoryLog()
    >>> _ = log.create_topic("payments"), log.append("payments", b"1")
    >>> cut(log, "payments", 0)
    {0: 0}
    """
    # Ends first: what comes between the two questions is after both.
    ends = log.end_offsets(topic)
    return {partition: min(offset, ends[partition]) for partition, offset in log.offset_at(topic, before).items()}


def bounded(log: Log, topic: str, start: Offsets, end: Offsets, *, most: int) -> dict[int, int]:
    """Where to stop between `start` and `end` after at most `most` offsets.

    Where arrival times go back within a partition, which only producers' clocks do, all is still taken once, though
    not quite in their order.

    Examples
    --------
    >>> from headrace.log import MemoryLog
    >>> log = MemoryLog()
    >>> _ = log.create_topic("payments", partitions=2)
    >>> for value in (b"1", b"2", b"3"):
    ...     _ = log.append("payments", value, partition=0), log.append("payments", value, partition=1)
    >>> stop = bounded(log, "payments", {0: 0, 1: 0}, log.end_offsets("payments"), most=4)
    >>> sum(stop.values())
    4
    """
    # Compaction leaves gaps: offsets without records count for nothing, and a range of them alone is passed at once.
    if sum(end[partition] - start[partition] for partition in end) <= most:
        return dict(end)
    if not isinstance(log, Spanned):
        return _by_time(log, topic, start, end, most)
    stop, left = dict(start), most
    for span in heapq.merge(*(_walk(log, topic, partition, start[partition], end[partition]) for partition in end)):
        taken = min(min(span.next, end[span.partition]) - span.base, left)
        stop[span.partition] = span.base + taken
        left -= taken
        if left == 0:
            return stop
    return dict(end)


def _by_time(log: Log, topic: str, start: Offsets, end: Offsets, most: int) -> dict[int, int]:
    """The latest millisecond that may be taken whole, and of the next one the lower partitions first."""

    def at(time: int) -> dict[int, int]:
        found = log.offset_at(topic, time * MILLISECOND)
        return {partition: min(max(found[partition], start[partition]), end[partition]) for partition in end}

    def count(stop: Offsets) -> int:
        return sum(stop[partition] - start[partition] for partition in stop)

    # Before `low` not too much has arrived, before `high` too much has. A backlog is likely young: look there first.
    low, high = 0, LAST
    below, above = dict(start), dict(end)
    back = 1_000
    while high - low > 1:
        recent = SystemClock().now() // MILLISECOND - back
        probe = recent if low == 0 and 0 < recent < high else (low + high) // 2
        back *= 16
        stop = at(probe)
        if count(stop) <= most:
            low, below = probe, stop
        else:
            high, above = probe, stop
    left = most - count(below)
    for partition in sorted(end):
        taken = min(max(above[partition] - below[partition], 0), left)
        below[partition] += taken
        left -= taken
    return below


def _walk(log: Spanned, topic: str, partition: int, offset: int, end: int) -> Iterator[OffsetSpan]:
    while offset < end:
        spans = log.spans(topic, partition, offset, limit=SPANS)
        for span in spans:
            if span.base >= end:
                return
            yield span._replace(base=max(span.base, offset))
        if not spans:
            return
        offset = spans[-1].next
