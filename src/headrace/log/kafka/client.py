"""One connection to a Kafka cluster: its options, its clients made when they are needed, its failures in our words.

Options are librdkafka's own, passed through; what Headrace's promises rest on comes last and cannot be overridden. No
value of an option is ever shown: whatever a broker or the client library says passes through `KafkaClients.hidden`
first.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import ConfigError, DataError, HeadraceError, MachineError, shown
from headrace.log.record import LARGEST_MESSAGE

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

TIMEOUT = 10.0
"""Seconds within which a broker answers, or is called unreachable."""
DELIVERY = 30.0
"""Seconds an append is tried for, over broker restarts and elections."""
SECRET = ("password", "secret", "key", "token", "jaas", "credential", "pem", "oauth")

_QUIET = {"log_level": 2, "client.id": "headrace", "reconnect.backoff.max.ms": 1000}
_PRODUCER = {"linger.ms": 1, "queue.buffering.max.kbytes": 256 * 1024}
_PROMISES = {"enable.idempotence": True, "acks": "all", "message.max.bytes": LARGEST_MESSAGE + 1024 * 1024}
# A fetch that waits for records holds up the next one of that connection, so it waits only a little.
_CONSUMER = {"fetch.wait.max.ms": 25, "queued.max.messages.kbytes": 16 * 1024, "fetch.error.backoff.ms": 50}
_POSITIONS = {
    "group.id": "headrace",
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "allow.auto.create.topics": False,
    "message.max.bytes": LARGEST_MESSAGE + 1024 * 1024,
}
# librdkafka has options that some kinds of client do not take: each client gets its own.
_ONLY_PRODUCER = ("linger.ms", "compression.", "batch.", "queue.buffering.", "partitioner", "delivery.", "sticky.")
_ONLY_CONSUMER = ("fetch.", "queued.", "check.crcs", "session.", "max.poll.", "heartbeat.")


class KafkaClients:
    """The clients of one cluster, each made when it is first needed.

    Parameters
    ----------
    brokers
        "host:port", several with commas.
    options
        Properties of librdkafka, for all clients alike.
    """

    def __init__(self, brokers: str, options: Mapping[str, str], *, timeout: float = TIMEOUT) -> None:
        self.brokers, self.timeout = brokers, timeout
        self._options = dict(options)
        self._admin: AdminClient | None = None
        self._making = threading.Lock()
        self._said = ""

    def admin(self) -> AdminClient:
        """The client that asks about topics, offsets and groups."""
        with self._making:
            if self._admin is None:
                from confluent_kafka.admin import AdminClient

                self._admin = self._make_client(AdminClient, self._shared(_ONLY_PRODUCER + _ONLY_CONSUMER))
            return self._admin

    def producer(self, delivery: float = DELIVERY) -> Producer:
        """A new client that appends: each record once, acknowledged by all that must have it."""
        from confluent_kafka import Producer

        sent = {"message.timeout.ms": int(delivery * 1000)}
        made: Producer = self._make_client(Producer, _PRODUCER | sent | self._shared(_ONLY_CONSUMER) | _PROMISES)
        return made

    def consumer(self) -> Consumer:
        """A new client that reads what it is told to, and joins no group."""
        from confluent_kafka import Consumer

        made: Consumer = self._make_client(Consumer, _CONSUMER | self._shared(_ONLY_PRODUCER) | _POSITIONS)
        return made

    def _shared(self, without: tuple[str, ...]) -> dict[str, Any]:
        own = {name: value for name, value in self._options.items() if not name.startswith(without)}
        return _QUIET | own | {"bootstrap.servers": self.brokers, "error_cb": self._hear}

    def _make_client(self, kind: Any, options: dict[str, Any]) -> Any:
        from confluent_kafka import KafkaException

        try:
            return kind(options)
        except KafkaException as error:
            hint = "See [kafka.options] in headrace.toml; its names are those of librdkafka."
            got = shown(self.hidden(error.args[0].str()), 200)
            raise ConfigError("bad-setting", "The Kafka client refuses an option.", got=got, hint=hint) from None

    def _hear(self, error: KafkaError) -> None:
        # The first word after a silence says most: later ones are "all brokers are down".
        if error.code() != error._ALL_BROKERS_DOWN or not self._said:
            self._said = self.hidden(error.str())

    def hidden(self, text: str) -> str:
        """A text without the value of any option that could be a secret."""
        for name, value in self._options.items():
            if any(word in name for word in SECRET) and value:
                text = text.replace(str(value), "***")
        return text

    def answer(self, future: Future[Any], what: str, *, fine: int | None = None) -> Any:
        """What a broker answered; None for the one error that is fine."""
        from confluent_kafka import KafkaException

        try:
            # The request has its own timeout; this one is only there in case the library forgets it.
            return future.result(self.timeout + 5)
        except KafkaException as error:
            if fine is not None and error.args[0].code() == fine:
                return None
            raise self.failure(error.args[0], what) from None

    def failure(self, error: KafkaError, what: str) -> HeadraceError:
        """An error of the client library as Headrace says it; `what` is the sentence's beginning."""
        text = self.hidden(error.str())
        if error.code() in (error.MSG_SIZE_TOO_LARGE, error.RECORD_LIST_TOO_LARGE):
            hint = "Raise the topic's `max.message.bytes`, or send less in one message."
            return DataError("bad-message", "The broker takes no message of that size.", got=shown(text), hint=hint)
        if error.code() in _denied(error):
            hint = "Give the user of [kafka.options] the right to do it."
            return MachineError("log-failed", f"{what} is not allowed.", got=shown(text, 200), hint=hint)
        if error.code() in _silent(error):
            with self._making:
                if self._admin is not None:
                    # What happened to its connections is told only to whoever asks.
                    self._admin.poll(0)
            said = f"{self.brokers}: {self._said or text}"
            hint = "Check kafka.brokers and [kafka.options]; for a local broker see `headrace kafka status`."
            message = "The Kafka brokers do not answer."
            return MachineError("log-unreachable", message, got=shown(said, 300), hint=hint)
        return MachineError("log-failed", f"{what} failed.", got=shown(text, 300))


def _denied(error: KafkaError) -> tuple[int, ...]:
    return (
        error.TOPIC_AUTHORIZATION_FAILED,
        error.GROUP_AUTHORIZATION_FAILED,
        error.CLUSTER_AUTHORIZATION_FAILED,
        error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )


def _silent(error: KafkaError) -> tuple[int, ...]:
    return (
        error._TRANSPORT,
        error._TIMED_OUT,
        error._MSG_TIMED_OUT,
        error._TIMED_OUT_QUEUE,
        error._ALL_BROKERS_DOWN,
        error._RESOLVE,
        error._AUTHENTICATION,
        error._SSL,
        error.REQUEST_TIMED_OUT,
        error.LEADER_NOT_AVAILABLE,
        error.COORDINATOR_NOT_AVAILABLE,
        error.SASL_AUTHENTICATION_FAILED,
    )


def require() -> None:
    """Refuse to go on without the package that speaks to Kafka."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        hint = "Install it: `pip install 'headrace[kafka]'`."
        message = "The log is Kafka, and the package confluent-kafka is not installed."
        raise MachineError("missing-package", message, hint=hint) from None


def answers(brokers: str, options: Mapping[str, str] | None = None, *, within: float = 2.0) -> bool:
    """Whether a broker answers a metadata request.

    >>> answers("127.0.0.1:1", within=0.05)
    False
    """
    from confluent_kafka import KafkaException

    try:
        return bool(KafkaClients(brokers, options or {}).admin().list_topics(timeout=within).brokers)
    except KafkaException:
        return False
