"""The late lane after a crash: the next pass publishes what the one that was cut off has not."""

from __future__ import annotations

import pytest

from headrace.faults import NO_FAULTS
from tests.faults.image import CrashImages, at_each_point
from tests.faults.replayed import CHANGELOG, PARTITIONS, RECORDS, TILES, Replayed, meant, states

pytestmark = pytest.mark.spark


def lane_of(world, faults=NO_FAULTS):
    from headrace.run.late import LateLane, Run

    lake, checkpoint = world.lake(faults), world.folder / "late.json"
    return LateLane(TILES, Run("1", None, PARTITIONS), lake, world.log, CHANGELOG, checkpoint)


@pytest.fixture(scope="module")
def images(spark, tmp_path_factory):
    """The second pass, over tiles that the first one has published in part, in appends of a few tiles."""
    folder = tmp_path_factory.mktemp("late")
    world = Replayed(folder / "world")
    world.send()
    world.archive(spark, len(RECORDS) // 2)
    assert lane_of(world).step(spark).tiles > 0
    world.archive(spark)
    made = CrashImages(folder / "world", folder / "images", "late", turns=(0,))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headrace.run.append.PART", 2)
        assert lane_of(world, made).step(spark).tiles > 2
    return made


@at_each_point("late")
def test_the_next_pass_publishes_what_is_missing(images, spark, name):
    (taken,) = images.of(name)
    world = Replayed(taken.folder)
    lane_of(world).step(spark)
    assert states(world.log, "1") == meant("late")
    assert lane_of(world).step(spark).tiles == 0, "a pass over nothing new publishes nothing"
