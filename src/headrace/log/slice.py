"""How far a bounded read goes: partitions advance together by arrival time, so that none runs ahead of another.

Dedup and watermarks allow for the spread of arrival times among unread partitions; a share per partition, as Kafka's
source takes it, would let that spread grow with the backlog. This takes records in the order (arrived_at, partition,
offset) and stops after `most`.
"""

from __future__ import annotations

from headrace.log.protocol import Log, Offsets


def bounded(log: Log, topic: str, start: Offsets, end: Offsets, *, most: int) -> dict[int, int]:
    """Where to stop between `start` and `end` after at most `most` offsets.

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
    behind = {partition: offset for partition, offset in end.items() if offset > start[partition]}
    if sum(offset - start[partition] for partition, offset in behind.items()) <= most:
        return dict(end)

    def reach(time: int) -> dict[int, int]:
        at = log.offset_at(topic, time)
        return {partition: min(max(at[partition], start[partition]), end[partition]) for partition in end}

    def taken(stop: Offsets) -> int:
        return sum(stop[partition] - start[partition] for partition in end)

    low = min(log.read(topic, partition, start[partition], limit=1)[0].arrived_at for partition in behind)
    step = 1
    while taken(reach(low + step)) <= most:
        step *= 2
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        if taken(reach(middle)) <= most:
            low = middle
        else:
            high = middle
    # All that arrived before `low` fits; of what arrived at `low` itself the rest is filled up in partition order.
    stop, beyond = reach(low), reach(high)
    left = most - taken(stop)
    for partition in sorted(stop):
        more = min(beyond[partition] - stop[partition], left)
        stop[partition] += more
        left -= more
    return stop
