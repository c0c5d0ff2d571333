"""Rows into a stream's topic: as fast as the disk allows, as they come through a pipe, or evenly at a rate.

An append is safe when it returns, so what is counted as sent is in the log. A full disk ends it: the sender knows best
whether to wait. The first bad row ends it, unless told to keep going: then bad rows are counted, and the first few kept
to be shown. Ctrl-C ends it between two appends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile

from headrace.clock import Clock, SystemClock
from headrace.codec.wire import SchemaIds
from headrace.define.stream import Stream
from headrace.errors import DataError, DiskFullError
from headrace.ingest.files.columns import Columns
from headrace.ingest.files.rows import RowFault, SourceRow, read_rows
from headrace.ingest.files.source import JSONL, Source, ignore_column
from headrace.ingest.send.pipe_batches import Arrivals
from headrace.ingest.send.row_check import Check, Checked, checker, dated, unchecked
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.meaning.message import MessageWriter
from headrace.plural import show_count

BATCH = 1_000
SHOWN_FAULTS = 10


@dataclass(frozen=True)
class SendOptions:
    """How rows are to be sent.

    Parameters
    ----------
    rate
        Events in a second, evenly; as fast as possible when None.
    rebase
        Move event times so that the last is now; with a rate every event happens as it is sent.
    keep_going
        Leave bad rows out instead of ending at the first.
    raw
        Send lines as they are, bad ones too.
    linger
        Seconds that a row which comes through a pipe may wait to be sent with others.
    ids
        Where the schemas of a stream in the Confluent wire format are kept; without it its own is taken.
    """

    rate: float | None = None
    rebase: bool = False
    keep_going: bool = False
    raw: bool = False
    linger: float = 0.1
    ids: SchemaIds | None = None


@dataclass
class SendProgress:
    """What has been done so far."""

    sent: int = 0
    refused: int = 0
    faults: list[RowFault] = field(default_factory=list)


class SendRate:
    """How many events are due. The first is due at once, each next one 1/rate seconds later.

    >>> at = [0.0]
    >>> pace = SendRate(2.0, now=lambda: at[0], nap=lambda seconds: at.__setitem__(0, at[0] + seconds))
    >>> pace.due(), pace.due(), at[0]
    (1, 1, 0.5)

    Nothing is due any more when `is_over` says so.
    """

    def __init__(
        self,
        rate: float | None,
        *,
        now: Callable[[], float] = time.monotonic,
        nap: Callable[[float], object] = time.sleep,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._rate, self._now, self._nap, self.is_over = rate, now, nap, is_over
        self._start: float | None = None
        self._given = 0

    def due(self) -> int:
        """Wait until an event is due, and say how many are, at most a batch; none when it is over."""
        if self._rate is None:
            return 0 if self.is_over() else BATCH
        if self._start is None:
            self._start = self._now()
        wait = self._start + self._given / self._rate - self._now()
        if wait > 0:
            self._nap(wait)
        if self.is_over():
            return 0
        # Rounding must never make it nothing: the wait is over.
        ready = int((self._now() - self._start) * self._rate) + 1 - self._given
        count = min(max(1, ready), BATCH)
        self._given += count
        return count


def send(
    source: Source,
    stream: Stream,
    log: Log,
    topic: str,
    *,
    wish: SendOptions,
    pace: SendRate | None = None,
    clock: Clock | None = None,
    progress: Callable[[int, SendProgress], None] = lambda _done, _sent: None,
) -> SendProgress:
    """Send every row of a source to a topic.

    Parameters
    ----------
    pace
        When events are due; by the wish's rate unless given.
    progress
        Called after every append with how much of the source has been read, and what has been done.
    """
    clock, pace = clock or SystemClock(), pace or SendRate(wish.rate)
    writer = MessageWriter(stream, wish.ids, topic)
    check = unchecked(writer) if wish.raw else checker(writer)
    shift = _shift(source, stream, check, clock, pace) if wish.rebase and wish.rate is None else 0
    done = SendProgress()
    with closing(_batches(source, stream, wish, pace)) as batches:
        for batch in batches:
            good, fault = _good(batch, check, done, keep_going=wish.keep_going)
            now = clock.now()
            if wish.rebase:
                good = [dated(writer, row, now if wish.rate else _happened(stream, row) + shift) for row in good]
            headers = writer.arrival(now)
            try:
                log.append_batch(topic, [Message(row.value, writer.key(row.fields), headers) for row in good])
            except DiskFullError as error:
                error.hint = f"{_before(done.sent)} sent before it. Free some space, then send the rest."
                raise
            done.sent += len(good)
            progress(batch[-1].done, done)
            if fault is not None:
                raise _ended(fault, done.sent, source)
    return done


def _batches(
    source: Source, stream: Stream, wish: SendOptions, pace: SendRate
) -> Generator[list[SourceRow], None, None]:
    """The rows in the batches they are sent in."""
    rows = read_rows(source, Columns(stream.schema))
    if source.pipe is None:
        with closing(rows):
            while batch := list(islice(rows, pace.due())):
                yield batch
        return
    with closing(Arrivals(rows, source.pipe.interruption, 0.0 if wish.rate else wish.linger)) as arrivals:
        # What came before Ctrl-C is sent; at a rate, what was due before it.
        while batch := arrivals.take(pace.due() if wish.rate else BATCH):
            yield batch


def _good(
    batch: list[SourceRow], check: Check, done: SendProgress, *, keep_going: bool
) -> tuple[list[Checked], RowFault | None]:
    """The rows that can be sent; with the fault that ends it, those before it."""
    good: list[Checked] = []
    for row in batch:
        read = check(row)
        if isinstance(read, Checked):
            good.append(read)
            continue
        done.refused += 1
        if len(done.faults) < SHOWN_FAULTS:
            done.faults.append(read)
        if not keep_going:
            return good, read
    return good, None


def _ended(fault: RowFault, sent: int, source: Source) -> DataError:
    others = ", or --raw to send them as they are" if source.format == JSONL else ""
    hint = f"{_before(sent)} sent before it. Use --keep-going to leave such rows out{others}."
    message = f"A row cannot be sent: {fault.reason}."
    return DataError("bad-record", message, got=fault.got, where=fault.place, hint=hint)


def _before(sent: int) -> str:
    return show_count(sent, "event was", "events were") if sent else "Nothing was"


def _shift(source: Source, stream: Stream, check: Check, clock: Clock, pace: SendRate) -> int:
    """From the last event time of a source to now."""
    rows = read_rows(replace(source, report=ignore_column), Columns(stream.schema))
    times: Iterator[int] = (
        _happened(stream, read)
        for read in map(check, takewhile(lambda _: not pace.is_over(), rows))
        if isinstance(read, Checked) and read.fields is not None
    )
    last = max(times, default=None)
    return 0 if last is None else clock.now() - last


def _happened(stream: Stream, checked: Checked) -> int:
    return 0 if checked.fields is None else int(checked.fields[stream.event_time])
