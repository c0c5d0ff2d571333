"""Events in over HTTP: held to the stream's schema and checks before they are appended, all of a request or none.

Events come as JSON, one or many (`body` cuts a request into them), and are kept in their stream's own format. Whoever
sends them is told at once what the pipeline would have refused, and then nothing of the request is in the log. Whether
an event is late, a duplicate or from the future is not decided here: that needs its arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from headrace.clock import Clock, show_time
from headrace.codec.json.read import decoder
from headrace.codec.wire import SchemaIds, row_writer
from headrace.config.config import Names
from headrace.define.stream import Stream, find_stream
from headrace.errors import DataError, shown
from headrace.log.protocol import Log
from headrace.log.record import Headers, Message, Position
from headrace.plan.model import Plan

Row = Mapping[str, Any]
Read = Callable[[bytes], Row | str]
"""From an event's bytes to its row, or to what is wrong with it."""


class Accepted(msgspec.Struct, frozen=True):
    """Where an event went and when it arrived, in microseconds."""

    partition: int
    offset: int
    arrived_at: int | None


class Intake:
    """Appends events to the streams of a plan.

    Examples
    --------
    >>> import headrace as hr
    >>> from pathlib import Path
    >>> from headrace.clock import SystemClock
    >>> from headrace.log import MemoryLog
    >>> from headrace.plan.build import build
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> log = MemoryLog()
    >>> _ = log.create_topic("clicks")
    >>> intake = Intake(build([clicks]), log, Names("", "shop", Path("data")), SystemClock())
    >>> [place.offset for place in intake.take("clicks", [b'{"user": "ann", "at": "2026-01-01T00:00:00Z"}'])]
    [0]
    """

    def __init__(self, plan: Plan, log: Log, names: Names, clock: Clock, ids: SchemaIds | None = None) -> None:
        self._log, self._names, self._clock, self._ids = log, names, clock, ids
        self._writers: dict[str, Callable[[Row], bytes]] = {}
        self._streams = {stream.name: stream for stream in plan.declared}
        self._readers: dict[str, Read] = {}

    def stream(self, name: str) -> Stream:
        """A stream by name; an unknown one is refused with `not-found`."""
        return find_stream(self._streams.values(), name)

    def take(
        self, stream: str, values: Sequence[bytes], *, unchecked: bool = False, arrival: str | None = None
    ) -> list[Accepted]:
        """Append events, all or none.

        Parameters
        ----------
        values
            The events' bytes.
        unchecked
            Append them as they are, whatever they are.
        arrival
            What the arrival header is to hold, for a stream that takes its arrival from one; now when left out.
        """
        taken = self.stream(stream)
        read = self._reader(taken)
        rows = [read(value) for value in values]
        if not unchecked:
            _refuse(rows, values)
        headers: Headers = ()
        if taken.arrival.source == "header":
            headers = ((str(taken.arrival.name), (arrival or show_time(self._clock.now())).encode()),)
        bodies = values if unchecked or taken.format == "json" else self._written(taken, rows)
        messages = [Message(body, _key(taken, row), headers) for body, row in zip(bodies, rows, strict=True)]
        topic = self._names.topic(stream)
        return self._arrivals(topic, self._log.append_batch(topic, messages))

    def _reader(self, stream: Stream) -> Read:
        if stream.name not in self._readers:
            self._readers[stream.name] = reader(stream)
        return self._readers[stream.name]

    def _written(self, stream: Stream, rows: Sequence[Row | str]) -> list[bytes]:
        """Events in the format of their stream; they come as JSON whatever it is."""
        if stream.name not in self._writers:
            self._writers[stream.name] = row_writer(stream, self._ids, self._names.topic(stream.name))
        write = self._writers[stream.name]
        return [write(row) for row in rows if not isinstance(row, str)]

    def _arrivals(self, topic: str, positions: Sequence[Position]) -> list[Accepted]:
        """The positions with the arrival times the log gave: in each partition the events lie side by side."""
        arrived: dict[tuple[int, int], int] = {}
        for partition in {position.partition for position in positions}:
            offsets = [position.offset for position in positions if position.partition == partition]
            at, end = min(offsets), max(offsets) + 1
            while at < end and (found := self._log.read(topic, partition, at, limit=end - at)):
                arrived |= {(partition, record.offset): record.arrived_at for record in found}
                at = found[-1].offset + 1
        return [Accepted(*position, arrived.get(position)) for position in positions]


def reader(stream: Stream) -> Read:
    """A function that reads an event as the pipeline will, as far as that does not depend on its arrival."""
    decode = decoder(stream.schema)
    checks = [(name, check.python()) for name, check in stream.checks]

    def read(value: bytes) -> Row | str:
        row, fault = decode(value)
        if row is None:
            return "it cannot be read" if fault is None else f"{fault.kind}, {fault.reason}"
        for name, holds in checks:
            if holds(row) is False:
                return f"invalid, check {name} is false"
        return row

    return read


def _refuse(rows: Sequence[Row | str], values: Sequence[bytes]) -> None:
    faults = [(place, row) for place, row in enumerate(rows, 1) if isinstance(row, str)]
    if not faults:
        if values:
            return
        hint = "Send an event as a JSON object in the body."
        raise DataError("bad-record", "There is no event in the request.", hint=hint)
    place, reason = faults[0]
    where = f"event {place} of {len(values)}, {len(faults)} of them refused" if len(values) > 1 else None
    hint = "Nothing was appended. Send several events as JSON lines, with Content-Type: application/x-ndjson."
    got = shown(values[place - 1].decode("utf-8", "replace"))
    raise DataError("bad-record", f"An event is refused: {reason}.", got=got, hint=hint, where=where)


def _key(stream: Stream, row: Row | str) -> bytes | None:
    return None if stream.key is None or isinstance(row, str) else str(row[stream.key]).encode()
