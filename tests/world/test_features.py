"""The project that fits this world: its features are accepted, and mean what they say."""

from __future__ import annotations

from importlib.resources import files

import pytest

from headrace.clock import SECOND, micros
from headrace.plan.build import build
from headrace_demo.world.stream import World, history

T = micros("2026-03-04T10:00:00Z")


@pytest.fixture(scope="module")
def defined(tmp_path_factory):
    text = (files("headrace_demo.world") / "features.py.txt").read_text(encoding="utf-8")
    file = tmp_path_factory.mktemp("project") / "features.py"
    names = {"__name__": "features"}
    exec(compile(text, str(file), "exec"), names)
    return names


def test_the_stream_has_the_fields_that_payments_have(defined):
    sent = next(history(World(seed=1, start=T, cards=100, days=1, payments=100)))
    stream = defined["payments"]
    assert [field.name for field in stream.schema] == list(sent.event)
    assert (stream.event_id, stream.event_time) == ("id", "at")


def test_the_feature_set_has_a_view_by_card_and_one_by_merchant(defined):
    assert {view.name for view in defined["fraud"].views} == {"card_activity", "shop_activity"}


def test_a_plan_can_be_made_of_it(defined):
    assert {tiles.id for tiles in build([defined["fraud"]]).tile_sets} == {"payments.by_card", "payments.by_merchant"}


def test_a_payment_is_compared_with_the_one_before_whether_or_not_it_is_included_itself(defined):
    speed = defined["km_per_hour"]
    before = {"last_ids": ["a"], "last_lats": [52.52], "last_lons": [13.40], "last_moments": [T - 3_600 * SECOND]}
    after = {
        "last_ids": ["b", "a"],
        "last_lats": [40.71, 52.52],
        "last_lons": [-74.01, 13.40],
        "last_moments": [T, T - 3_600 * SECOND],
    }
    for values in (before, after):
        request = {"id": "b", "lat": 40.71, "lon": -74.01}
        km = defined["km_from_last"].value(request, values, T)
        seconds = defined["seconds_since_last"].value(request, values, T)
        assert km == pytest.approx(6_385, abs=5)
        assert seconds == 3_600
        assert speed.value(request, {"km_from_last": km, "seconds_since_last": seconds}, T) == pytest.approx(km)


def test_a_card_that_is_new_has_nothing_to_be_compared_with(defined):
    request = {"id": "b", "lat": 40.71, "lon": -74.01, "amount": 5.0}
    values = dict.fromkeys(("last_ids", "last_lats", "last_lons", "last_moments", "median_7d"))
    assert defined["km_from_last"].value(request, values, T) is None
    assert defined["seconds_since_last"].value(request, values, T) is None
    assert defined["amount_vs_median"].value(request, values, T) is None
    assert defined["km_per_hour"].value(request, {"km_from_last": None, "seconds_since_last": None}, T) is None
