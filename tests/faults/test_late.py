"""The late lanes after a crash: the next pass publishes what the one that was cut off has not.

Two lanes share a pass, and each has its own file: the crash may come between the two.
"""

from __future__ import annotations

import pytest

from headrace.faults import NO_FAULTS
from tests.faults.image import CrashImages, at_each_point
from tests.faults.replayed import CHANGELOG, PARTITIONS, RECORDS, TILES, Replayed, meant, states

pytestmark = pytest.mark.spark

RUNS = ("1", "2")


def publish(world, spark, faults=NO_FAULTS):
    """One pass for the lanes of two runs; gives the tiles of each."""
    from headrace.spark.late.late_lane import LateLane, LateLaneRun, publish_lanes

    lanes = [
        LateLane(TILES, LateLaneRun(run, None, PARTITIONS), CHANGELOG, world.folder / f"late{run}") for run in RUNS
    ]
    return [done.tiles for done in publish_lanes(lanes, world.lake(faults), world.log, spark)]


@pytest.fixture(scope="module")
def images(spark, tmp_path_factory):
    """The second pass, over tiles that the first one has published in part, in appends of a few tiles."""
    folder = tmp_path_factory.mktemp("late")
    world = Replayed(folder / "world")
    world.send()
    world.archive(spark, len(RECORDS) // 2)
    assert min(publish(world, spark)) > 0
    world.archive(spark)
    made = CrashImages(folder / "world", folder / "images", "late", turns=(0,))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headrace.spark.append.PART", 2)
        assert min(publish(world, spark, made)) > 2
    return made


@at_each_point("late")
def test_the_next_pass_publishes_what_is_missing(images, spark, name):
    (taken,) = images.of(name)
    world = Replayed(taken.folder)
    first, second = publish(world, spark)
    assert second > 0
    assert (first == 0) == (name == "late.checkpoint.after"), "a lane whose file was written has nothing to publish"
    for run in RUNS:
        assert states(world.log, run) == meant("late")
    assert publish(world, spark) == [0, 0], "a pass over nothing new publishes nothing"
