"""How far a real-time query has come, from the rows it wrote and from what leaves no row."""

from __future__ import annotations

import json

import pytest

import headrace as hr
from headrace.clock import SECOND
from headrace.log import MemoryLog
from headrace.log.record import Message
from headrace.plan.build import build
from headrace.spark.pipeline.real_time_progress import RealTimeProgress
from headrace.spark.progress import GUARD
from headrace.testing import FakeClock
from headrace.tiles.changelog import TileRow
from headrace.tiles.changelog_format import encode

clicks = hr.stream(
    "clicks",
    fields={"user": str, "n": int, "at": hr.Timestamp},
    event_time="at",
    allowed_lateness="2m",
    late="drop",
)
users = hr.view("users", clicks.where("n > 0"), by="user", features={"n": hr.count(over="1h")})
(TILES,) = build([users]).tile_sets


class Place:
    """A log with a stream of two partitions and its changelog, on a clock of its own."""

    def __init__(self):
        self.clock = FakeClock("2026-01-01T12:00:00Z")
        self.log = MemoryLog(clock=self.clock)
        self.log.create_topic("clicks", partitions=2)
        self.log.create_topic("changelog", compacted=True)
        self.tell = RealTimeProgress(TILES, "1", self.log, "clicks", "changelog")

    def click(self, partition=0, at="2026-01-01T12:00:00Z", n=1):
        self.clock.advance("1s")
        value = json.dumps({"user": "ann", "n": n, "at": at}).encode()
        self.log.append_batch("clicks", [Message(value)], partition=partition)

    def row(self, run="1", **positions):
        made = TileRow(
            TILES.fingerprint, run, ("ann",), 0, "on_time", 1, positions={int(p[1:]): o for p, o in positions.items()}
        )
        key, value = encode(made, ("user",))
        self.log.append_batch("changelog", [Message(value, key)])

    def look(self, committed=None):
        return self.tell.look(committed or {}, self.clock)


def test_rows_say_how_far_each_partition_is_and_the_time_is_that_of_the_first_record_they_lack():
    place = Place()
    for partition in (0, 0, 1):
        place.click(partition)
    included, moment = place.look()
    assert included == {0: 0, 1: 0}
    place.row(p0=1, p1=1)
    included, moment = place.look()
    assert included == {0: 1, 1: 1}
    assert moment == place.log.read("clicks", 0, 1, limit=1)[0].arrived_at
    place.row(p0=2)
    assert place.look() == ({0: 2, 1: 1}, place.clock.now() - GUARD)


def test_rows_of_other_runs_say_nothing():
    place = Place()
    place.click()
    place.row(run="2", p0=1)
    assert place.look()[0] == {0: 0, 1: 0}


def test_what_leaves_no_row_is_passed_and_what_leaves_one_is_not():
    place = Place()
    place.log.append_batch("clicks", [Message(b"{")], partition=0)
    place.click(at="2025-01-01T12:00:00Z")  # late, and dropped
    place.click(at="2027-01-01T12:00:00Z")  # from the future
    place.click(n=0)  # the view does not want it
    assert place.look()[0] == {0: 4, 1: 0}
    place.click()
    assert place.look()[0] == {0: 4, 1: 0}
    place.row(p0=5)
    assert place.look() == ({0: 5, 1: 0}, place.clock.now() - GUARD)


def test_the_end_of_a_batch_counts_whatever_rows_there_were():
    place = Place()
    place.click()
    place.clock.advance("5s")
    assert place.look({0: 1, 1: 0}) == ({0: 1, 1: 0}, place.clock.now() - GUARD)
    assert place.look({0: 0, 1: 0})[0] == {0: 1, 1: 0}, "it does not go back"
    assert place.clock.now() > SECOND


def test_a_topic_that_got_another_partition_ends_the_query(monkeypatch):
    place = Place()
    before = place.log.end_offsets
    monkeypatch.setattr(place.log, "end_offsets", lambda topic: before(topic) | ({2: 0} if topic == "clicks" else {}))
    with pytest.raises(RuntimeError, match="topic clicks had 2 partitions and has 3 now"):
        place.look()
