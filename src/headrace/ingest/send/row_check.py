"""A row of a source, ready to be sent: held to the stream's schema and checks, perhaps dated anew.

What is sent is the row's own text, unless it was dated anew or the stream's records are not JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.errors import DataError, shown
from headrace.ingest.files.rows import RowFault, SourceRow
from headrace.meaning.message import MessageWriter
from headrace.types.field_types import Timestamp


class Checked(NamedTuple):
    """A row that can be sent: its value, and its fields when they could be read."""

    value: bytes
    fields: dict[str, Any] | None


Check = Callable[[SourceRow], Checked | RowFault]


def checker(writer: MessageWriter) -> Check:
    """A function that reads a row, or says what is wrong with it.

    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp("s")}, event_time="at")
    >>> checker(MessageWriter(clicks))(SourceRow("clicks.jsonl:1", b'{"user": 7, "at": 0}', None, 0))
    RowFault(place='clicks.jsonl:1', reason='user must be a string', got='\\'{"user": 7, "at": 0}\\'')
    """

    def check(row: SourceRow) -> Checked | RowFault:
        if row.fault is not None:
            return row.fault
        fields, fault = writer.read(row.value)
        if fields is None or fault is not None:
            reason = "it cannot be read" if fault is None else fault.reason
            return RowFault(row.place, reason, shown(row.value.decode("utf-8", "replace")))
        try:
            return Checked(writer.value(row.value, fields), fields)
        except DataError as error:
            return RowFault(row.place, error.message.rstrip("."), error.got or "")

    return check


def unchecked(writer: MessageWriter) -> Check:
    """A function that takes every row as it is; its fields are known when they happen to fit."""
    return lambda row: Checked(row.value, writer.read(row.value).row)


def dated(writer: MessageWriter, checked: Checked, event_time: int) -> Checked:
    """The same row, happening at another time. A declared arrival moves with it."""
    if checked.fields is None:
        return checked
    stream = writer.stream
    kind = stream.schema[stream.event_time].type
    unit = Timestamp.units.get(kind.unit, 1) if isinstance(kind, Timestamp) else 1
    moved = event_time - event_time % unit
    by = moved - checked.fields[stream.event_time]
    fields = {**checked.fields, stream.event_time: moved}
    if stream.arrival.source == "field" and stream.arrival.name not in (None, stream.event_time):
        fields[str(stream.arrival.name)] += by
    return Checked(writer.encode(fields), fields)
