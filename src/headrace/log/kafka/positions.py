"""Places in Kafka's topics: where partitions start and end, what arrived when, where groups of readers go on.

Asked of the brokers each time, in one request for all partitions; no group is joined for it. Only what is committed
counts: the records of a transaction that is still open come after the end.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from headrace.clock import MILLISECOND
from headrace.log.kafka.client import KafkaClients
from headrace.log.protocol import Offsets
from headrace.log.topic import Topic

if TYPE_CHECKING:
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, TopicPartition
    from confluent_kafka.admin import OffsetSpec

Answer = TypeVar("Answer")
RETRY = 0.1
NOTHING = -1
"""What a broker answers when nothing arrived that late."""


class KafkaPositions:
    """Offsets of a cluster's topics."""

    def __init__(self, client: KafkaClients) -> None:
        self._client = client

    def starts(self, topic: Topic) -> dict[int, int]:
        """The first offset of each partition."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(topic, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def ends(self, topic: Topic) -> dict[int, int]:
        """The offset after the last record of each partition that readers may see."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(topic, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def at(self, topic: Topic, moment: int) -> dict[int, int]:
        """For each partition the first offset that arrived at a moment or later, else its end."""
        from confluent_kafka.admin import OffsetSpec

        # Ends first: a record that comes between the two questions is then found by the second, or not passed.
        ends = self.ends(topic)
        found = self._offsets(topic, OffsetSpec.for_timestamp(max(0, -(-moment // MILLISECOND))))
        return {number: offset if offset >= 0 else ends[number] for number, offset in found.items()}

    def _offsets(self, topic: Topic, spec: OffsetSpec) -> dict[int, int]:
        from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition

        asked = {TopicPartition(topic.name, number): spec for number in range(topic.partitions)}

        def ask() -> dict[int, int]:
            told = self._client.admin().list_offsets(
                asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=self._client.timeout
            )
            found = {place.partition: future.result(self._client.timeout + 5).offset for place, future in told.items()}
            if any(offset < NOTHING for offset in found.values()):
                # The client gives this instead of an error when the connection broke on the way.
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
            return found

        return dict(sorted(self._ask_until_answered(ask, f"Asking for the offsets of topic {topic.name!r}").items()))

    def _ask_until_answered(self, ask: Callable[[], Answer], what: str) -> Answer:
        """Ask until there is an answer: while a partition or a group changes brokers, there is none for a moment."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self._client.timeout
        while True:
            try:
                return ask()
            except KafkaException as error:
                reason = error.args[0]
                if not (reason.retriable() or reason.code() in _moving(reason)) or time.monotonic() > deadline:
                    raise self._client.failure(reason, what) from None
            # The client does not look again by itself when what it remembers of the cluster turns out to be old.
            with contextlib.suppress(KafkaException):
                self._client.admin().list_topics(timeout=self._client.timeout)
            time.sleep(RETRY)

    def commit(self, group: str, topic: str, offsets: Offsets) -> None:
        """Keep a group's offsets, without joining it."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        places = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
        asked = [ConsumerGroupTopicPartitions(group, places)]

        def ask() -> list[TopicPartition]:
            told = self._client.admin().alter_consumer_group_offsets(asked, request_timeout=self._client.timeout)
            return _require_all(told[group].result(self._client.timeout + 5))

        self._ask_until_answered(ask, f"Committing the offsets of group {group!r}")

    def committed(self, group: str, topic: Topic) -> dict[int, int]:
        """A group's offsets; partitions it never committed are left out."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        places = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        asked = [ConsumerGroupTopicPartitions(group, places)]

        def ask() -> list[TopicPartition]:
            told = self._client.admin().list_consumer_group_offsets(asked, request_timeout=self._client.timeout)
            return _require_all(told[group].result(self._client.timeout + 5))

        found = self._ask_until_answered(ask, f"Asking for the offsets of group {group!r}")
        return {place.partition: place.offset for place in sorted(found) if place.offset >= 0}


def _require_all(told: ConsumerGroupTopicPartitions) -> list[TopicPartition]:
    """The partitions of an answer, if none of them failed."""
    from confluent_kafka import KafkaException

    places = told.topic_partitions or []
    for place in places:
        if place.error is not None:
            raise KafkaException(place.error)
    return places


def _moving(error: KafkaError) -> tuple[int, ...]:
    return (
        error._NOENT,
        error._WAIT_COORD,
        error.LEADER_NOT_AVAILABLE,
        error.NOT_LEADER_FOR_PARTITION,
        error.FENCED_LEADER_EPOCH,
        error.UNKNOWN_LEADER_EPOCH,
        error.OFFSET_NOT_AVAILABLE,
        error.COORDINATOR_LOAD_IN_PROGRESS,
        error.COORDINATOR_NOT_AVAILABLE,
        error.NOT_COORDINATOR,
        error._UNKNOWN_PARTITION,
    )
