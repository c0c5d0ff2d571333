"""What is known of a prediction: one state, from the labels that have arrived."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.meaning.outcome import STATES, LabelEvent, PredictionOutcome, outcome

HORIZON = 100


def told(happened, arrived, value, offset=0):
    return LabelEvent("p", happened, (arrived, 0, offset), value)


def test_without_a_label_a_prediction_is_open_until_the_horizon_and_defaulted_from_then_on():
    assert outcome(10, [], 109, HORIZON, False) == PredictionOutcome("open", None)
    assert outcome(10, [], 110, HORIZON, False) == PredictionOutcome("defaulted", False)
    assert outcome(10, [], 110, HORIZON) == PredictionOutcome("defaulted", None)


def test_a_label_counts_from_its_arrival():
    late = [told(50, 300, True)]
    assert outcome(10, late, 300, HORIZON, False).state == "defaulted"
    assert outcome(10, late, 301, HORIZON, False) == PredictionOutcome("labelled", True, 290)


def test_a_label_that_happened_after_the_horizon_changes_nothing():
    assert outcome(10, [told(111, 112, True)], 500, HORIZON, False) == PredictionOutcome("defaulted", False)


def test_a_label_before_its_prediction_counts_and_took_no_time():
    assert outcome(50, [told(40, 45, True)], 60, HORIZON) == PredictionOutcome("labelled", True, 0)


def test_the_label_that_happened_last_is_true_whatever_the_order_of_arrival():
    both = [told(70, 71, False), told(60, 99, True)]
    assert outcome(10, both, 200, HORIZON) == PredictionOutcome("corrected", False, 61)


def test_a_label_that_says_the_same_again_corrects_nothing():
    assert outcome(10, [told(60, 61, True), told(70, 71, True)], 200, HORIZON).state == "labelled"


def test_of_two_that_contradict_at_once_the_one_that_arrived_last_is_true_and_it_is_told():
    both = [told(60, 61, True), told(60, 62, False)]
    assert outcome(10, both, 200, HORIZON) == PredictionOutcome("labelled", False, 51, True)


LABELS = st.lists(
    st.builds(
        lambda happened, delay, offset, value: LabelEvent("p", happened, (happened + delay, 0, offset), value),
        st.integers(0, 300),
        st.integers(0, 300),
        st.integers(0, 50),
        st.booleans(),
    ),
    max_size=5,
)


@given(LABELS, st.integers(0, 200), st.integers(0, 800), st.randoms())
def test_every_prediction_is_in_one_state_whatever_the_order_of_its_labels(labels, at, until, chance):
    found = outcome(at, labels, until, HORIZON, False)
    mixed = list(labels)
    chance.shuffle(mixed)
    assert outcome(at, mixed, until, HORIZON, False) == found
    assert found.state in STATES
    assert (found.truth is None) == (found.state == "open")


@given(LABELS, st.integers(0, 200))
def test_what_is_known_in_the_end_does_not_depend_on_when_one_looked(labels, at):
    assert outcome(at, labels, 10_000, HORIZON, False) == outcome(at, labels, 20_000, HORIZON, False)
