"""Kafka as a log: the same promises as the embedded one, kept by a cluster.

Arrival is the broker's append time in whole milliseconds. An append returns when all in-sync replicas have the records.
Where it differs, and why:

- A batch is not all or none. It is checked as a whole before anything is sent, then goes to each partition in order; if
  the cluster fails meanwhile, the error says how many messages were acknowledged, and of each partition's part at most
  a beginning was kept. Transactions would give more and cost more: a writer that dies leaves an open one, for which
  every reader waits until it times out; and not every cluster has them. Nothing in Headrace needs more: changelog rows
  are upserts whose progress record comes last in one partition, dead letters are keyed by where they came from, and
  events sent again are found by their ids.
- Other producers may use transactions. Readers see only what was committed, and pass the marks that commits leave: to
  them a gap in the offsets is the same as one that compaction left.
- The brokers apply retention and compaction in their own time, so `clean` does nothing.

Any broker that speaks the protocol will do. Spark reads slices of it through its connector and streams through
`spark.source`; options and clients are in `kafka_client`, topics in `kafka_topics`, cursors in `kafka_read`.
"""

from __future__ import annotations

import time as timer
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle

from headrace.config.hidden_table import Hidden
from headrace.errors import DataError, MachineError
from headrace.log.base import LogBase
from headrace.log.kafka.append import Appender
from headrace.log.kafka.client import DELIVERY, TIMEOUT, KafkaClients, require
from headrace.log.kafka.positions import KafkaPositions
from headrace.log.kafka.read import Cursor, Cursors
from headrace.log.kafka.topics import KafkaTopics
from headrace.log.partitioner import route
from headrace.log.pending_append import Appended, Appending
from headrace.log.protocol import READ_BYTES, Offsets
from headrace.log.record import Message, Position, Record, sizes
from headrace.log.topic import FOREVER, Retention, Topic, check_limit, check_name, check_offset, unknown
from headrace.plural import show_count

OVERHEAD = 256
"""Bytes that a batch and a record add around a message, generously."""
NAP = 0.002


class KafkaLog(LogBase):
    """A log in a Kafka cluster.

    Parameters
    ----------
    brokers
        "host:port", several with commas.
    options
        Properties of librdkafka, as in [kafka.options]. No value of them is ever shown.
    spark_options
        What Spark's connector needs beside, as in [kafka.spark_options]; kept for `spark.records`.
    timeout
        Seconds within which a broker answers, or is called unreachable.
    delivery
        Seconds an append is tried for.

    Examples
    --------
    >>> KafkaLog("127.0.0.1:9092", {"sasl.password": "x"})
    KafkaLog('127.0.0.1:9092')
    """

    def __init__(
        self,
        brokers: str,
        options: Mapping[str, str] | None = None,
        spark_options: Mapping[str, str] | None = None,
        *,
        timeout: float = TIMEOUT,
        delivery: float = DELIVERY,
    ) -> None:
        require()
        self.brokers, self.options, self.spark_options = brokers, Hidden(options or {}), Hidden(spark_options or {})
        client = KafkaClients(brokers, self.options, timeout=timeout)
        self._timeout = timeout
        self._topics, self._places = KafkaTopics(client), KafkaPositions(client)
        self._appender, self._cursors = Appender(client, delivery=delivery), Cursors(client)
        self._keyless = 0

    def __repr__(self) -> str:
        return f"KafkaLog({self.brokers!r})"

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        compacted: bool = False,
        retention: Retention = FOREVER,
        arrival: str = "log",
    ) -> Topic:
        """See `Log.create_topic`. Ages are kept in whole milliseconds, rounded up."""
        return self._topics.create(Topic(name, partitions, compacted, retention, arrival))

    def topics(self) -> dict[str, Topic]:
        """See `Log.topics`."""
        return self._topics.all()

    def append_batch(self, topic: str, messages: Sequence[Message], *, partition: int | None = None) -> list[Position]:
        """See `Log.append_batch`, and above for what a failure leaves behind."""
        return self._begun(topic, messages, partition).positions()

    def begin_batch(self, topic: str, messages: Sequence[Message]) -> Appending:
        """See `Log.begin_batch`."""
        return self._begun(topic, messages, None)

    def _begun(self, topic: str, messages: Sequence[Message], partition: int | None) -> Appending:
        form = self._topic(topic)
        if partition is not None:
            form.check_partition(partition)
        self._check_sizes(form, sizes(messages, compacted=form.compacted))
        if not messages:
            return Appended([])
        if partition is None:
            self._keyless = (self._keyless + 1) % form.partitions
            routes = route(messages, form.partitions, keyless=self._keyless)
        else:
            routes = {partition: list(range(len(messages)))}
        return self._appender.begin(topic, messages, routes)

    def _check_sizes(self, form: Topic, found: Sequence[int]) -> None:
        largest = self._topics.largest(form.name)
        if max(found, default=0) + OVERHEAD > largest:
            hint = "Raise the topic's `max.message.bytes`, or send less in one message."
            message = f"Topic {form.name!r} takes no message of that size."
            got = f"{show_count(max(found), 'byte')}; the topic takes {largest:,}"
            raise DataError("bad-message", message, got=got, hint=hint)

    def read(
        self, topic: str, partition: int, offset: int, *, limit: int = 1000, max_bytes: int = READ_BYTES
    ) -> list[Record]:
        """See `Log.read`. Empty also before an end that only marks of transactions are left up to."""
        check_limit(limit)
        form = self._topic(topic)
        form.check_partition(partition)
        with self._cursors.at(topic, partition, offset) as cursor:
            return self._read(cursor, form, partition, offset, limit, max_bytes)

    def peek(self, topic: str, partition: int, offset: int, *, limit: int = 1) -> list[Record]:
        """See `Log.peek`. A cursor that stayed would be handed all that comes, whether anybody wants it or not."""
        check_limit(limit)
        form = self._topic(topic)
        form.check_partition(partition)
        with self._cursors.anywhere() as cursor:
            found = self._read(cursor, form, partition, offset, limit, READ_BYTES)
            cursor.leave()
            return found

    def _read(
        self, cursor: Cursor, form: Topic, partition: int, offset: int, limit: int, max_bytes: int
    ) -> list[Record]:
        near = cursor.near(form.name, partition, offset)
        if near:
            cursor.advance(offset)
            if cursor.fetch(limit, 0):
                return cursor.take(limit, max_bytes)
        end = self._end(form, partition, offset, gone=not near)
        if not near:
            cursor.move(form.name, partition, offset)
        deadline = timer.monotonic() + self._timeout
        while cursor.looked < end and not cursor.fetch(limit, 0.05):
            if timer.monotonic() > deadline:
                message = "The Kafka brokers do not hand out records that are there."
                where = f"{form.name}/{partition}/{offset}"
                hint = "Look at the brokers' logs, and whether all partitions have a leader."
                raise MachineError("log-unreachable", message, got=self.brokers, where=where, hint=hint)
        return cursor.take(limit, max_bytes)

    def _end(self, form: Topic, partition: int, offset: int, *, gone: bool = True) -> int:
        """The end of a partition, after checking that a position is in it; a cursor that stands there hears by itself
        when it is `gone`."""
        end = self._places.ends(form)[partition]
        start = self._places.starts(form)[partition] if gone else 0
        check_offset(form, partition, offset, start=start, end=end)
        return end

    def wait(self, positions: Mapping[str, Offsets], timeout: float) -> Mapping[str, Offsets]:
        """See `Log.wait`. Cursors stand at the positions, and the brokers hand them what comes: it is read unasked."""
        deadline = timer.monotonic() + timeout
        with ExitStack() as lent:
            cursors = [
                lent.enter_context(self._open_cursor(self._topic(topic), number, offset))
                for topic, at in positions.items()
                for number, offset in at.items()
            ]
            # Each is listened to in turn, and all are looked at in between.
            turns, patience = cycle(cursors), NAP if len(cursors) > 1 else NAP * 10
            while not (come := [cursor for cursor in cursors if cursor.fetch(1, 0)]):
                left = deadline - timer.monotonic()
                if left <= 0:
                    # What has come just before a short wait began may still be on its way to the cursor.
                    come = [cursor for topic in positions for cursor in self._beyond(topic, cursors)]
                    break
                next(turns).fetch(1, min(left, patience))
            found: dict[str, Offsets] = {}
            for cursor in come:
                number = cursor.partition
                found[cursor.topic] = {**found.get(cursor.topic, {}), number: positions[cursor.topic][number]}
            return found

    @contextmanager
    def _open_cursor(self, form: Topic, partition: int, offset: int) -> Iterator[Cursor]:
        """A cursor at an offset."""
        form.check_partition(partition)
        with self._cursors.at(form.name, partition, offset) as cursor:
            if cursor.near(form.name, partition, offset):
                cursor.advance(offset)
            else:
                self._end(form, partition, offset)
                cursor.move(form.name, partition, offset)
            yield cursor

    def _beyond(self, topic: str, cursors: Sequence[Cursor]) -> list[Cursor]:
        """The cursors of a topic that have not come to its end."""
        ends = self._places.ends(self._topic(topic))
        return [cursor for cursor in cursors if cursor.topic == topic and ends[cursor.partition] > cursor.looked]

    def start_offsets(self, topic: str) -> dict[int, int]:
        """See `Log.start_offsets`."""
        return self._places.starts(self._topic(topic))

    def end_offsets(self, topic: str) -> dict[int, int]:
        """See `Log.end_offsets`."""
        return self._places.ends(self._topic(topic))

    def offset_at(self, topic: str, time: int) -> dict[int, int]:
        """See `Log.offset_at`. Arrival is in milliseconds: within one, all records came at once."""
        return self._places.at(self._topic(topic), time)

    def commit(self, group: str, topic: str, offsets: Offsets) -> None:
        """See `Log.commit`. They are the offsets of a Kafka group that has no members."""
        check_name(group, "group")
        form = self._topic(topic)
        for number in offsets:
            form.check_partition(number)
        ends = self._places.ends(form)
        for number, offset in offsets.items():
            check_offset(form, number, offset, start=0, end=ends[number])
        if offsets:
            self._places.commit(group, topic, offsets)

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """See `Log.committed`."""
        return self._places.committed(group, self._topic(topic))

    def clean(self, topic: str) -> None:
        """See `Log.clean`: the brokers do it in their own time, by the settings the topic was created with."""
        self._topic(topic)

    def close(self) -> None:
        """See `Log.close`."""
        self._appender.close()
        self._cursors.close()

    def _topic(self, name: str) -> Topic:
        check_name(name, "topic")
        found = self._topics.find(name)
        if found is None:
            raise unknown(name, self._topics.names())
        return found
