"""A real-time query takes records one by one while few come, and a few at a time when many do."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from headrace.clock import SECOND
from headrace.log.memory import MemoryLog
from headrace.log.record import Message
from headrace.spark.pipeline.kafka_pace import A_FEW_AT_A_TIME, BUSY, CALM, ONE_BY_ONE, OVER, pace_for
from headrace.testing import FakeClock
from tests.streams import BASE

SECONDS = OVER // SECOND


def come(log: Any, clock: FakeClock, per_second: int, seconds: int) -> None:
    for _ in range(seconds):
        for partition in (0, 1):
            log.append_batch("payments", [Message(b"x")] * (per_second // 2), partition=partition)
        clock.advance("1s")


@pytest.mark.parametrize(
    ("per_second", "last", "expected"),
    [
        (BUSY, ONE_BY_ONE, A_FEW_AT_A_TIME),
        (BUSY - 500, ONE_BY_ONE, ONE_BY_ONE),
        (BUSY - 500, A_FEW_AT_A_TIME, A_FEW_AT_A_TIME),
        (CALM, A_FEW_AT_A_TIME, ONE_BY_ONE),
        (0, A_FEW_AT_A_TIME, ONE_BY_ONE),
    ],
)
def test_the_pace_is_that_of_what_came_lately_in_all_partitions(per_second, last, expected):
    clock = FakeClock(BASE)
    log = MemoryLog(clock=clock)
    log.create_topic("payments", partitions=2)
    come(log, clock, per_second, SECONDS)
    assert pace_for(log, "payments", clock, last) == expected


def test_what_came_long_ago_counts_no_longer():
    clock = FakeClock(BASE)
    log = MemoryLog(clock=clock)
    log.create_topic("payments", partitions=2)
    come(log, clock, 2 * BUSY, SECONDS)
    assert pace_for(log, "payments", clock) == A_FEW_AT_A_TIME
    clock.advance("10s")
    assert pace_for(log, "payments", clock, A_FEW_AT_A_TIME) == ONE_BY_ONE


@dataclass
class Ending:
    """A query whose batches end when it is told so."""

    isActive: bool = True  # noqa: N815
    stopped: list[bool] = field(default_factory=list)

    def stop(self) -> None:
        self.stopped.append(True)


def real_time(folder, clock, log):
    """A real-time query that nobody has started."""
    from headrace.plan.build import build
    from headrace.spark.pipeline.publish import QueryPaths
    from headrace.spark.pipeline.tile_query import REAL_TIME, TileQuery
    from headrace.spark.tiles import Target
    from tests.streams import every_window

    (tiles,) = build([every_window]).tile_sets
    place = QueryPaths(log, clock, "payments", folder)
    return TileQuery(tiles, Target("1", "on_time", 2), place, "changelog", None, judged=lambda *_: None, mode=REAL_TIME)


def ended(folder, included):
    """A batch has ended, after these offsets."""
    for name in ("commits", "offsets"):
        (folder / name).mkdir()
    (folder / "commits" / "0").touch()
    (folder / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(included)}")


def test_a_backlog_is_taken_a_few_at_a_time_however_few_come_now(tmp_path):
    from headrace.spark.pipeline.tile_query import CROWD

    clock = FakeClock(BASE)
    log = MemoryLog(clock=clock)
    log.create_topic("payments", partitions=2)
    come(log, clock, CROWD + 2, 1)
    clock.advance("1h")
    assert real_time(tmp_path, clock, log)._pace() == A_FEW_AT_A_TIME
    ended(tmp_path, {"0": CROWD // 2, "1": CROWD // 2})
    assert real_time(tmp_path, clock, log)._pace() == ONE_BY_ONE


def test_a_query_changes_its_pace_at_the_end_of_a_batch_and_only_there(tmp_path, monkeypatch):
    from headrace.spark.pipeline import tile_query

    clock = FakeClock(BASE)
    log = MemoryLog(clock=clock)
    log.create_topic("payments", partitions=2)
    tile = real_time(tmp_path, clock, log)
    query, begun = Ending(), []
    tile.query = query
    monkeypatch.setattr(tile_query.TileQuery, "in_real_time", lambda *_, **how: begun.append(how))
    come(log, clock, BUSY, SECONDS)
    tile.look()
    assert begun == []
    ended(tmp_path, {"0": BUSY * SECONDS // 2, "1": BUSY * SECONDS // 2})
    tile.look()
    assert (begun, query.stopped) == ([{"practised": True}], [True])
    tile.look()
    assert len(begun) == 1
