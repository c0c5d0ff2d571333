"""Which topics a plan needs."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as hr
from headrace.config.config import Names
from headrace.errors import ConfigError
from headrace.log import MemoryLog, Retention
from headrace.plan.build import build
from headrace.topics import create, topics

NAMES = Names("eu", "shop", Path("data"))


def planned(late: str = "update", arrival: str = "log"):
    fields = {"user": str, "at": hr.Timestamp}
    clicks = hr.stream("clicks", fields=fields, event_time="at", late=late, arrival=arrival)
    return build([hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})])


def test_every_topic_carries_the_prefix_and_only_events_have_several_partitions():
    made = topics(planned(), NAMES, 3)
    assert [(topic.name, topic.partitions, topic.compacted) for topic in made] == [
        ("eu.clicks", 3, False),
        ("eu.clicks.dead", 1, True),
        ("eu.changelog.clicks.by_user", 1, True),
        ("eu.served.users", 1, False),
        ("eu.headrace.runs", 1, True),
        ("eu.headrace.status", 1, True),
    ]


def test_late_records_have_a_topic_when_they_go_to_the_side():
    assert "eu.clicks.late" in [topic.name for topic in topics(planned("side_output"), NAMES, 1)]


def test_a_topic_that_is_there_keeps_its_partitions():
    log = MemoryLog()
    create(log, topics(planned(), NAMES, 2))
    create(log, topics(planned(), NAMES, 5))
    assert log.topics()["eu.clicks"].partitions == 2


def test_a_topic_that_is_there_keeps_its_retention():
    log = MemoryLog()
    log.create_topic("eu.clicks", retention=Retention(age=5))
    create(log, topics(planned(), NAMES, 2))
    assert log.topics()["eu.clicks"].retention == Retention(age=5)


def test_a_topic_with_the_producers_clock_is_refused_unless_its_stream_says_so():
    log = MemoryLog()
    log.create_topic("eu.clicks", arrival="producer")
    with pytest.raises(ConfigError) as caught:
        create(log, topics(planned(), NAMES, 1))
    assert (caught.value.code, 'arrival="producer"' in str(caught.value.hint)) == ("wrong-arrival", True)
    create(log, topics(planned(arrival="producer"), NAMES, 1))


def test_a_stream_with_the_producers_clock_gets_a_topic_with_it():
    log = MemoryLog()
    create(log, topics(planned(arrival="producer"), NAMES, 1))
    assert {name: topic.arrival for name, topic in log.topics().items() if "clicks" in name} == {
        "eu.clicks": "producer",
        "eu.clicks.dead": "log",
        "eu.changelog.clicks.by_user": "log",
    }
