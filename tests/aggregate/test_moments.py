"""The spread of large numbers keeps its digits, as a sum of squares would not."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.aggregate import Moments, aggregate
from headrace.types.field_types import Float
from tests.aggregate.cases import folded


def true_variance(values: list[float]) -> float:
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    return float(sum((value - mean) ** 2 for value in exact) / (len(exact) - 1))


def test_a_tiny_variance_at_a_mean_of_a_billion_is_right() -> None:
    values = [1e9 + (at % 7) / 16 for at in range(1_000)]
    ((n, _, m2),) = [folded(Moments(Float()), [(0, str(at), value) for at, value in enumerate(values)])]
    true = true_variance(values)
    assert m2 / (n - 1) == pytest.approx(true, rel=1e-6)
    squares = sum(value * value for value in values) - sum(values) ** 2 / len(values)
    assert squares / (n - 1) != pytest.approx(true, rel=0.5)


def test_the_equality_rule_refuses_what_a_sum_of_squares_gives() -> None:
    values = [1e9 + (at % 7) / 16 for at in range(1_000)]
    events = [(0, str(at), value) for at, value in enumerate(values)]
    squares = sum(value * value for value in values) - sum(values) ** 2 / len(values)
    for name, wrong in (("variance", abs(squares) / 999), ("stddev", (abs(squares) / 999) ** 0.5)):
        asked = aggregate(name, Float())
        assert not asked.close(wrong, asked.exact(events, 0), events)


@given(
    centre=st.floats(-1e12, 1e12),
    offsets=st.lists(st.floats(-1, 1), min_size=2, max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=4),
)
def test_the_spread_around_any_centre_is_right_in_any_tiles(
    centre: float, offsets: list[float], cuts: list[int]
) -> None:
    events = [(0, str(at), centre + offset) for at, offset in enumerate(offsets)]
    ends = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    monoid = Moments(Float())
    state = monoid.fold(folded(monoid, events[a:b]) for a, b in pairwise(ends))
    for name in ("variance", "stddev"):
        asked = aggregate(name, Float())
        assert asked.close(asked.finish([state], 0), asked.exact(events, 0), events)


def test_the_definition_agrees_with_fractions() -> None:
    values = [1e9 + 0.25, 1e9 + 0.5, 1e9]
    asked = aggregate("variance", Float())
    assert asked.exact([(0, str(at), value) for at, value in enumerate(values)], 0) == true_variance(values)
