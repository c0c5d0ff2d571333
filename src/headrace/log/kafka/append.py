"""Appending to Kafka: handed to the producer, waited for, and told where it went.

The producer is idempotent with acks=all: what it sends again after a lost answer is kept once and in order. One thread
takes its reports; whoever appends waits for its own, or looks whether they have come. A producer that has failed for
good is replaced by a new one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError, MachineError
from headrace.log.kafka.client import DELIVERY, KafkaClients
from headrace.log.record import Message, Position
from headrace.plural import show_count

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer
    from confluent_kafka import Message as Report

REPORTS = 0.1
"""Seconds the thread waits for a report before it looks whether it should end; a report wakes it at once."""


class Appender:
    """Appends for one log, from any number of threads."""

    def __init__(self, client: KafkaClients, *, delivery: float = DELIVERY) -> None:
        self._client, self._delivery = client, delivery
        self._producer: Producer | None = None
        self._thread: threading.Thread | None = None
        self._acquainted: set[str] = set()
        self._changing = threading.Lock()
        self._closed = threading.Event()

    def begin(self, topic: str, messages: Sequence[Message], routes: Mapping[int, Sequence[int]]) -> DeliveryReports:
        """Hand messages to the producer, for the partitions they are routed to."""
        producer = self._running(topic)

        def failed(error: KafkaError) -> HeadraceError:
            return self._failed(producer, error, batch)

        # The library gives up by itself; the rest is for its last reports to come through.
        batch = DeliveryReports(len(messages), self._delivery + self._client.timeout, failed)
        deadline = time.monotonic() + self._delivery
        for partition, indices in routes.items():
            for index in indices:
                self._hand_over(producer, topic, partition, messages[index], batch, index, deadline)
        return batch

    def _hand_over(
        self,
        producer: Producer,
        topic: str,
        partition: int,
        message: Message,
        wanted: DeliveryReports,
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
                    hint = "Send more slowly, or look at the load of the brokers."
                    raise MachineError("log-unreachable", text, got=wanted.counted(), hint=hint) from None
                time.sleep(0.005)
            except KafkaException as error:
                raise self._failed(producer, error.args[0], wanted) from None

    def _failed(self, producer: Producer, error: KafkaError, wanted: DeliveryReports) -> HeadraceError:
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


class DeliveryReports:
    """Messages that were handed over together, and the reports that have come of them.

    Parameters
    ----------
    patience
        Seconds to wait for the last report.
    failed
        Makes the error of one that says that a message was not kept.
    """

    def __init__(self, size: int, patience: float, failed: Callable[[KafkaError], HeadraceError]) -> None:
        self.size, self._left, self._patience, self._failed = size, size, patience, failed
        self._places: dict[int, Position] = {}
        self._error: KafkaError | None = None
        self._done = threading.Event()

    @property
    def over(self) -> bool:
        """Whether all reports have come."""
        return self._done.is_set()

    def positions(self) -> list[Position]:
        """Where each message went, when all are acknowledged."""
        if not self._done.wait(self._patience):
            message = "An append was neither acknowledged nor refused."
            hint = "Look at the brokers' logs; records may have been appended."
            raise MachineError("log-unreachable", message, got=self.counted(), hint=hint)
        if self._error is not None:
            raise self._failed(self._error)
        return [self._places[index] for index in range(self.size)]

    def report(self, index: int, error: KafkaError | None, sent: Report) -> None:
        """Take a report."""
        if error is not None:
            self._error = self._error or error
        else:
            self._places[index] = Position(sent.partition() or 0, sent.offset() or 0)
        self._left -= 1
        if self._left == 0:
            self._done.set()

    def counted(self) -> str:
        """How many were acknowledged."""
        return f"{len(self._places)} of {show_count(self.size, 'message')} acknowledged"
