"""What a topic holds of a stretch of time, for those who look at what was written."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.errors import DataError
from headrace.log.protocol import Log
from headrace.log.range_read import between
from headrace.log.record import Record


def records(log: Log, topic: str, since: int | None = None, until: int | None = None) -> Iterator[Record]:
    """The records that arrived between two moments, or all; none of a topic that nobody has written to."""
    try:
        starts = log.start_offsets(topic) if since is None else log.offset_at(topic, since)
        ends = log.end_offsets(topic) if until is None else log.offset_at(topic, until)
    except DataError as error:
        if error.code != "unknown-topic":
            raise
        return
    yield from between(log, topic, starts, ends)
