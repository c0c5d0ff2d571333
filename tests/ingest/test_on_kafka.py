"""A producer and dead letters on a real broker."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace

import pytest

import headrace as hr
from headrace.clock import HOUR
from headrace.ingest.dead_letters.replay import LetterTopics, replay
from headrace.log.kafka.log import KafkaLog
from headrace.meaning.verdict import REPLAY_OF
from headrace.spark.dead_letter import present, walk
from headrace.testing import FakeClock
from tests.ingest.test_replay import CLICKS, EVERYTHING, good, letter
from tests.streams import BASE

pytestmark = pytest.mark.kafka


@pytest.fixture
def log(kafka):
    with KafkaLog(kafka.brokers) as opened:
        yield opened


def everything(log, topic):
    found = []
    for number, end in log.end_offsets(topic).items():
        at = log.start_offsets(topic)[number]
        while at < end and (records := log.read(topic, number, at)):
            found += records
            at = records[-1].offset + 1
    return found


def test_a_producer_delivers_every_event_once_and_in_the_order_of_its_key(log):
    stream = replace(CLICKS, name=f"clicks-{uuid.uuid4().hex}")
    log.create_topic(stream.name, partitions=3)
    with hr.Producer(stream=stream, log=log, batch=200) as producer:
        futures = [producer.send({"user": f"u{n % 7}", "at": BASE + n}) for n in range(2_000)]
    records = everything(log, stream.name)
    assert {(each.partition, each.offset) for each in records} == {future.result() for future in futures}
    assert producer.counts == (2_000, 0, 0, 0)
    by_key: dict[bytes | None, list[bytes | None]] = {}
    for each in records:
        by_key.setdefault(each.key, []).append(each.value)
    assert len(by_key) == 7
    assert all(
        values == sorted(values, key=lambda value: int(value.split(b":")[-1][:-1])) for values in by_key.values()
    )


def test_letters_are_replayed_once_also_those_of_a_replay_that_was_cut_off(log):
    topics = LetterTopics(f"clicks-{uuid.uuid4().hex}", f"dead-{uuid.uuid4().hex}")
    log.create_topic(topics.source, partitions=2)
    log.create_topic(topics.dead, compacted=True)
    letters = [letter(number, good(f"u{number}")) for number in range(10)]
    log.append_batch(topics.dead, [each.message for each in letters])
    # A replay noted where the stream ended, appended one of two records, and was killed.
    ends = log.end_offsets(topics.source)
    log.append_batch(topics.dead, [replace(each, replaying=ends).message for each in letters[:2]])
    log.append(topics.source, letters[0].value, headers=((REPLAY_OF, b"0/0"),))

    done = replay(log, CLICKS, topics, EVERYTHING, FakeClock(BASE + HOUR))
    assert (done.found, len(done.sent), done.left) == (["0/0"], 9, [])
    counts = Counter(dict(each.headers)[REPLAY_OF] for each in everything(log, topics.source))
    assert counts == Counter({f"0/{number}".encode(): 1 for number in range(10)})
    assert present(walk(log, topics.dead)) == {}
