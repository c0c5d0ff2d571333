"""The embedded log after a crash: what was acknowledged is there, and what was under way is there whole or not at all.

A list of steps goes through the log one by one. The log in memory says what each of them means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.clock import SECOND
from headrace.log import EmbeddedLog, MemoryLog, Message
from headrace.log.protocol import Log
from headrace.testing import FakeClock
from tests.faults.image import CrashImages, at_each_point

Step = Callable[[Log], object]


def several(low: int, high: int) -> list[Message]:
    """Messages that go to both partitions."""
    return [Message(f"value {n}".encode(), f"key {n % 3}".encode()) for n in range(low, high)]


STEPS: list[Step] = [
    lambda log: log.create_topic("payments", partitions=2),
    lambda log: log.append_batch("payments", several(0, 9)),
    lambda log: log.commit("readers", "payments", {0: 1, 1: 2}),
    lambda log: log.create_topic("rows", compacted=True),
    lambda log: log.append_batch("rows", several(0, 6)),
    lambda log: log.append_batch("rows", [*several(6, 8), Message(None, b"key 2")]),
    lambda log: log.clean("rows"),
    lambda log: log.append_batch("payments", several(9, 12)),
    lambda log: log.commit("readers", "payments", {0: 2}),
    lambda log: log.append_batch("rows", several(3, 5)),
    lambda log: log.clean("rows"),
]
CLEANING = (6, 10)
"""Steps of several commits: what is taken out is, and then that it is noted."""


def contents(log: Log) -> dict[str, Any]:
    """Everything a reader can find."""
    found: dict[str, Any] = {}
    for topic in sorted(log.topics()):
        ends = log.end_offsets(topic)
        records = [
            (record.partition, record.offset, record.arrived_at, record.key, record.value)
            for partition in ends
            for record in log.read(topic, partition, log.start_offsets(topic)[partition])
        ]
        found[topic] = (ends, records, log.committed("readers", topic))
    return found


def clock() -> FakeClock:
    return FakeClock(5 * SECOND)


@pytest.fixture(scope="module")
def meant():
    """What the log holds after each number of steps."""
    log, found = MemoryLog(clock=clock()), list[dict[str, Any]]([{}])
    for step in STEPS:
        step(log)
        found.append(contents(log))
    return found


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    done = 0
    made = CrashImages(folder / "world", folder / "images", "log", known=lambda: done)
    with EmbeddedLog(folder / "world", clock=clock(), faults=made) as log:
        for step in STEPS:
            step(log)
            done += 1
    return made


@at_each_point("log")
def test_what_was_acknowledged_is_there_and_the_rest_can_be_done_again(images, meant, name):
    for taken in images.of(name):
        done = taken.known
        with EmbeddedLog(taken.folder, clock=clock()) as log:
            found = contents(log)
            if done in CLEANING:
                assert found in (meant[done], meant[done + 1]), taken
            else:
                assert found == meant[done + name.endswith(".after")], taken
            for step in STEPS[done if found == meant[done] else done + 1 :]:
                step(log)
            assert contents(log) == meant[-1], taken
