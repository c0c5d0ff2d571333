"""Topics in Kafka: created as Headrace needs them, described in its words.

Records are not touched here; offsets are the business of `kafka_places`. A topic is made with the log's own append time
(or, for a stream that says so, the producers' time), its retention and its compaction; how many copies there are, and
how many must be in step, is left to the cluster.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping

from headrace.clock import MILLISECOND
from headrace.errors import HeadraceError, MachineError
from headrace.log.kafka.client import KafkaClients
from headrace.log.kafka.positions import KafkaPositions
from headrace.log.topic import TOMBSTONE_AGE, Retention, Topic, agree

REMEMBERED = 10.0
"""Seconds a description of a topic is taken for true: others may change it, and asking costs a round trip."""
# So that compaction keeps up: a segment that is written to is never compacted. At a tenth of dirt instead of a half a
# byte would be rewritten ten times instead of about twice.
_COMPACTED = {"segment.ms": "600000", "segment.bytes": "67108864", "min.cleanable.dirty.ratio": "0.5"}
_POLICY, _AGE, _SIZE, _TOMBSTONES = "cleanup.policy", "retention.ms", "retention.bytes", "delete.retention.ms"
_STAMP, _LARGEST = "message.timestamp.type", "max.message.bytes"
_STAMPS = {"log": "LogAppendTime", "producer": "CreateTime"}


class KafkaTopics:
    """What is known of a cluster's topics."""

    def __init__(self, client: KafkaClients) -> None:
        self._client = client
        self._known: dict[str, tuple[float, Topic, int]] = {}

    def create(self, topic: Topic) -> Topic:
        """Create a topic, or agree that it is there; a new retention replaces the old one."""
        from confluent_kafka import KafkaError
        from confluent_kafka.admin import NewTopic

        topic = _kafka_topic(topic)
        existing = self.find(topic.name)
        if existing is None:
            config = _config(topic) | (_COMPACTED if topic.compacted else {})
            wanted = NewTopic(topic.name, topic.partitions, -1, config=config)
            told = self._client.admin().create_topics([wanted], request_timeout=self._client.timeout)
            what = f"Creating topic {topic.name!r}"
            self._client.answer(told[topic.name], what, fine=KafkaError.TOPIC_ALREADY_EXISTS)
            existing = self._appeared(topic)
        agree(existing, topic)
        if existing.retention != topic.retention:
            self._retain(topic)
        return topic

    def _appeared(self, topic: Topic) -> Topic:
        """A topic that was just created, as soon as all its partitions take records."""
        deadline = time.monotonic() + self._client.timeout
        while time.monotonic() < deadline:
            found = self.find(topic.name)
            if found is not None:
                with contextlib.suppress(HeadraceError):
                    KafkaPositions(self._client).ends(found)
                    return found
            time.sleep(0.02)
        message = f"Topic {topic.name!r} was created and cannot be used."
        hint = "Look at the brokers' logs, and whether the topic has a leader."
        raise MachineError("log-unreachable", message, got=f"no leader within {self._client.timeout:.0f} s", hint=hint)

    def _retain(self, topic: Topic) -> None:
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

        changed = (_AGE, _SIZE, _TOMBSTONES, _POLICY)
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in _config(topic).items()
            if name in changed
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic.name, incremental_configs=entries)
        told = self._client.admin().incremental_alter_configs([resource], request_timeout=self._client.timeout)
        self._client.answer(told[resource], f"Changing the retention of topic {topic.name!r}")
        self._known.pop(topic.name, None)

    def all(self) -> dict[str, Topic]:
        """Every topic that Headrace could have made; those of Kafka itself, and others it cannot name, are left out."""
        counts = self._counts()
        self._describe({name: count for name, count in counts.items() if not self._fresh(name)})
        return {name: self._known[name][1] for name in sorted(counts) if name in self._known}

    def find(self, name: str) -> Topic | None:
        """A topic as it is in the cluster, or None."""
        from confluent_kafka import KafkaError, TopicCollection

        if not self._fresh(name):
            self._known.pop(name, None)
            asked = TopicCollection([name])
            told = self._client.admin().describe_topics(asked, request_timeout=self._client.timeout)
            what = f"Describing topic {name!r}"
            found = self._client.answer(told[name], what, fine=KafkaError.UNKNOWN_TOPIC_OR_PART)
            if found is not None:
                self._describe({name: len(found.partitions)})
        return self._known[name][1] if name in self._known else None

    def names(self) -> list[str]:
        """The names of all topics."""
        return sorted(self._counts())

    def largest(self, name: str) -> int:
        """The largest batch of records that a topic takes, in bytes."""
        return self._known[name][2]

    def _fresh(self, name: str) -> bool:
        return name in self._known and time.monotonic() - self._known[name][0] < REMEMBERED

    def _counts(self) -> dict[str, int]:
        from confluent_kafka import KafkaException

        try:
            told = self._client.admin().list_topics(timeout=self._client.timeout).topics
        except KafkaException as error:
            raise self._client.failure(error.args[0], "Listing topics") from None
        return {name: len(found.partitions) for name, found in told.items() if not name.startswith("__")}

    def _describe(self, counts: Mapping[str, int]) -> None:
        from confluent_kafka import KafkaError
        from confluent_kafka.admin import ConfigResource

        if not counts:
            return
        asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in counts]
        told = self._client.admin().describe_configs(asked, request_timeout=self._client.timeout)
        for resource, future in told.items():
            name = resource.name
            # Deleted since it was listed.
            found = self._client.answer(future, f"Describing topic {name!r}", fine=KafkaError.UNKNOWN_TOPIC_OR_PART)
            if found is None:
                continue
            config = {entry.name: entry.value for entry in found.values()}
            with contextlib.suppress(HeadraceError):
                described = _described(name, counts[name], config)
                self._known[name] = (time.monotonic(), described, int(config.get(_LARGEST, "1048588")))


def _kafka_topic(topic: Topic) -> Topic:
    """A topic as Kafka can keep it: in whole milliseconds."""
    asked = topic.retention
    age = None if asked.age is None else _milliseconds(asked.age) * MILLISECOND
    tombstones = _milliseconds(asked.tombstone_age) * MILLISECOND if topic.compacted else TOMBSTONE_AGE
    return Topic(topic.name, topic.partitions, topic.compacted, Retention(age, asked.size, tombstones), topic.arrival)


def _milliseconds(micros: int) -> int:
    return -(-micros // MILLISECOND)


def _config(topic: Topic) -> dict[str, str]:
    asked = topic.retention
    policy = ("compact" if asked.age is None else "compact,delete") if topic.compacted else "delete"
    made = {
        _STAMP: _STAMPS[topic.arrival],
        _POLICY: policy,
        _AGE: str(-1 if asked.age is None else _milliseconds(asked.age)),
        _SIZE: str(-1 if asked.size is None else asked.size),
    }
    return made | ({_TOMBSTONES: str(_milliseconds(asked.tombstone_age))} if topic.compacted else {})


def _described(name: str, partitions: int, config: Mapping[str, str]) -> Topic:
    compacted = "compact" in config[_POLICY]
    kept = not compacted or "delete" in config[_POLICY]
    age, size = int(config[_AGE]), int(config[_SIZE])
    retention = Retention(
        age=age * MILLISECOND if kept and age >= 0 else None,
        size=size if not compacted and size >= 0 else None,
        tombstone_age=int(config[_TOMBSTONES]) * MILLISECOND if compacted else TOMBSTONE_AGE,
    )
    arrival = "log" if config[_STAMP] == _STAMPS["log"] else "producer"
    return Topic(name, partitions, compacted, retention, arrival)
