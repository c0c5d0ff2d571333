"""What becomes of a query that has ended by itself."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from headrace.clock import micros
from headrace.log import MemoryLog
from headrace.plan.build import build
from headrace.spark.pipeline.publish import QueryPaths
from headrace.spark.pipeline.tile_query import NO_WORKER, TRIES, TileQuery
from headrace.spark.tiles import Target
from headrace.testing import FakeClock
from tests.streams import every_window


@pytest.fixture
def tile(tmp_path):
    clock = FakeClock(micros("2026-01-01T12:00:00Z"))
    (tiles,) = build([every_window]).tile_sets
    place = QueryPaths(MemoryLog(clock=clock), clock, "payments", tmp_path)
    return TileQuery(tiles, Target("1", "on_time", 1), place, "changelog", None, judged=lambda *_: None)


@pytest.fixture
def ended(tile, monkeypatch):
    started = []
    monkeypatch.setattr(TileQuery, "start", lambda _: started.append(True))

    def look(error):
        """How often it was started again by now, after it has ended with one more error."""
        tile.query = SimpleNamespace(name="q", isActive=False, exception=lambda: error)
        tile.look()
        return len(started)

    return look


def test_a_query_that_found_no_worker_is_started_again_but_not_for_ever(ended):
    error = RuntimeError(f"org.apache.spark.SparkException: {NO_WORKER}.")
    assert [ended(error) for _ in range(TRIES + 2)] == [*range(1, TRIES + 1), TRIES, TRIES]


def test_any_other_error_is_left_to_whoever_looks(ended):
    assert ended(RuntimeError("no space left")) == 0
