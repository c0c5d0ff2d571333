"""Figures from sums: equal to what libraries say of the single predictions, within what is stated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from headrace.evaluation.estimate import estimate
from headrace.evaluation.metrics import figures
from headrace.meaning.bins import quantile, score_bin, size_bin
from headrace.meaning.outcome import PredictionOutcome
from headrace.meaning.sums import Sums, of_prediction, total

THRESHOLD = 0.5


def summed(scores, truths, binary=True):
    return total(
        of_prediction(
            score, score >= THRESHOLD, PredictionOutcome("open" if truth is None else "labelled", truth), binary=binary
        )
        for score, truth in zip(scores, truths, strict=True)
    )


def drawn(seed, count=3_000, power=1.0):
    chance = np.random.default_rng(seed)
    scores = chance.random(count) ** power
    return scores.tolist(), (chance.random(count) < scores).tolist()


@pytest.mark.parametrize("power", [0.3, 1.0, 4.0])
def test_figures_are_those_of_the_library(power):
    scores, truths = drawn(1, power=power)
    found = figures(summed(scores, truths), "binary")
    assert abs(found["auc"] - metrics.roc_auc_score(truths, scores)) <= found["auc_error"] <= 0.005
    assert found["pr_auc"] == pytest.approx(metrics.average_precision_score(truths, scores), abs=0.005)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(truths, scores))
    assert found["brier"] == pytest.approx(metrics.brier_score_loss(truths, scores))
    decided = [score >= THRESHOLD for score in scores]
    for name, of in (
        ("precision", metrics.precision_score),
        ("recall", metrics.recall_score),
        ("f1", metrics.f1_score),
    ):
        assert found[name] == pytest.approx(of(truths, decided))


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=60))
def test_auc_is_never_further_from_the_exact_one_than_it_says(pairs):
    scores, truths = zip(*pairs, strict=True)
    found = figures(summed(scores, truths), "binary")
    if len(set(truths)) == 1:
        assert found["auc"] is None
    else:
        assert abs(found["auc"] - metrics.roc_auc_score(truths, scores)) <= found["auc_error"] + 1e-12


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([None, True, False])), max_size=30), st.integers(0, 30))
def test_sums_of_parts_are_the_sums_of_the_whole(pairs, cut):
    scores, truths = [score for score, _ in pairs], [truth for _, truth in pairs]
    parts = summed(scores[:cut], truths[:cut]) + summed(scores[cut:], truths[cut:])
    whole = summed(scores, truths)
    assert parts.states == whole.states
    assert parts.decided == whole.decided
    assert {at: (each.open, each.no, each.yes) for at, each in parts.scores.items()} == {
        at: (each.open, each.no, each.yes) for at, each in whole.scores.items()
    }
    assert parts.losses == pytest.approx(whole.losses)


def test_what_is_taken_away_again_leaves_nothing():
    one = summed([0.3, 0.9], [True, False])
    away = _less(one)
    assert one + away == Sums()


def test_what_changes_keeps_its_sums_where_its_counts_come_to_nothing():
    moved = total([summed([0.501], [None]), _less(summed([0.502], [None]))])
    assert moved.decided_sum["yes/open"] == pytest.approx(-0.001)
    assert (summed([0.502], [None]) + moved).decided_sum["yes/open"] == pytest.approx(0.501)
    assert sum(each.open_sum for each in (summed([0.502], [None]) + moved).scores.values()) == pytest.approx(0.501)


def _less(one):
    """What takes sums away."""
    return Sums(
        states={state: -count for state, count in one.states.items()},
        scores={at: type(each)(*(-value for value in _tuple(each))) for at, each in one.scores.items()},
        decided={name: -count for name, count in one.decided.items()},
        decided_sum={name: -value for name, value in one.decided_sum.items()},
        losses=tuple(-value for value in one.losses),
    )


def _tuple(each):
    return each.open, each.no, each.yes, each.open_sum, each.no_sum, each.yes_sum


def test_where_there_is_nothing_to_say_nothing_is_said():
    for kind in ("binary", "regression"):
        found = figures(Sums(), kind)
        assert {name for name, value in found.items() if value not in (None, 0, [])} <= {
            "states",
            "label_delay_s",
            "error_quantiles",
        }
        assert not any(isinstance(value, float) and math.isnan(value) for value in found.values())


def test_a_segment_with_one_class_only_has_no_auc_and_no_recall_where_nothing_was_positive():
    found = figures(summed([0.2, 0.7], [False, False]), "binary")
    assert found["auc"] is None
    assert found["pr_auc"] is None
    assert found["recall"] is None
    assert found["precision"] == 0.0


def test_a_score_that_is_no_probability_is_counted_and_in_no_figure():
    found = figures(summed([1.5, -0.1, 0.4], [True, False, False]), "binary")
    assert (found["count"], found["unusable"], found["negatives"], found["positives"]) == (3, 2, 1, 0)


def test_the_errors_of_numbers_are_those_of_the_library():
    chance = np.random.default_rng(2)
    truths = (chance.normal(size=2_000) * 30).tolist()
    scores = [truth + error for truth, error in zip(truths, chance.normal(size=2_000).tolist(), strict=True)]
    found = figures(summed(scores, truths, binary=False), "regression")
    errors = np.array(scores) - np.array(truths)
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(truths, scores))
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(truths, scores))
    assert found["error_quantiles"]["p90"] == pytest.approx(np.quantile(errors, 0.9), rel=0.03)
    assert found["rmse_interval"][0] < found["rmse"] < found["rmse_interval"][1]


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=100))
def test_a_quantile_is_within_its_bin(values):
    counts: dict[int, int] = {}
    for value in values:
        counts[size_bin(value)] = counts.get(size_bin(value), 0) + 1
    exact = sorted(values)[max(0, math.ceil(0.5 * len(values)) - 1)]
    assert quantile(counts, 0.5) == pytest.approx(exact, rel=0.012)


@given(st.floats(0, 1), st.floats(0, 1))
def test_bins_keep_the_order_of_scores(one, other):
    if one <= other:
        assert score_bin(one) <= score_bin(other)


def test_an_estimate_is_near_what_comes_true_when_scores_are_calibrated():
    scores, truths = drawn(3, count=20_000)
    expected, real = estimate(summed(scores, [None] * len(scores))), figures(summed(scores, truths), "binary")
    for name, value in expected.items():
        assert value == pytest.approx(real[name], abs=0.02), name


def test_an_estimate_says_nothing_of_a_truth_that_has_changed():
    scores, truths = drawn(4, count=20_000)
    turned = [not truth for truth in truths]
    expected, real = estimate(summed(scores, turned)), figures(summed(scores, turned), "binary")
    assert expected["auc"] > 0.8
    assert real["auc"] < 0.2


def test_calibration_says_how_often_it_was_so():
    scores, truths = drawn(5, count=20_000)
    bins = figures(summed(scores, truths), "binary")["calibration"]
    assert len(bins) == 10
    assert sum(each["count"] for each in bins) == 20_000
    inside = [each["interval"][0] <= each["said"] <= each["interval"][1] for each in bins]
    assert sum(inside) >= 8
