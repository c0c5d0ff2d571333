"""From a row to a message: held to the stream's schema and checks, perhaps dated anew, with its key.

A row is judged as the pipeline will judge it, as far as that does not depend on when it arrives. What is sent is the
row's own text, unless it was dated anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headrace.clock import show_time
from headrace.codec.json.read import decoder
from headrace.codec.json.write import encode
from headrace.define.stream import Stream
from headrace.errors import DataError, shown
from headrace.ingest.files.rows import RowFault, SourceRow
from headrace.log.record import Message
from headrace.types.field_types import Timestamp


class Checked(NamedTuple):
    """A row that can be sent: its text, and its fields when they could be read."""

    value: bytes
    fields: dict[str, Any] | None


Check = Callable[[SourceRow], Checked | RowFault]
Write = Callable[[Mapping[str, Any]], bytes]
"""From a row to a record's bytes, for streams whose records are not JSON."""


def checker(stream: Stream, write: Write | None = None) -> Check:
    """A function that reads a row, or says what is wrong with it; `write` makes its bytes when they are not its text.

    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp("s")}, event_time="at")
    >>> checker(clicks)(SourceRow("clicks.jsonl:1", b'{"user": 7, "at": 0}', None, 0))
    RowFault(place='clicks.jsonl:1', reason='user must be a string', got='\\'{"user": 7, "at": 0}\\'')
    """
    decode = decoder(stream.schema)
    checks = [(name, check.python()) for name, check in stream.checks]

    def check(row: SourceRow) -> Checked | RowFault:
        if row.fault is not None:
            return row.fault
        decoded = decode(row.value)
        if decoded.row is None:
            reason = "it cannot be read" if decoded.fault is None else decoded.fault.reason
            return RowFault(row.place, reason, shown(row.value.decode("utf-8", "replace")))
        for name, holds in checks:
            if holds(decoded.row) is False:
                return RowFault(row.place, f"check {name} is false", shown(row.value.decode("utf-8", "replace")))
        try:
            return Checked(row.value if write is None else write(decoded.row), decoded.row)
        except DataError as error:
            return RowFault(row.place, error.message.rstrip("."), error.got or "")

    return check


def unchecked(stream: Stream) -> Check:
    """A function that takes every row as it is; its fields are known when they happen to fit."""
    decode = decoder(stream.schema)
    return lambda row: Checked(row.value, decode(row.value).row)


def dated(stream: Stream, checked: Checked, event_time: int, write: Write | None = None) -> Checked:
    """The same row, happening at another time. A declared arrival moves with it."""
    if checked.fields is None:
        return checked
    kind = stream.schema[stream.event_time].type
    unit = Timestamp.units.get(kind.unit, 1) if isinstance(kind, Timestamp) else 1
    moved = event_time - event_time % unit
    by = moved - checked.fields[stream.event_time]
    fields = {**checked.fields, stream.event_time: moved}
    if stream.arrival.source == "field" and stream.arrival.name not in (None, stream.event_time):
        fields[str(stream.arrival.name)] += by
    return Checked(encode(stream.schema, fields) if write is None else write(fields), fields)


def message(stream: Stream, checked: Checked, now: int) -> Message:
    """A row as it is appended: with the stream's key, and an arrival header when the stream wants one."""
    fields = checked.fields
    key = None if stream.key is None or fields is None else str(fields[stream.key]).encode()
    if stream.arrival.source != "header":
        return Message(checked.value, key)
    return Message(checked.value, key, ((str(stream.arrival.name), show_time(now).encode()),))
