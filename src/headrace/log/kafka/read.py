"""Reading from Kafka: cursors, each a consumer that stands somewhere in one partition, kept for the next read there.

A read that goes on where another stopped finds its records fetched already; any other moves the cursor that was idle
longest, or makes a new one. Gaps (compaction, marks of transactions) are passed: a cursor remembers how far it has
looked, so that nobody waits for offsets that hold no record.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from headrace.clock import MILLISECOND
from headrace.errors import DataError, MachineError
from headrace.log.kafka.client import KafkaClients
from headrace.log.record import Record

if TYPE_CHECKING:
    from confluent_kafka import Message as Fetched

MOST_CURSORS = 32
REUSED = 2.0
"""Seconds after which an idle cursor may be sent elsewhere, so that readers side by side keep theirs."""
CHUNK = 10_000
NEAR = 1_000
NOWHERE = -1


class Cursor:
    """A consumer that stands in one partition. One thread at a time uses it."""

    def __init__(self, client: KafkaClients) -> None:
        self._client = client
        self._consumer = client.consumer()
        self.topic, self.partition = "", NOWHERE
        self.used = 0.0
        self._waiting: deque[Record] = deque()
        self._next = self._looked = 0

    def near(self, topic: str, partition: int, offset: int) -> bool:
        """Whether an offset is where this cursor stands, or so little ahead that going on is quicker than moving."""
        return (self.topic, self.partition) == (topic, partition) and self._next <= offset <= self._looked + NEAR

    def advance(self, offset: int) -> None:
        """Go on to an offset that is near."""
        self._next = offset
        while self._waiting and self._waiting[0].offset < offset:
            self._waiting.popleft()

    @property
    def looked(self) -> int:
        """There is nothing to hand out before this offset."""
        return self._waiting[0].offset if self._waiting else self._looked

    def move(self, topic: str, partition: int, offset: int) -> None:
        """Stand at an offset."""
        from confluent_kafka import TopicPartition

        self._waiting.clear()
        self.topic, self.partition, self._next, self._looked = topic, partition, offset, offset
        self._consumer.assign([TopicPartition(topic, partition, offset)])

    def leave(self) -> None:
        """Stand nowhere: nothing comes any more."""
        self._waiting.clear()
        self.topic, self.partition, self._next, self._looked = "", NOWHERE, 0, 0
        self._consumer.unassign()

    def fetch(self, limit: int, timeout: float) -> bool:
        """Take in what has come, waiting at most `timeout` seconds for the first; whether there is anything now."""
        if not self._waiting and timeout:
            # Asked for more than one, the client would wait for all of them.
            self._take_some(1, timeout)
        if len(self._waiting) < limit:
            self._take_some(min(limit - len(self._waiting), CHUNK), 0)
        return bool(self._waiting)

    def _take_some(self, most: int, timeout: float) -> None:
        for found in self._consumer.consume(most, timeout):
            self._take(found)

    def _take(self, found: Fetched) -> None:
        error = found.error()
        if error is None:
            record = _record(found)
            self._looked = record.offset + 1
            if record.offset >= self._next:
                self._waiting.append(record)
        elif error.code() == error._PARTITION_EOF:
            self._looked = max(self._looked, found.offset() or 0)
        elif error.code() in (error._AUTO_OFFSET_RESET, error.OFFSET_OUT_OF_RANGE):
            self.topic = ""
            message = "The records at this position have been removed by retention."
            hint = "Start at the start offset and account for the gap, or rebuild from the lake."
            got, where = f"offset {self._next}", f"{found.topic()}/{self.partition}"
            raise DataError("offset-out-of-range", message, got=got, hint=hint, where=where)
        elif not error.retriable() and error.code() not in (error._ALL_BROKERS_DOWN, error._TRANSPORT):
            self.topic = ""
            raise self._client.failure(error, "Reading from Kafka")

    def take(self, limit: int, max_bytes: int) -> list[Record]:
        """Hand out records that are there: at least one if there is any."""
        taken: list[Record] = []
        size = 0
        while self._waiting and len(taken) < limit:
            size += _size(self._waiting[0])
            if taken and size > max_bytes:
                break
            taken.append(self._waiting.popleft())
            self._next = taken[-1].offset + 1
        return taken

    def close(self) -> None:
        """Give the consumer back."""
        self._consumer.close()


class Cursors:
    """The cursors of one log, for any number of threads."""

    def __init__(self, client: KafkaClients) -> None:
        self._client = client
        self._idle: list[Cursor] = []
        self._count = 0
        self._changing = threading.Lock()

    @contextmanager
    def at(self, topic: str, partition: int, offset: int) -> Iterator[Cursor]:
        """A cursor for a read from an offset; `near` says whether it can go on to there."""
        cursor = self._lent(topic, partition, offset) or Cursor(self._client)
        try:
            yield cursor
        except BaseException:
            # Where it stands is no longer known.
            cursor.topic = ""
            raise
        finally:
            cursor.used = time.monotonic()
            with self._changing:
                self._idle.append(cursor)

    def anywhere(self) -> AbstractContextManager[Cursor]:
        """A cursor that nobody means to go on with."""
        return self.at("", NOWHERE, 0)

    def _lent(self, topic: str, partition: int, offset: int) -> Cursor | None:
        with self._changing:
            fit = [cursor for cursor in self._idle if cursor.near(topic, partition, offset)]
            if not fit and self._idle:
                oldest = min(self._idle, key=lambda cursor: cursor.used if cursor.topic else 0.0)
                old = not oldest.topic or time.monotonic() - oldest.used > REUSED
                fit = [oldest] if old or self._count >= MOST_CURSORS else []
            if fit:
                self._idle.remove(fit[0])
                return fit[0]
            self._count += 1
            return None

    def close(self) -> None:
        """Give all consumers back."""
        with self._changing:
            idle, self._idle, self._count = self._idle, [], 0
        for cursor in idle:
            cursor.close()


def _record(found: Fetched) -> Record:
    kind, stamp = found.timestamp()
    topic, partition, offset = found.topic() or "", found.partition() or 0, found.offset() or 0
    if kind == 0:
        message = "A record has no timestamp: it was written in a format older than Kafka 0.10."
        raise MachineError("log-format", message, where=f"{topic}/{partition}/{offset}")
    # A header without a value, which other producers may send, is one with an empty value.
    headers = tuple((str(header[0]), _bytes(header[1]) or b"") for header in found.headers() or ())
    return Record(topic, partition, offset, stamp * MILLISECOND, _bytes(found.key()), _bytes(found.value()), headers)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _size(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"") + sum(len(n) + len(v) for n, v in record.headers)
