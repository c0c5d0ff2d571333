"""Events in over HTTP: held to the stream's schema and checks before they are appended, all of a request or none.

Events come as JSON, one or many (`body` cuts a request into them), and are kept in their stream's own format. Whoever
sends them is told at once what the pipeline would have refused, and then nothing of the request is in the log. Whether
an event is late, a duplicate or from the future is not decided here: that needs its arrival.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.clock import Clock
from headrace.codec.json.read import Decoded
from headrace.codec.wire import SchemaIds
from headrace.config.config import Names
from headrace.define.stream import Stream, find_stream
from headrace.errors import DataError, shown
from headrace.log.protocol import Log
from headrace.log.record import Message, Position
from headrace.meaning.message import MessageWriter
from headrace.plan.model import Plan


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
        self._streams = {stream.name: stream for stream in plan.declared}
        self._writers: dict[str, MessageWriter] = {}

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
        writer = self._writer(self.stream(stream))
        rows = [writer.read(value) for value in values]
        if not unchecked:
            _refuse(rows, values)
        headers = writer.arrival(arrival or self._clock.now())
        messages = [
            Message(value if unchecked or row is None else writer.value(value, row), writer.key(row), headers)
            for value, (row, _) in zip(values, rows, strict=True)
        ]
        topic = self._names.topic(stream)
        return self._arrivals(topic, self._log.append_batch(topic, messages))

    def _writer(self, stream: Stream) -> MessageWriter:
        if stream.name not in self._writers:
            self._writers[stream.name] = MessageWriter(stream, self._ids, self._names.topic(stream.name))
        return self._writers[stream.name]

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


def _refuse(rows: Sequence[Decoded], values: Sequence[bytes]) -> None:
    faults = [(place, row.fault) for place, row in enumerate(rows, 1) if row.fault is not None]
    if not faults:
        if values:
            return
        hint = "Send an event as a JSON object in the body."
        raise DataError("bad-record", "There is no event in the request.", hint=hint)
    place, fault = faults[0]
    where = f"event {place} of {len(values)}, {len(faults)} of them refused" if len(values) > 1 else None
    hint = "Nothing was appended. Send several events as JSON lines, with Content-Type: application/x-ndjson."
    got = shown(values[place - 1].decode("utf-8", "replace"))
    raise DataError(
        "bad-record", f"An event is refused: {fault.kind}, {fault.reason}.", got=got, hint=hint, where=where
    )
