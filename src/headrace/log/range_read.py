"""The records of a topic between two positions, partition after partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.log.protocol import Log
from headrace.log.record import Record

PART = 10_000
"""Records that are read at once."""


def between(log: Log, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[Record]:
    """The records from the offsets `starts` on up to `ends`; a partition that is not among the starts from its first.

    >>> from headrace.log import MemoryLog
    >>> log = MemoryLog()
    >>> _ = log.create_topic("clicks")
    >>> _ = [log.append("clicks", value) for value in (b"a", b"b", b"c")]
    >>> [record.value for record in between(log, "clicks", {0: 1}, {0: 3})]
    [b'b', b'c']
    """
    for partition, end in ends.items():
        at = starts.get(partition, 0)
        while at < end and (found := log.read(topic, partition, at, limit=PART)):
            yield from (record for record in found if record.offset < end)
            at = found[-1].offset + 1
