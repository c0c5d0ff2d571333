"""`hr.Producer`: events from a program into a stream, checked, batched, bounded.

A row is held to the stream's fields and checks when it is handed over, as HTTP intake and `headrace send` do; whether
it is late or a copy is decided by the pipeline. Batches and the waiting for the log are `ingest.send.buffer`'s
business.

What is promised: an event whose future has a position is in the log, once, and survives the machine. An event whose
future failed was not confirmed: on the embedded log it is not there; on Kafka an append that ran out of time may still
be. Send it again: copies of one event id and time count once. The producer itself never appends a batch twice.
"""

from __future__ import annotations

import atexit
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

from headrace.clock import SystemClock, duration, micros
from headrace.codec.registry.ids import registry_of
from headrace.codec.wire import SchemaIds
from headrace.config.config import names
from headrace.define.stream import Stream, find_stream
from headrace.errors import DataError, HeadraceError, shown
from headrace.ingest.send.buffer import Buffer, BufferBounds, BufferCounts
from headrace.log.protocol import Log
from headrace.log.record import Headers, Message, Position, sizes
from headrace.meaning.message import MessageWriter
from headrace.meaning.verdict import ARRIVED_AT, RESERVED
from headrace.project import Project, load
from headrace.public_calls import check_making
from headrace.topics import create, open_log, topics

BUFFER_BYTES = 64 * 1024 * 1024
LEAVING = 30.0
"""Seconds that a program which never closed its producer waits at its end."""

Row = Mapping[str, Any] | bytes
_logger = logging.getLogger(__name__)


@check_making
class Producer:
    """Sends events to one stream. Any number of threads may share it.

    Parameters
    ----------
    project
        A loaded project, or a folder at or below one; the current folder's project when left out.
    stream
        The stream's name; or the stream itself together with `log`, and then no project is needed.
    log
        Where events go instead of the project's log: a `MemoryLog` in your tests, for example.
    linger
        How long an event may wait for others to be appended with.
    batch
        The most events in one append.
    buffer
        The most events that wait or are under way; together they also hold at most 64 MiB.
    block
        How long `send` waits for room in the buffer before it fails with `buffer-full`.
    unchecked
        Send rows as they are, whatever they are: for poison on purpose.

    Examples
    --------
    >>> import headrace as hr
    >>> from headrace.testing import MemoryLog
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at", key="user")
    >>> with Producer(stream=clicks, log=MemoryLog()) as producer:
    ...     future = producer.send({"user": "ann", "at": "2026-01-01T00:00:00Z"})
    >>> future.result(), producer.counts.sent
    (Position(partition=0, offset=0), 1)
    """

    def __init__(
        self,
        project: Project | str | PathLike[str] | None = None,
        *,
        stream: str | Stream,
        log: Log | None = None,
        linger: Any = "5ms",
        batch: int = 1_000,
        buffer: int = 100_000,
        block: Any = "5s",
        unchecked: bool = False,
    ) -> None:
        bounds = BufferBounds(
            duration(linger, "the producer's linger", zero=True),
            _count("batch", batch),
            _count("buffer", buffer),
            BUFFER_BYTES,
            duration(block, "the time a producer blocks", zero=True),
        )
        self._own: Log | None = None
        ids: SchemaIds | None = None
        if log is not None and isinstance(stream, Stream):
            self.stream, self.topic = stream.base, stream.name
            if self.topic not in log.topics():
                log.create_topic(self.topic)
        else:
            loaded = project if isinstance(project, Project) else load(None if project is None else Path(project))
            self.stream = find_stream(loaded.streams, stream.name if isinstance(stream, Stream) else stream).base
            ids = registry_of(loaded.config, loaded.streams)
            self.topic = names(loaded.config).topic(self.stream.name)
            if log is None:
                log = self._own = open_log(loaded.config)
            create(log, topics(loaded.plan(), names(loaded.config), loaded.config.log.partitions))
        self._log = log
        self._writer = MessageWriter(self.stream, ids, self.topic)
        self._write = _unchecked if unchecked else _checked_write(self._writer)
        self._buffer = Buffer(lambda messages: self._log.append_batch(self.topic, messages), bounds)
        atexit.register(self._leave)

    @property
    def counts(self) -> BufferCounts:
        """How many events are in the log, were refused, failed, and are under way."""
        return self._buffer.counts

    def send(
        self, row: Row, *, key: str | bytes | None = None, headers: Headers = (), arrived_at: Any = None
    ) -> Future[Position]:
        """Hand over one event; its future ends with where it stands in the log.

        Parameters
        ----------
        row
            The event's fields, or its JSON text as bytes.
        key
            What the event is partitioned by; the stream's key field when left out.
        headers
            Pairs of a name and bytes, kept with the event.
        arrived_at
            When the event first arrived, if that is not now: for history that must not all be late.

        Raises
        ------
        HeadraceError
            `bad-record` for a row that does not fit, `buffer-full` when there is no room: the event was not taken.
        """
        try:
            value, fields = self._write(row)
            made = self._writer.key(fields) if key is None else key.encode() if isinstance(key, str) else key
            message = Message(value, made, (*_checked(headers), *self._arrival(arrived_at)))
            sizes([message], compacted=False)
        except HeadraceError:
            self._buffer.refuse()
            raise
        return self._buffer.put(message)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything sent so far is in the log; raises `not-delivered` for what is not."""
        self._buffer.flush(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Flush and take nothing more; raises `not-delivered` for events that are not in the log."""
        atexit.unregister(self._leave)
        try:
            self._buffer.close(timeout)
        finally:
            if self._own is not None:
                self._own.close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _arrival(self, arrived_at: Any) -> Headers:
        source, name = self.stream.arrival.source, self.stream.arrival.name
        if source == "header":
            moment = SystemClock().now() if arrived_at is None else micros(arrived_at, "`arrived_at`")
            return self._writer.arrival(moment)
        if arrived_at is None:
            return ()
        if source == "field":
            message = f"The arrival of stream {self.stream.name!r} is its field {name!r}, not an argument."
            raise DataError("bad-argument", message, got=shown(arrived_at))
        return ((ARRIVED_AT, str(micros(arrived_at, "`arrived_at`")).encode()),)

    def _leave(self) -> None:
        """The program ends without having closed the producer: deliver what is left, and tell when that fails."""
        try:
            self.close(LEAVING)
        except HeadraceError as error:
            _logger.error("a producer was not closed: %s", error)


def _count(what: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise DataError("bad-argument", f"`{what}` is a whole number from 1.", got=shown(value))
    return value


def _checked(headers: Iterable[tuple[str, bytes]]) -> Headers:
    given = tuple(headers)
    for header in given:
        if isinstance(header, tuple) and header and str(header[0]).startswith(RESERVED):
            message = f"Header names that begin with {RESERVED!r} are Headrace's own."
            raise DataError("bad-argument", message, got=shown(header[0]))
    return given


Write = Callable[[Row], tuple[bytes, Mapping[str, Any] | None]]
"""From a row to its bytes and its fields as a reader will have them."""


def _checked_write(writer: MessageWriter) -> Write:
    """Rows that fit the stream's fields and pass its checks, in the stream's format."""

    def write(row: Row) -> tuple[bytes, Mapping[str, Any] | None]:
        text, decoded = (row, writer.read(row)) if isinstance(row, bytes) else writer.read_fields(row)
        fields, fault = decoded
        if fields is None or fault is not None:
            reason = "it cannot be read" if fault is None else f"{fault.kind}, {fault.reason}"
            raise DataError("bad-record", f"An event is refused: {reason}.", got=shown(row))
        return writer.value(text, fields), fields

    return write


def _unchecked(row: Row) -> tuple[bytes, Mapping[str, Any] | None]:
    if isinstance(row, bytes):
        return row, None
    try:
        return json.dumps(dict(row), separators=(",", ":"), ensure_ascii=False).encode(), None
    except (TypeError, ValueError) as error:
        hint = "Hand over the bytes themselves."
        raise DataError("bad-record", "The row has no JSON text.", got=shown(str(error)), hint=hint) from error
