"""What counts as equal: the last digits of a sum made in another order, and nothing larger."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.serve.dimensions import Dimensions
from headrace.skew.compare import Against, judged
from headrace.skew.prediction import SCORE, Prediction, followed
from tests.skew.world import PATIENCE, World, cards, payments, plan, tile_set

ROUNDING, ERROR = 1 + 1e-14, 1 + 1e-7
"""A sum in another order, and one that is wrong in its eighth digit."""


@pytest.fixture
def world():
    return World()


def change_spend(world, factor):
    """A sample whose sum is this many times what it should be."""
    return world.kept(
        world.read(world.rows()), change=lambda values: values | {"spend_1h": values["spend_1h"] * factor}
    )


def test_a_sum_in_another_order_is_equal_and_one_that_is_wrong_in_its_eighth_digit_is_a_defect(world):
    assert world.wrong(change_spend(world, ROUNDING)) is None
    found = world.wrong(change_spend(world, ERROR))
    assert (found.cause, found.features) == ("defect", ("spend_1h",))


def test_features_are_mis_ordered_only_where_they_have_the_very_values_of_each_other(world):
    def swap(values):
        return values | {"spend_1h": values["largest_1h"] * ERROR, "largest_1h": values["spend_1h"] * ERROR}

    assert world.wrong(world.kept(world.read(world.rows()), change=swap)).evidence.kind == "unexplained"


@pytest.mark.parametrize(("factor", "cause"), [(ROUNDING, None), (ERROR, "defect")])
def test_a_score_that_does_not_follow_from_what_the_model_was_given_is_a_defect(world, factor, cause):
    model = hr.model("risk", hr.feature_set("risky", [cards]), stream=payments)
    sample = world.kept(world.read(world.rows()))
    against = Against(cards, tile_set.grain, plan.versions["cards"], PATIENCE)
    given = Prediction(
        model, 1, ("predictions.risk", 0, 0), sample.t, sample.values, {"card": "a"}, {}, 0.25, (sample,)
    )
    found = followed(given, judged(against, world.past(), [sample]), Dimensions(), 0.25 * factor)
    assert [(each.name, each.cause) for each in found] == [(SCORE, cause)]
