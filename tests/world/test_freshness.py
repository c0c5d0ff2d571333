"""Whether fresh features are worth something in this world: a model of history scores live traffic."""

from __future__ import annotations

import lightgbm
import numpy as np

from headrace.clock import DAY, HOUR, micros
from headrace_demo.world.report import compare
from headrace_demo.world.stream import World, history, live
from tests.world.seen import features, readable, truth

START = micros("2026-03-04T10:00:00Z")
WORLD = World(seed=8, start=START, cards=9_000, days=6, payments=60_000)
SETTINGS = {
    "objective": "binary",
    "num_leaves": 15,
    "learning_rate": 0.08,
    "min_data_in_leaf": 40,
    "num_threads": 1,
    "deterministic": True,
    "seed": 0,
    "verbosity": -1,
}


def test_a_model_catches_more_with_fresh_features_than_with_those_of_an_hour_ago():
    past = readable(history(WORLD))
    now = readable(live(WORLD, START, seconds=90, per_second=60))
    # The first day has nothing to be compared with.
    learnt = [each for each in past if each.at >= START - 5 * DAY]
    data = lightgbm.Dataset(features(past, learnt), label=truth(learnt))
    model = lightgbm.train(SETTINGS, data, num_boost_round=60)

    known = sorted(past + now, key=lambda each: each.at)
    fresh, stale = (np.asarray(model.predict(features(known, now, held_back))) for held_back in (0, HOUR))
    made = compare(truth(now), fresh=fresh, stale=stale, false_alarm_rate=0.01)
    assert made.fresh.caught.frauds >= 60
    assert 0.5 < made.fresh.caught.recall < 0.95
    assert made.gained > 0.2
    assert made.by_luck < 0.001
    assert made.fresh.auc > made.stale.auc
