"""Where batch and stream of a new run meet: no later than the first tile that an event on time may still come into."""

from __future__ import annotations

import pytest

from headrace.clock import SECOND, show_time
from headrace.lake.layout import silver_shape
from headrace.lake.table import LakeTable
from headrace.log import MemoryLog
from headrace.plan.build import build
from headrace.spark.backfill.backfill import Ground, hand_over
from headrace.spark.pipeline.runs import Runs
from headrace.spark.progress import GUARD
from headrace.testing import FakeClock
from tests.streams import BASE, LATENESS, every_window, payments

(TILES,) = build([every_window]).tile_sets


@pytest.mark.parametrize("beyond", [0, 1, SECOND, TILES.grain - 1])
def test_the_point_is_the_start_of_the_first_tile_that_is_still_open(tmp_path, monkeypatch, beyond):
    # Where the stream begins in the log is looked up with Spark, and has a test of its own.
    monkeypatch.setattr("headrace.spark.backfill.backfill._begin", lambda *_: {})
    clock = FakeClock(BASE + LATENESS + GUARD + beyond)
    log = MemoryLog(clock=clock)
    for topic in ("payments", "changelog", "runs"):
        log.create_topic(topic, compacted=topic != "payments")
    silver = LakeTable(str(tmp_path / "silver"), silver_shape(payments))
    ground = Ground(TILES, log, "payments", "changelog", silver, Runs(log, "runs"), 1)
    assert show_time(hand_over(ground, None, clock).point) == show_time(BASE)
