"""Up to when late events are in the tiles: the late lane says it, and nothing that arrived before is missing."""

from __future__ import annotations

from headrace.clock import SECOND, micros
from headrace.config.config import names
from headrace.spark.late.component import late_as_of
from headrace.spark.progress import GUARD
from headrace.status.records import LaneStatus, LateStatus
from tests.spark.lake_shop import PLAN, Shop

ORDERS, PAYMENTS = PLAN.tile_sets


def test_a_late_lane_says_up_to_when_everything_that_arrived_is_published(tmp_path):
    shop = Shop(tmp_path)
    shop.fill()
    lanes = shop.lanes()

    def said():
        lanes.step()
        return late_as_of(shop.late_status(lanes), PAYMENTS, "1")

    topic = names(shop.config).topic("payments")
    for _ in range(3):
        lanes.log.append(topic, b"{}")
    shop.clock.advance("10s")
    assert said() == shop.clock.now() - GUARD, "all of the log is in the lake, and its late events are published"
    waiting = shop.clock.now()
    lanes.log.append(topic, b"{}")
    for _ in range(2):
        shop.clock.advance("10s")
        assert said() == waiting, "what the archive has not taken yet may be late"
    assert micros(shop.late_status(lanes).lanes["payments.by_card"]["1"].as_of) == waiting
    lanes.stop()


def test_nothing_is_said_of_a_lane_that_was_not_published(tmp_path):
    shop = Shop(tmp_path)
    lanes = shop.lanes()
    lanes.step()
    told = shop.late_status(lanes)
    assert [late_as_of(told, each, "1") for each in (ORDERS, PAYMENTS)] == [None, None]
    assert late_as_of(LateStatus(), PAYMENTS, "1") is None
    known = LateStatus(lanes={PAYMENTS.id: {"1": LaneStatus(as_of="1970-01-01T00:00:01Z")}})
    assert late_as_of(known, PAYMENTS, "1") == SECOND
    lanes.stop()
