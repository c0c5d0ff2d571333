"""Distances over bins, held against the same distances over the single values."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.drift import (
    Reference,
    Statistics,
    counted,
    jensen_shannon,
    ks,
    ks_error,
    mean_shift,
    new_share,
    null_rate,
    null_shift,
    psi,
    reference_from,
    wasserstein,
    wasserstein_error,
)
from tests.drift.worlds import AMOUNT, COUNTRY

ALL = (psi, jensen_shannon, ks, ks_error, wasserstein, wasserstein_error, mean_shift, null_shift, new_share)
EDGES = (0.0, 1.0, 1.5, 4.0, 10.0)
CLOSE = 1e-9
samples = st.lists(st.floats(0, 10).map(lambda value: round(value, 3)), min_size=2, max_size=40)
beyond = st.lists(st.floats(-30, 30).map(lambda value: round(value, 3)), min_size=1, max_size=40)
BINS = Reference(rows=1, null_rate=0.0, mean=0.0, stddev=1.0, edges=EDGES, counts=(0, 1, 0, 0, 0, 0))


def reference(values):
    made = reference_from(counted(values, BINS), EDGES)
    assume(made.stddev is not None and made.stddev > 1e-3)
    return made


def sure(value):
    assert value is not None
    return value


def below(values, at):
    return sum(value <= at for value in values) / len(values)


def exact_ks(a, b):
    return max(abs(below(a, at) - below(b, at)) for at in {*a, *b})


def exact_wasserstein(a, b):
    places = sorted({*a, *b})
    return sum(abs(below(a, left) - below(b, left)) * (right - left) for left, right in itertools.pairwise(places))


def exact_jensen_shannon(a, b):
    total = 0.0
    for value in {*a, *b}:
        p, q = a.count(value) / len(a), b.count(value) / len(b)
        total += sum(share * math.log2(share / ((p + q) / 2)) for share in (p, q) if share) / 2
    return total


@given(samples, beyond)
def test_binned_ks_is_below_the_exact_one_by_no_more_than_it_says(a, b):
    made, window = reference(a), counted(b, BINS)
    exact, found, error = exact_ks(a, b), sure(ks(made, window)), sure(ks_error(made, window))
    assert found <= exact + CLOSE
    assert exact <= found + error + CLOSE


@given(samples, samples)
def test_binned_wasserstein_is_off_by_no_more_than_it_says(a, b):
    made, window = reference(a), counted(b, BINS)
    exact = exact_wasserstein(a, b) / made.stddev
    off = abs(sure(wasserstein(made, window)) - exact)
    assert off <= sure(wasserstein_error(made, window)) * (1 + CLOSE) + CLOSE


@given(samples, beyond)
def test_wasserstein_outside_of_the_edges_is_at_least_the_shift_of_the_mean(a, b):
    made, window = reference(a), counted(b, BINS)
    assert sure(wasserstein(made, window)) >= abs(sure(mean_shift(made, window)))
    outside = any(not 0 <= value <= 10 for value in b)
    assert (wasserstein_error(made, window) is None) is outside


@given(samples, beyond)
def test_binned_jensen_shannon_is_at_most_the_exact_one(a, b):
    found = sure(jensen_shannon(reference(a), counted(b, BINS)))
    assert 0 <= found <= min(1.0, exact_jensen_shannon(a, b)) + CLOSE


@given(samples, beyond)
def test_psi_is_finite_and_never_negative(a, b):
    assert 0 <= sure(psi(reference(a), counted(b, BINS))) < 50


@given(samples)
def test_a_sample_is_at_no_distance_from_itself(a):
    made, window = reference(a), counted(a, BINS)
    assert [each(made, window) for each in (psi, jensen_shannon, ks, wasserstein, mean_shift, null_shift)] == [0.0] * 6


def test_smoothing_moves_a_share_by_no_more_than_it_says():
    for rows, bins in itertools.product((1, 10, 1_000), (2, 6, 22)):
        moved = abs((rows + 0.5) / (rows + bins / 2) - 1.0)
        assert moved < bins / (2 * rows + bins)


@pytest.mark.parametrize("made", [AMOUNT, COUNTRY])
@pytest.mark.parametrize("measure", ALL)
def test_an_empty_window_says_nothing(measure, made):
    assert measure(made, Statistics()) is None


@pytest.mark.parametrize("measure", [psi, jensen_shannon, ks, wasserstein, mean_shift, new_share])
def test_a_window_of_nulls_says_only_that(measure):
    assert measure(AMOUNT, counted([None, None], AMOUNT)) is None
    assert measure(COUNTRY, counted([None, None], COUNTRY)) is None
    assert null_rate(counted([None, None], AMOUNT)) == 1.0


def test_texts_have_no_order():
    held = counted(["DE", "PL"], COUNTRY)
    assert [each(COUNTRY, held) for each in (ks, ks_error, wasserstein, mean_shift)] == [None] * 4
    assert new_share(COUNTRY, held) == 0.5
    assert new_share(AMOUNT, counted([1.0], AMOUNT)) is None


def test_a_reference_without_spread_has_no_standard_deviations():
    flat = Reference(rows=9, null_rate=0.0, mean=3.0, stddev=0.0, edges=(3.0, 3.0), counts=(0, 9, 0))
    held = counted([4.0, 4.0], flat)
    assert [each(flat, held) for each in (mean_shift, wasserstein, wasserstein_error)] == [None] * 3
    assert sure(psi(flat, held)) > 1
    assert ks(flat, held) == 1.0


def test_a_mean_that_is_no_number_is_none():
    assert mean_shift(AMOUNT, Statistics(count=2, mean=math.inf, counts=(0, 0, 0, 0, 0, 2))) is None


def test_the_null_rate_moves_by_what_is_more_than_usual():
    assert null_shift(Reference(rows=10, null_rate=0.1), Statistics(count=10, nulls=3)) == pytest.approx(0.2)
