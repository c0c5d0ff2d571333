"""The tile pipeline in micro-batches after a crash: its checkpoint and the changelog lead to the reference's tiles."""

from __future__ import annotations

import pytest

from headrace.config.config import names
from headrace.faults import NO_FAULTS
from tests.faults.image import CrashImages, at_each_point
from tests.faults.replayed import CHANGELOG, PARTITIONS, RECORDS, TILES, Replayed, meant, states
from tests.streams import payments

pytestmark = pytest.mark.spark

BATCH = len(RECORDS) // 2


def run_to_the_end(spark, world, faults=NO_FAULTS):
    """The query of the first run, as the pipeline starts it, up to the end of the log."""
    from headrace.spark.admission import judged
    from headrace.spark.pipeline.publish import QueryPaths
    from headrace.spark.pipeline.tile_query import TileQuery
    from headrace.spark.records import stream_of
    from headrace.spark.source import register
    from headrace.spark.tiles import Target

    register(spark)
    place = QueryPaths(world.log, world.clock, "payments", names(world.config).path("checkpoints", "1"), faults)
    records = judged(stream_of(spark, world.log, "payments", BATCH), payments)
    tile = TileQuery(TILES, Target("1", "on_time", PARTITIONS), place, CHANGELOG, None, judged=lambda *_: records)
    tile.in_micro_batches(to_the_end=True)
    assert tile.query.awaitTermination(180)
    assert tile.included() == world.log.end_offsets("payments")


@pytest.fixture(scope="module")
def images(spark, tmp_path_factory):
    """The second batch."""
    folder = tmp_path_factory.mktemp("tiles")
    world = Replayed(folder / "world")
    world.send()
    made = CrashImages(folder / "world", folder / "images", "tiles", turns=(1,))
    run_to_the_end(spark, world, made)
    return made


@at_each_point("tiles")
def test_a_batch_that_was_cut_off_is_run_again_and_changes_nothing(images, spark, name):
    (taken,) = images.of(name)
    world = Replayed(taken.folder)
    before = world.log.end_offsets(CHANGELOG)[0]
    run_to_the_end(spark, world)
    assert world.log.end_offsets(CHANGELOG)[0] > before, "the batch was not run again"
    assert states(world.log, "1") == meant("on_time")
