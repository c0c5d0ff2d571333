"""How long a store keeps a tile: until no window can reach it and no event of the on-time lane can change it."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.clock import HOUR, MINUTE, SECOND
from headrace.plan.build import build
from headrace.tiles.changelog import ProgressRow
from headrace.tiles.expiry import horizons
from headrace.tiles.fold import SLACK, folds
from tests.streams import BASE, LATENESS, SKEW, payments

WINDOWS = {
    "trailing": hr.trailing("1h", resolution="10m"),
    "exact": hr.trailing("1h", resolution="exact"),
    "tumbling": hr.tumbling("1h", previous=True),
    "session": hr.session(gap="10m", max_length="1h"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_tile_that_a_reader_whose_clock_is_behind_may_ask_for_is_kept(name):
    plan = build([hr.view("cards", payments, by="card", features={"n": hr.count(over=WINDOWS[name])})])
    (tile_set,) = plan.tile_sets
    layout = folds(plan)[tile_set.fingerprint].layout
    for as_of in range(BASE, BASE + HOUR + 1, 7 * MINUTE + SECOND):
        horizon = horizons(layout, {"1": ProgressRow(tile_set.fingerprint, "1", {}, as_of)}, {})["1"]
        low, _ = WINDOWS[name].span(as_of - SLACK - LATENESS - SKEW)
        assert low - low % tile_set.grain >= horizon
