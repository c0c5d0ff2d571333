"""What is known not to hold yet, in worlds too odd for the one that all engines share: each fails once it holds."""

from __future__ import annotations

import pytest

from headrace.clock import DAY, SECOND
from headrace.testing import FakeClock
from tests.conformance.cases import BASE, Case, Delivery, Sent
from tests.conformance.compare import Meaning, folded, tile_differences
from tests.conformance.definitions import ARRIVED
from tests.conformance.engines import FROM_THE_LAKE, Engine, batch_over_the_log
from tests.conformance.world import appended_at_once

pytestmark = pytest.mark.spark


@pytest.mark.xfail(
    reason="the lake keeps the copy it met first, a stream the one that was on time: the event counts in both lanes",
    raises=AssertionError,
    strict=True,
)
def test_a_copy_that_was_appended_again_before_the_first_of_a_declared_arrival_counts_once(spark, tmp_path):
    # Both arrived in time, and both were appended long after: the replayed one first.
    copies = (Delivery(0, 0, again=0), Delivery(SECOND, 1))
    case = Case("replayed", (Sent("a", 0, fields={"cents": 1}, deliveries=copies),))
    world = appended_at_once([case], tmp_path, FakeClock(BASE + DAY), f"header:{ARRIVED}", ("windows",))
    made = Engine("stream and late lane", "", batch_over_the_log, FROM_THE_LAKE).everything(world, spark)
    meaning, (tile_set,) = Meaning(world), world.plan.tile_sets
    assert [said for _, said in tile_differences(meaning, tile_set, folded(made[tile_set.id]))] == []
