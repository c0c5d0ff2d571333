"""Appending to Kafka: handed to the producer, waited for, and told where it went.

The producer is idempotent with acks=all: what it sends again after a lost answer is kept once and in order. One thread
takes its reports; whoever appends waits for its own. A producer that has failed for good is replaced by a new one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError, MachineError
from headrace.log.kafka_client import DELIVERY, Client
from headrace.log.record import Message, Position

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer
    from confluent_kafka import Message as Report

REPORTS = 0.1
"""Seconds the thread waits for a report before it looks whether it should end; a report wakes it at once."""


class Appender:
    """Appends for one log, from any number of threads."""

    def __init__(self, client: Client, *, delivery: float = DELIVERY) -> None:
        self._client, self._delivery = client, delivery
        self._producer: Producer | None = None
        self._thread: threading.Thread | None = None
        self._acquainted: set[str] = set()
        self._changing = threading.Lock()
        self._closed = threading.Event()

    def append(self, topic: str, messages: Sequence[Message], routes: Mapping[int, Sequence[int]]) -> list[Position]:
        """Append messages to the partitions they are routed to; where each went, when all are acknowledged."""
        producer = self._running(topic)
        wanted = _Batch(len(messages))
        deadline = time.monotonic() + self._delivery
        for partition, indices in routes.items():
            for index in indices:
                self._hand_over(producer, topic, partition, messages[index], wanted, index, deadline)
        # The library gives up by itself; the rest is for its last reports to come through.
        if not wanted.done.wait(self._delivery + self._client.timeout):
            message = "An append was neither acknowledged nor refused."
            raise MachineError("log-unreachable", message, got=wanted.counted())
        if wanted.error is not None:
            raise self._failed(producer, wanted.error, wanted)
        return [wanted.places[index] for index in range(len(messages))]

    def _hand_over(
        self,
        producer: Producer,
        topic: str,
        partition: int,
        message: Message,
        wanted: _Batch,
        index: int,
        deadline: float,
    ) -> None:
        from confluent_kafka import KafkaException

        def report(error: KafkaError | None, sent: Report) -> None:
            wanted.report(index, error, sent)

        while True:
            try:
                producer.produce(
                    topic,
                    message.value,
                    message.key,
                    partition=partition,
                    on_delivery=report,
                    headers=list(message.headers) if message.headers else None,
                )
                return
            except BufferError:
                # The queue is bounded: wait until something of it has left.
                if time.monotonic() > deadline:
                    text = "The Kafka brokers take records more slowly than they are appended."
                    raise MachineError("log-unreachable", text, got=wanted.counted()) from None
                time.sleep(0.005)
            except KafkaException as error:
                raise self._failed(producer, error.args[0], wanted) from None

    def _failed(self, producer: Producer, error: KafkaError, wanted: _Batch) -> HeadraceError:
        if error.fatal():
            with self._changing:
                if self._producer is producer:
                    self._producer = None
        failure = self._client.failure(error, "Appending to Kafka")
        failure.got = f"{wanted.counted()}; {failure.got}"
        return failure

    def _running(self, topic: str) -> Producer:
        from confluent_kafka import KafkaException

        with self._changing:
            if self._producer is None:
                self._producer = self._client.producer(self._delivery)
                self._acquainted.clear()
                self._closed.clear()
                self._thread = threading.Thread(target=self._take_reports, args=[self._producer], daemon=True)
                self._thread.start()
            producer = self._producer
        if topic not in self._acquainted:
            # Left to itself the library learns where a topic is half a second later.
            try:
                producer.list_topics(topic, timeout=self._client.timeout)
            except KafkaException as error:
                raise self._client.failure(error.args[0], "Appending to Kafka") from None
            self._acquainted.add(topic)
        return producer

    def _take_reports(self, producer: Producer) -> None:
        while not self._closed.is_set() and (self._producer is producer or len(producer)):
            producer.poll(REPORTS)

    def close(self) -> None:
        """Let what is under way arrive, and give the producer back."""
        with self._changing:
            producer, thread, self._producer = self._producer, self._thread, None
        if producer is not None and thread is not None:
            producer.flush(self._client.timeout)
            self._closed.set()
            thread.join()


class _Batch:
    """The reports that one append waits for."""

    def __init__(self, size: int) -> None:
        self.size, self.left = size, size
        self.places: dict[int, Position] = {}
        self.error: KafkaError | None = None
        self.done = threading.Event()

    def report(self, index: int, error: KafkaError | None, sent: Report) -> None:
        if error is not None:
            self.error = self.error or error
        else:
            self.places[index] = Position(sent.partition() or 0, sent.offset() or 0)
        self.left -= 1
        if self.left == 0:
            self.done.set()

    def counted(self) -> str:
        return f"{len(self.places)} of {self.size} messages acknowledged"
