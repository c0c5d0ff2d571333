"""Where `headrace lateness` takes its delays from: all of the lake's bronze table, or the last records of the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.clock import DAY, MILLISECOND, SystemClock

if TYPE_CHECKING:
    from headrace.define.stream import Stream
    from headrace.lateness.delays import Delays
    from headrace.log.protocol import Log
    from headrace.log.record import Record
    from headrace.project import Project

SAMPLE = 20_000
"""Records of the lake that are read again to count active keys."""
CHUNK = 1_000


@dataclass(frozen=True)
class Gathered:
    """Delays, the events behind some of them, and what was left out.

    `source` is "lake" or "log".
    """

    source: str
    delays: Delays
    events: list[Mapping[str, Any]]
    copies: int = 0
    assumed: int = 0
    unreadable: int = 0


def from_lake(project: Project, stream: Stream) -> Gathered | None:
    """All that bronze has; None when there is no such table or it has no rows."""
    from headrace.codec.registry.ids import registry_of
    from headrace.config.config import names
    from headrace.lake.layout import BRONZE
    from headrace.lake.location import find_tables
    from headrace.lateness.delays import Delays
    from headrace.lateness.lake import newest, read
    from headrace.meaning.verdict import reader

    bronze = find_tables(project.config, stream).get(BRONZE)
    if bronze is None or not bronze.files():
        return None
    delays = Delays()
    left = read(bronze, delays)
    judge = reader(stream, registry_of(project.config, project.streams))
    judged = [judge(record) for record in newest(bronze, names(project.config).topic(stream.name), SAMPLE)]
    events = [each.event.row for each in judged if each.event is not None]
    return Gathered("lake", delays, events, left.copies, left.assumed)


def from_log(project: Project, stream: Stream, log: Log, most: int) -> Gathered:
    """The last records of the stream's topic; a topic that nobody has made yet has none."""
    import numpy as np

    from headrace.codec.registry.ids import registry_of
    from headrace.config.config import names
    from headrace.lateness.delays import Delays
    from headrace.meaning.verdict import judge

    topic, delays = names(project.config).topic(stream.name), Delays()
    records = _last(log, topic, most) if topic in log.topics() else ()
    judged = judge(stream, records, registry_of(project.config, project.streams))
    once = [each.event for each in judged if each.event is not None and each.first is None]
    copies = sum(each.first is not None for each in judged)
    found = [(event.place[1], event.arrived_at, event.event_time) for event in once]
    partitions, arrived, happened = np.array(found, dtype=np.int64).reshape(-1, 3).T
    delays.add(partitions, arrived=arrived, happened=happened)
    unreadable = len(judged) - len(once) - copies
    return Gathered("log", delays, [event.row for event in once], copies, unreadable=unreadable)


def _last(log: Log, topic: str, most: int) -> Iterator[Record]:
    ends = log.end_offsets(topic)
    for partition, first in last_offsets(log, topic, most).items():
        at = first
        while at < ends[partition]:
            records = log.read(topic, partition, at, limit=min(CHUNK, ends[partition] - at))
            yield from (record for record in records if record.offset < ends[partition])
            at = records[-1].offset + 1 if records else ends[partition]


def last_offsets(log: Log, topic: str, most: int) -> dict[int, int]:
    """Where to begin in each partition to read at most so many records, those that arrived last.

    >>> from headrace.log import MemoryLog
    >>> log = MemoryLog()
    >>> _ = log.create_topic("clicks", partitions=2)
    >>> for value in (b"1", b"2", b"3"):
    ...     _ = log.append("clicks", value, partition=0), log.append("clicks", value, partition=1)
    >>> sum(last_offsets(log, "clicks", 4).values())
    2
    """
    starts, ends = log.start_offsets(topic), log.end_offsets(topic)
    if sum(ends.values()) - sum(starts.values()) <= most:
        return starts

    def at(time: int) -> dict[int, int]:
        found = log.offset_at(topic, time * MILLISECOND)
        return {partition: min(max(found[partition], starts[partition]), ends[partition]) for partition in ends}

    # From `low` on there are too many records, from `high` on not too many.
    low, high = 0, (SystemClock().now() + DAY) // MILLISECOND
    below, above = starts, ends
    while high - low > 1:
        middle = (low + high) // 2
        found = at(middle)
        if sum(ends.values()) - sum(found.values()) > most:
            low, below = middle, found
        else:
            high, above = middle, found
    left, chosen = most - (sum(ends.values()) - sum(above.values())), dict(above)
    for partition in chosen:
        taken = min(max(0, above[partition] - below[partition]), left)
        chosen[partition] -= taken
        left -= taken
    return chosen
