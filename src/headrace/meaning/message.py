"""The messages of a stream: a row becomes a value in the stream's format, a key and headers.

Whatever sends goes through here, so that a row is held to the schema and the checks of its stream as the pipeline will
hold it. What depends on the row's arrival, or on other rows, is decided later (`meaning.verdict`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headrace.clock import show_time
from headrace.codec.json.read import Decoded, decoder
from headrace.codec.json.write import encoded
from headrace.codec.wire import SchemaIds, row_writer
from headrace.define.stream import Stream
from headrace.errors import DataError, did_you_mean, shown
from headrace.log.record import Headers
from headrace.meaning.verdict import row_checker

if TYPE_CHECKING:
    from collections.abc import Callable

Row = Mapping[str, Any]


class MessageWriter:
    """Reads rows that come as JSON text or as fields, and writes the parts of their messages.

    Parameters
    ----------
    stream
        The stream that is written to.
    ids
        Where the schemas of a stream in the Confluent wire format are kept; without it its own is taken.
    topic
        The topic that is written to, which names the registry's subject; the stream's name when left out.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp("s")}, event_time="at", key="user")
    >>> writer = MessageWriter(clicks)
    >>> writer.read(b'{"user": 7, "at": 0}').fault.reason
    'user must be a string'
    >>> text, decoded = writer.read_fields({"user": "ann", "at": 0})
    >>> writer.value(text, decoded.row), writer.key(decoded.row)
    (b'{"user":"ann","at":0}', b'ann')
    """

    def __init__(self, stream: Stream, ids: SchemaIds | None = None, topic: str | None = None) -> None:
        self.stream, self._ids, self._topic = stream, ids, topic
        self._decode, self._check = decoder(stream.schema), row_checker(stream)
        self._names = {field.name for field in stream.schema}

    @cached_property
    def encode(self) -> Callable[[Row], bytes]:
        """From a row to its value. It is made when it is first needed, because it may ask a registry."""
        return row_writer(self.stream, self._ids, self._topic)

    def read(self, text: bytes) -> Decoded:
        """The row of a JSON text, and why it would be refused; a row that fails a check comes with its fault."""
        return self._check(self._decode(text))

    def read_fields(self, fields: Row) -> tuple[bytes, Decoded]:
        """The JSON text of a row, and the row as `read` gives it; fields that cannot be written are an error."""
        for name in fields:
            if name not in self._names:
                message = f"Stream {self.stream.name!r} has no such field."
                raise DataError("bad-record", message, got=shown(name), hint=did_you_mean(name, self._names))
        text, row = encoded(self.stream.schema, fields)
        return text, self._check(Decoded(row, None))

    def value(self, text: bytes, row: Row) -> bytes:
        """The value of a row: its own text where the stream is JSON."""
        return text if self.stream.format == "json" else self.encode(row)

    def key(self, row: Row | None) -> bytes | None:
        """The key of a row; a row that cannot be read has none."""
        return None if row is None else row_key(self.stream, row)

    def arrival(self, moment: int | str) -> Headers:
        """The headers that say when a row arrives, for a stream that takes its arrival from one."""
        if self.stream.arrival.source != "header":
            return ()
        return ((str(self.stream.arrival.name), (show_time(moment) if isinstance(moment, int) else moment).encode()),)


def row_key(stream: Stream, row: Row) -> bytes | None:
    """What a row's record is partitioned by."""
    return None if stream.key is None else str(row[stream.key]).encode()
