"""A backfill of a project: a run that is said to be filled lacks nothing that the lake had."""

from __future__ import annotations

import pytest

from headrace.config.config import names
from headrace.lake.imports import positions
from headrace.lake.location import open_lake
from headrace.spark.backfill.project_backfill import run_backfill
from headrace.spark.backfill.step import BEGIN, LATE, BackfillStep
from headrace.spark.late.late_lane import LateLane, LateLaneRun, late_file, publish_lanes
from headrace.spark.pipeline.runs import Runs, checkpoint_of
from headrace.tiles.changelog import FILLED, TileRow
from headrace.tiles.changelog_format import decode
from tests.skew.shop import Shop
from tests.skew.world import payments, plan, tile_set

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(tmp_path, spark):
    made = Shop(tmp_path / "shop", spark)
    made.send()
    made.archive()
    yield made
    made.log.close()


def test_the_late_lane_is_published_before_a_run_is_said_to_be_filled(shop, spark, monkeypatch):
    topic, real, ends = f"changelog.{tile_set.id}", Runs.say, []

    def saying(runs, hand_over):
        if hand_over.stage == FILLED:
            ends.append(shop.log.end_offsets(topic)[0])
        real(runs, hand_over)

    monkeypatch.setattr(Runs, "say", saying)
    shop.clock.advance("1d")
    steps = list[BackfillStep]()
    run_backfill(shop.config, plan.tile_sets, spark, shop.clock, progress=steps.append)
    assert list(dict.fromkeys(step.name for step in steps)) == [BEGIN, tile_set.id, LATE]
    late = [(step.rows, step.note) for step in steps if step.name == LATE]
    assert late[0] == (0, "0 of 1 lane")
    assert (2, "0 of 1 lane") in late, "said while the lane is written"
    assert late[-1] == (2, "1 of 1 lane")
    (end,) = ends
    rows = [decode(each.key, each.value) for each in shop.log.read(topic, 0, 0, limit=end)]
    published = {(row.key, row.tile) for row in rows if isinstance(row, TileRow) and row.lane == "late"}
    meant = {(key, tile) for key, tile, lane in shop.world.outcome.tiles(tile_set) if lane == "late"}
    assert published == meant
    assert len(meant) == 2


def test_a_pipeline_that_follows_finds_the_lane_as_far_as_the_lake_was(shop, spark):
    shop.clock.advance("1d")
    (done,) = run_backfill(shop.config, plan.tile_sets, spark, shop.clock)
    lake, run = open_lake(shop.config, payments), LateLaneRun(done.hand_over.run, done.hand_over, 1)
    file = late_file(names(shop.config).path("checkpoints", checkpoint_of(tile_set, run.name)))
    lane = LateLane(tile_set, run, f"changelog.{tile_set.id}", file)
    assert lane.done == positions(lake.silver)
    (again,) = publish_lanes([lane], lake, shop.log, spark)
    assert again.tiles == 0
