"""Tiles of a batch: of copies that contradict each other the first one counts."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.plan.build import build
from tests.streams import BASE, payments

pytestmark = pytest.mark.spark

(TILES,) = build([hr.view("cards", payments, by="card", features={"spent": hr.sum("cents", over="10m")})]).tile_sets


def test_the_copy_that_counts_is_the_first_by_order_then_partition_then_offset(spark):
    from headrace.spark.admission import CLOSED, EVENT_ID, EVENT_TIME, OFFSET, ORDER, PARTITION, VERDICT
    from headrace.spark.tiles import admitted_once

    copies = {  # order, partition, offset: the first is the one that counts
        "earlier": [(8, 2, 9), (9, 0, 0), (9, 1, 1)],
        "lower partition": [(8, 0, 9), (8, 1, 0), (8, 2, 0)],
        "lower offset": [(8, 1, 3), (8, 1, 4), (8, 1, 5)],
    }
    rows = [
        (name, BASE, "admitted", False, *place, place == places[0])
        for name, places in copies.items()
        for place in reversed(places)
    ]
    columns = [EVENT_ID, EVENT_TIME, VERDICT, CLOSED, ORDER, PARTITION, OFFSET, "counts"]
    once = admitted_once(spark.createDataFrame(rows, columns), TILES).select(f"`{EVENT_ID}`", "counts").collect()
    assert sorted(map(tuple, once)) == sorted((name, True) for name in copies)
