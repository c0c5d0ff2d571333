"""What is Kafka's own about the Kafka log: brokers that die, clean up by themselves, want passwords, or are not there.

What every log does is in `test_conformance`.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from headrace.clock import SECOND
from headrace.errors import HeadraceError
from headrace.log import Message, Retention, follow
from headrace.log.kafka.log import KafkaLog
from headrace.log.topic import Topic
from headrace.processes import broker
from tests.log.test_conformance import all_records, values
from tests.processes.cluster import PASSWORD, free_ports

pytestmark = pytest.mark.kafka

_numbers = itertools.count()


@pytest.fixture
def topic() -> str:
    return f"own-{next(_numbers)}"


def refused(action: Callable[[], object]) -> HeadraceError:
    with pytest.raises(HeadraceError) as caught:
        action()
    return caught.value


def eventually(look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not look():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def threads(pid: int) -> Iterator[str]:
    """The state of each thread of a process, as Linux tells it: T is stopped."""
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        yield stat.read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def admin(kafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.brokers})


def configure(admin: AdminClient, topic: str, **settings: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(30)


def settings_of(admin: AdminClient, topic: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    return {entry.name: entry.value for entry in admin.describe_configs([resource])[resource].result(30).values()}


# topics


def test_a_topic_is_made_with_the_brokers_append_time_and_its_retention(kafka_log, admin, topic):
    kafka_log.create_topic(topic, partitions=2, retention=Retention(age=90 * SECOND, size=10_000))
    made = settings_of(admin, topic)
    wanted = {
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": "90000",
        "retention.bytes": "10000",
        "cleanup.policy": "delete",
    }
    assert {name: made[name] for name in wanted} == wanted


def test_a_compacted_topic_is_made_so_that_compaction_keeps_up(kafka_log, admin, topic):
    kafka_log.create_topic(topic, compacted=True, retention=Retention(tombstone_age=5 * SECOND))
    made = settings_of(admin, topic)
    assert (made["cleanup.policy"], made["delete.retention.ms"], made["segment.ms"]) == ("compact", "5000", "600000")


def test_a_topic_that_others_made_is_described_with_whose_clock_it_keeps(kafka_log, admin, topic):
    config = {"message.timestamp.type": "CreateTime", "retention.ms": "7000"}
    admin.create_topics([NewTopic(topic, 3, 1, config=config)])[topic].result(30)
    eventually(lambda: topic in kafka_log.topics())
    assert kafka_log.topics()[topic] == Topic(topic, 3, False, Retention(age=7 * SECOND), "producer")


def test_a_stream_that_says_so_gets_a_topic_with_the_producers_clock(kafka_log, admin, topic):
    assert kafka_log.create_topic(topic, arrival="producer").arrival == "producer"
    assert settings_of(admin, topic)["message.timestamp.type"] == "CreateTime"


def test_an_age_is_kept_in_whole_milliseconds_rounded_up(kafka_log, topic):
    assert kafka_log.create_topic(topic, retention=Retention(age=1)).retention.age == 1_000
    assert kafka_log.topics()[topic].retention.age == 1_000


def test_processes_that_create_one_topic_at_once_agree(kafka, topic):
    def create(_: int) -> Topic:
        with KafkaLog(kafka.brokers) as log:
            return log.create_topic(topic, partitions=2)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda n: create(n).partitions, range(4)))) == 1


# appending


def test_a_batch_with_a_message_too_large_for_its_topic_is_refused_whole(kafka_log, kafka, admin, topic):
    kafka_log.create_topic(topic)
    configure(admin, topic, max_message_bytes="2000")
    with KafkaLog(kafka.brokers) as log:
        error = refused(lambda: log.append_batch(topic, [Message(b"small"), Message(b"x" * 3000)]))
        assert (error.code, error.got) == ("bad-message", "3,000 bytes; the topic takes 2,000")
        assert log.end_offsets(topic) == {0: 0}


def test_a_message_of_five_megabytes_comes_back(kafka_log, topic):
    kafka_log.create_topic(topic)
    value = os.urandom(5_000_000)
    kafka_log.append(topic, value)
    assert values(all_records(kafka_log, topic)) == [value]


def test_threads_that_append_and_read_at_once_do_not_disturb_each_other(kafka_log, topic):
    kafka_log.create_topic(topic, partitions=2)

    def work(name: int) -> list[bytes]:
        sent = [b"%d-%d" % (name, i) for i in range(20)]
        for value in sent:
            kafka_log.append(topic, value, key=value)
        assert set(sent) <= set(values(all_records(kafka_log, topic)))
        return sent

    with ThreadPoolExecutor(4) as pool:
        everything = [value for sent in pool.map(work, range(4)) for value in sent]
    assert sorted(value or b"" for value in values(all_records(kafka_log, topic))) == sorted(everything)


def test_a_closed_log_opens_again_when_it_is_used(kafka, topic):
    log = KafkaLog(kafka.brokers)
    log.create_topic(topic)
    log.append(topic, b"1")
    log.close()
    log.append(topic, b"2")
    assert values(all_records(log, topic)) == [b"1", b"2"]
    log.close()


# transactions of others


@pytest.fixture
def transaction(kafka, topic) -> Iterator[Producer]:
    producer = Producer({"bootstrap.servers": kafka.brokers, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    yield producer
    producer.flush(30)


def test_records_of_a_transaction_are_seen_when_it_is_committed_and_not_before(kafka_log, topic, transaction):
    kafka_log.create_topic(topic)
    kafka_log.append(topic, b"before")
    transaction.produce(topic, b"within", partition=0)
    transaction.flush(30)
    assert values(all_records(kafka_log, topic)) == [b"before"]
    assert kafka_log.end_offsets(topic) == {0: 1}
    transaction.commit_transaction(30)
    assert values(all_records(kafka_log, topic)) == [b"before", b"within"]


def test_the_mark_that_a_transaction_leaves_is_passed_and_not_waited_for(kafka_log, topic, transaction):
    kafka_log.create_topic(topic)
    transaction.produce(topic, b"gone", partition=0)
    transaction.flush(30)
    transaction.abort_transaction(30)
    eventually(lambda: kafka_log.end_offsets(topic) == {0: 2})
    assert kafka_log.read(topic, 0, 0) == []
    assert kafka_log.read(topic, 0, 0) == []
    assert not kafka_log.wait({topic: {0: 0}}, 0.05)
    kafka_log.append(topic, b"after")
    assert [(r.offset, r.value) for r in kafka_log.read(topic, 0, 0)] == [(2, b"after")]


# what brokers do by themselves


def test_a_position_that_the_brokers_retention_has_passed_is_an_error_and_not_a_gap(kafka_log, topic):
    kafka_log.create_topic(topic, retention=Retention(age=SECOND // 5))
    kafka_log.append(topic, b"old")
    eventually(lambda: kafka_log.start_offsets(topic) == {0: 1})
    kafka_log.append(topic, b"new")
    assert refused(lambda: kafka_log.read(topic, 0, 0)).code == "offset-out-of-range"
    assert kafka_log.clean(topic) is None


def test_the_brokers_keep_the_last_record_of_each_key_in_a_compacted_topic(kafka_log, admin, topic):
    kafka_log.create_topic(topic, compacted=True)
    configure(admin, topic, segment_ms="100", min_cleanable_dirty_ratio="0.01")
    for number in range(20):
        kafka_log.append(topic, b"%d" % number, key=b"ab"[number % 2 :][:1])

    def compacted() -> bool:
        # A segment is closed by the next append after its time.
        kafka_log.append(topic, b"last", key=b"c")
        return len([r for r in all_records(kafka_log, topic) if r.key != b"c"]) == 2

    eventually(compacted)
    kept = [(r.offset, r.key, r.value) for r in all_records(kafka_log, topic) if r.key != b"c"]
    assert kept == [(18, b"a", b"18"), (19, b"b", b"19")]
    assert kafka_log.read(topic, 0, 3)[0].offset == 18


# brokers that die, and those that are not there


@pytest.fixture(scope="module")
def mortal(tmp_path_factory) -> Iterator[Callable[[], broker.LocalBroker]]:
    """A broker that a test may kill; calling it starts the broker, again if need be."""
    folder, (port,) = tmp_path_factory.mktemp("mortal"), free_ports(1)
    # How long a broker that says nothing is taken for alive, and so how soon its successor may start.
    soon = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
    yield lambda: broker.running(folder) or broker.up(folder, port=port, properties=soon)
    broker.down(folder, grace=1)


def test_what_was_acknowledged_is_there_exactly_once_after_the_broker_was_killed(mortal):
    acknowledged: list[bytes] = []
    tailed: list[bytes | None] = []
    stop, done = threading.Event(), threading.Event()

    def append() -> None:
        for number in itertools.count():
            batch = [b"%d-%d" % (number, part) for part in range(50)]
            log.append_batch("t", [Message(value, value) for value in batch])
            acknowledged.extend(batch)
            if stop.is_set():
                return

    def tail() -> None:
        for records in follow(log, "t", {0: 0, 1: 0}, stop=lambda: done.is_set() and len(tailed) >= len(acknowledged)):
            tailed.extend(values(records))

    running = mortal()
    # Long enough for a broker to come back on a busy machine.
    with KafkaLog(running.brokers, timeout=60, delivery=60) as log, ThreadPoolExecutor(2) as pool:
        log.create_topic("t", partitions=2)
        work = [pool.submit(append), pool.submit(tail)]
        try:
            eventually(lambda: len(acknowledged) > 500)
            os.kill(running.pid, signal.SIGKILL)
            os.waitpid(running.pid, 0)
            mortal()
            before = len(acknowledged)
            eventually(lambda: len(acknowledged) > before + 500)
        except BaseException:
            done.set()
            raise
        finally:
            stop.set()
        work[0].result(60)
        done.set()
        work[1].result(60)
        found = values(all_records(log))
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found)
    assert len(tailed) == len(set(tailed))
    assert set(acknowledged) <= set(tailed)


def test_an_append_to_a_broker_that_went_silent_says_how_much_was_kept(mortal):
    running = mortal()
    with KafkaLog(running.brokers, timeout=1, delivery=2) as log:
        log.create_topic("u")
        log.append("u", b"1")
        os.kill(running.pid, signal.SIGSTOP)
        # The signal comes at once, but the broker's many threads stop one after the other.
        eventually(lambda: all(state == "T" for state in threads(running.pid)))
        try:
            error = refused(lambda: log.append_batch("u", [Message(b"2"), Message(b"3")]))
        finally:
            os.kill(running.pid, signal.SIGCONT)
    assert error.code == "log-unreachable"
    assert str(error.got).startswith("0 of 2 messages acknowledged; ")


@pytest.mark.parametrize("action", ["topics", "create_topic", "append", "read"])
def test_a_broker_that_is_not_there_is_a_clear_error_in_bounded_time(action):
    (port,) = free_ports(1)
    log = KafkaLog(f"127.0.0.1:{port}", timeout=0.5)
    arguments = {"topics": (), "create_topic": ("t",), "append": ("t", b""), "read": ("t", 0, 0)}[action]
    began = time.monotonic()
    error = refused(lambda: getattr(log, action)(*arguments))
    assert time.monotonic() - began < 5
    assert (error.code, error.exit_code) == ("log-unreachable", 3)
    assert str(port) in str(error.got)
    assert "kafka.brokers" in str(error.hint)
    log.close()


# passwords


def test_a_broker_that_wants_a_password_gets_it_and_nobody_else(kafka, topic, capfd):
    with KafkaLog(kafka.guarded, kafka.login) as log:
        log.create_topic(topic)
        log.append(topic, b"1")
        assert values(next(iter(follow(log, topic, {0: 0}, idle=5)))) == [b"1"]
        assert PASSWORD not in repr(log) + repr(vars(log))
    assert PASSWORD not in "".join(capfd.readouterr())


def test_a_wrong_password_is_a_clear_error_that_does_not_show_it(kafka, capfd):
    wrong = "wrong-2718"
    with KafkaLog(kafka.guarded, kafka.login | {"sasl.password": wrong}, timeout=2) as log:
        error = refused(log.topics)
    assert error.code == "log-unreachable"
    assert "uthentication" in str(error.got)
    assert wrong not in str(error) + "".join(capfd.readouterr())


def test_an_option_that_the_client_does_not_know_is_refused_without_its_value(kafka):
    error = refused(lambda: KafkaLog(kafka.brokers, {"sasl.pasword": "open-sesame"}).topics())
    assert (error.code, "sasl.pasword" in str(error.got), "open-sesame" in str(error)) == ("bad-setting", True, False)


def test_a_bad_value_of_a_secret_option_is_not_shown(kafka):
    login = kafka.login | {"ssl.key.pem": "no-key-at-all"}
    error = refused(lambda: KafkaLog(kafka.guarded, login | {"security.protocol": "sasl_ssl"}).topics())
    assert "no-key-at-all" not in str(error)
