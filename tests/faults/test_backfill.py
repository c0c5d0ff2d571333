"""A backfill after a crash: the next one finishes the run that was begun, and begins no other."""

from __future__ import annotations

import pytest

from headrace.config.config import names
from headrace.spark.pipeline.runs import Runs
from headrace.tiles.changelog import FILLED
from headrace.topics import RUNS
from tests.faults.image import CrashImages, at_each_point
from tests.faults.replayed import TILES, Replayed, meant, states

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def images(spark, tmp_path_factory):
    """A backfill whose tiles are appended a few at a time."""
    from headrace.spark.backfill.project_backfill import run_backfill

    folder = tmp_path_factory.mktemp("backfill")
    world = Replayed(folder / "world")
    world.send()
    world.archive(spark)
    made = CrashImages(folder / "world", folder / "images", "backfill", turns=(0,))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headrace.spark.append.PART", 5)
        (done,) = run_backfill(world.config, [TILES], spark, world.clock, faults=made)
    assert done.rows > 10
    return made


def runs_of(world):
    found = Runs(world.log, names(world.config).topic(RUNS))
    found.look()
    return found.of(TILES)


@at_each_point("backfill")
def test_the_run_that_was_begun_is_filled_and_has_every_tile(images, spark, name):
    from headrace.spark.backfill.project_backfill import run_backfill

    (taken,) = images.of(name)
    world = Replayed(taken.folder)
    if name != "backfill.filled.after":
        run_backfill(world.config, [TILES], spark, world.clock)
    assert {run: held.stage for run, held in runs_of(world).items()} == {"2": FILLED}
    assert states(world.log, "2") == meant("on_time", "late")
