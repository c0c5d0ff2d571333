"""A bounded buffer in front of a log: many threads put messages in, one thread appends them in batches.

Nothing is lost silently: a message that is not taken is an error at once, one that was taken has a future that ends
with its position or with the log's error, and errors nobody looked at come up again at `flush` and `close`. A batch is
handed to the log once: trying again is the business of the log, which knows what it has kept. What is in a message is
decided by `headrace.ingest.producer`.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.clock import SECOND, show_duration
from headrace.errors import DataError, MachineError, shown
from headrace.log.record import Message, Position
from headrace.plural import show_count

BATCH_BYTES = 8 * 1024 * 1024

Append = Callable[[Sequence[Message]], list[Position]]


class BufferCounts(NamedTuple):
    """What became of the events handed over: in the log, not taken, not appended, and still under way."""

    sent: int
    refused: int
    failed: int
    pending: int


@dataclass(frozen=True)
class BufferBounds:
    """How much is kept and for how long; times in microseconds.

    Parameters
    ----------
    linger
        How long a message may wait for company.
    batch
        The most messages in one append.
    events, bytes
        The most that wait or are under way. A message larger than all of it is taken when nothing else is there.
    block
        How long `put` waits for room.
    """

    linger: int
    batch: int
    events: int
    bytes: int
    block: int


class _Waiting(NamedTuple):
    message: Message
    size: int
    future: Future[Position]
    since: float


@dataclass
class _State:
    """All that the condition guards."""

    waiting: deque[_Waiting] = field(default_factory=deque)
    bytes: int = 0
    taken: int = 0
    settled: int = 0
    sent: int = 0
    refused: int = 0
    failed: int = 0
    untold: int = 0
    first: BaseException | None = None
    flushing: int = 0
    closed: bool = False


class Buffer:
    """Messages on their way to a log.

    Examples
    --------
    >>> from headrace.log import MemoryLog
    >>> log = MemoryLog()
    >>> _ = log.create_topic("clicks")
    >>> bounds = BufferBounds(0, 100, 1_000, 10**6, SECOND)
    >>> buffer = Buffer(lambda messages: log.append_batch("clicks", messages), bounds)
    >>> buffer.put(Message(b"{}")).result(timeout=10)
    Position(partition=0, offset=0)
    >>> buffer.close(timeout=10)
    >>> buffer.counts
    BufferCounts(sent=1, refused=0, failed=0, pending=0)
    """

    def __init__(self, append: Append, bounds: BufferBounds) -> None:
        self._append, self._bounds = append, bounds
        self._state, self._changed, self._process = _State(), threading.Condition(), os.getpid()
        self._thread = threading.Thread(target=self._run, name="headrace-producer", daemon=True)
        self._thread.start()

    @property
    def counts(self) -> BufferCounts:
        """How many events have gone which way."""
        with self._changed:
            state = self._state
            return BufferCounts(state.sent, state.refused, state.failed, state.taken - state.settled)

    def refuse(self) -> None:
        """Count an event that was not taken."""
        with self._changed:
            self._state.refused += 1

    def put(self, message: Message) -> Future[Position]:
        """Take a message; waits for room, and fails with `buffer-full` when none comes up."""
        size = _size(message)
        with self._changed:
            room = self._changed.wait_for(lambda: self._refusing() or self._fits(size), self._bounds.block / SECOND)
            if self._refusing() or not room:
                self._state.refused += 1
                raise self._closed_error() if self._refusing() else self._full_error()
            future: Future[Position] = Future()
            # What is on its way cannot be called back.
            future.set_running_or_notify_cancel()
            self._state.waiting.append(_Waiting(message, size, future, time.monotonic()))
            self._state.bytes += size
            self._state.taken += 1
            self._changed.notify_all()
        return future

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all that was taken so far is in the log; what the log refused since the last look is an error."""
        with self._changed:
            target = self._state.taken
            self._state.flushing += 1
            self._changed.notify_all()
            try:
                done = self._changed.wait_for(lambda: self._state.settled >= target, timeout)
            finally:
                self._state.flushing -= 1
            left, untold, first = target - self._state.settled, self._state.untold, self._state.first
            self._state.untold, self._state.first = 0, None
        if untold:
            message = f"{_events(untold)} not appended."
            hint = "Send them again: an event with the same id and time counts once."
            raise MachineError("not-delivered", message, got=shown(str(first), 200), hint=hint) from first
        if not done:
            hint = "They are still tried: flush again, or look at the log's disk or brokers."
            raise MachineError("not-delivered", f"{_events(left)} not appended within {timeout:g} s.", hint=hint)

    def close(self, timeout: float | None = None) -> None:
        """Take nothing more, and flush."""
        with self._changed:
            self._state.closed = True
            self._changed.notify_all()
        if os.getpid() == self._process:
            self.flush(timeout)
            self._thread.join(timeout)

    def _refusing(self) -> bool:
        return self._state.closed or os.getpid() != self._process

    def _fits(self, size: int) -> bool:
        pending = self._state.taken - self._state.settled
        fits = pending < self._bounds.events and self._state.bytes + size <= self._bounds.bytes
        return fits or pending == 0

    def _closed_error(self) -> DataError:
        if self._state.closed:
            return DataError("not-running", "The producer is closed; the event was not taken.")
        hint = "Make the producer in the process that sends."
        return DataError("not-running", "The producer stayed behind in the process that was forked.", hint=hint)

    def _full_error(self) -> MachineError:
        waited, pending = show_duration(self._bounds.block), self._state.taken - self._state.settled
        message = f"The producer's buffer stayed full for {waited}; the event was not taken."
        hint = "Send it again when the log has caught up, or send more slowly."
        return MachineError(
            "buffer-full",
            message,
            got=f"{show_count(pending, 'event')}, {show_count(self._state.bytes, 'byte')}",
            hint=hint,
        )

    def _run(self) -> None:
        while batch := self._next():
            self._deliver(batch)

    def _next(self) -> list[_Waiting]:
        """The next batch, when it is full, has waited long enough or somebody flushes; empty at the end."""
        state, bounds = self._state, self._bounds
        with self._changed:
            self._changed.wait_for(lambda: bool(state.waiting) or state.closed)
            while state.waiting and len(state.waiting) < bounds.batch and not (state.flushing or state.closed):
                left = state.waiting[0].since + bounds.linger / SECOND - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            batch: list[_Waiting] = []
            size = 0
            while state.waiting and len(batch) < bounds.batch and (not batch or size < BATCH_BYTES):
                size += state.waiting[0].size
                batch.append(state.waiting.popleft())
            return batch

    def _deliver(self, batch: list[_Waiting]) -> None:
        """Append a batch. One that the log refuses for what is in it has added nothing: its messages go one by one."""
        try:
            positions = self._append([each.message for each in batch])
        except DataError as error:
            if len(batch) > 1:
                for each in batch:
                    self._deliver([each])
                return
            self._settle(batch, error)
        except BaseException as error:
            self._settle(batch, error)
        else:
            self._settle(batch, positions)

    def _settle(self, batch: list[_Waiting], outcome: Sequence[Position] | BaseException) -> None:
        for number, each in enumerate(batch):
            if isinstance(outcome, BaseException):
                each.future.set_exception(outcome)
            else:
                each.future.set_result(outcome[number])
        with self._changed:
            state, count = self._state, len(batch)
            state.settled += count
            state.bytes -= sum(each.size for each in batch)
            if isinstance(outcome, BaseException):
                state.failed += count
                state.untold += count
                state.first = state.first or outcome
            else:
                state.sent += count
            self._changed.notify_all()


def _events(count: int) -> str:
    return show_count(count, "event was", "events were")


def _size(message: Message) -> int:
    headers = sum(len(name) + len(value) for name, value in message.headers)
    return len(message.key or b"") + len(message.value or b"") + headers
