"""Which topics a plan needs, and what the components last said in one of them."""

from __future__ import annotations

import json
from pathlib import Path

import headrace as hr
from headrace.config import Names
from headrace.log import EmbeddedLog, MemoryLog
from headrace.plan.build import build
from headrace.topics import create, last_status, topics

NAMES = Names("eu", "shop", Path("data"))


def planned(late: str = "update"):
    clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at", late=late)
    return build([hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})])


def test_every_topic_carries_the_prefix_and_only_events_have_several_partitions():
    made = topics(planned(), NAMES, 3)
    assert [(topic.name, topic.partitions, topic.compacted) for topic in made] == [
        ("eu.clicks", 3, False),
        ("eu.clicks.dead", 1, True),
        ("eu.changelog.clicks.by_user", 1, True),
        ("eu.headrace.status", 1, True),
    ]


def test_late_records_have_a_topic_when_they_go_to_the_side():
    assert "eu.clicks.late" in [topic.name for topic in topics(planned("side_output"), NAMES, 1)]


def test_a_topic_that_is_there_keeps_its_partitions():
    log = MemoryLog()
    create(log, topics(planned(), NAMES, 2))
    create(log, topics(planned(), NAMES, 5))
    assert log.topics()["eu.clicks"].partitions == 2


def said(log, component: str, number: int) -> None:
    log.append("status", json.dumps({"n": number}).encode(), key=component.encode())


def test_the_last_word_of_each_component_is_found_however_long_ago_it_spoke():
    log = MemoryLog()
    log.create_topic("status", compacted=True)
    said(log, "serve", 1)
    for number in range(300):
        said(log, "pipeline", number)
    found = last_status(log, "status", ["pipeline", "serve", "silent"])
    assert {name: told for name, (_, told) in found.items()} == {"pipeline": {"n": 299}, "serve": {"n": 1}}


def test_the_last_word_is_found_after_the_topic_was_cleaned(tmp_path):
    with EmbeddedLog(tmp_path) as log:
        log.create_topic("status", compacted=True)
        for number in range(10):
            said(log, "pipeline", number)
        log.clean("status")
        assert last_status(log, "status", ["pipeline"])["pipeline"][1] == {"n": 9}


def test_a_log_without_the_topic_has_nothing_to_tell(tmp_path):
    assert last_status(EmbeddedLog(tmp_path), "status", ["pipeline"]) == {}
