"""A real-time query takes records one by one while few come, and a few at a time when many do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from headrace.clock import SECOND
from headrace.log.memory import MemoryLog
from headrace.log.record import Message
from headrace.run.pace import A_FEW_AT_A_TIME, BUSY, CALM, ONE_BY_ONE, OVER, pace_for
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


def test_a_query_changes_its_pace_at_the_end_of_a_batch_and_only_there(tmp_path, monkeypatch):
    from headrace.plan.build import build
    from headrace.run import tile_query
    from headrace.run.publish import Place
    from headrace.run.tile_query import REAL_TIME, TileQuery
    from headrace.run.tiles import Target
    from tests.streams import every_window

    clock = FakeClock(BASE)
    log = MemoryLog(clock=clock)
    log.create_topic("payments", partitions=2)
    (tiles,) = build([every_window]).tile_sets
    place = Place(log, clock, "payments", tmp_path)
    tile = TileQuery(tiles, Target("1", "on_time", 2), place, "changelog", None, judged=lambda *_: None, mode=REAL_TIME)
    query, begun = Ending(), []
    tile.query = query  # type: ignore[assignment]
    monkeypatch.setattr(tile_query.TileQuery, "in_real_time", lambda *_, **how: begun.append(how))
    come(log, clock, BUSY, SECONDS)
    tile.look()
    assert begun == []
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").touch()
    tile.look()
    assert (begun, query.stopped) == ([{"practised": True}], [True])
    tile.look()
    assert len(begun) == 1
