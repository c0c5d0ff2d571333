"""A breaker trips when enough and most of the latest outcomes failed."""

from __future__ import annotations

import pytest

from headrace.models import Breaker


@pytest.mark.parametrize(
    ("outcomes", "tripped"),
    [
        ([], False),
        ([(0, 4)], False),
        ([(0, 5)], True),
        ([(5, 5)], True),
        ([(6, 5)], False),
        ([(1_000, 0), (0, 9)], False),
        ([(1_000, 0), (0, 10)], True),
        ([(0, 1_000), (11, 0)], False),
        ([(0, 1_000), (10, 0)], True),
    ],
)
def test_it_trips_at_five_failures_and_half_of_the_last_twenty(outcomes, tripped):
    breaker = Breaker()
    for ok, failed in outcomes:
        breaker.ok(ok)
        breaker.failed(failed)
    assert breaker.tripped is tripped


def test_outcomes_one_by_one_count_like_many_at_once():
    breaker = Breaker()
    told = []
    for _ in range(5):
        breaker.ok()
        breaker.failed()
        told.append(breaker.tripped)
    assert told == [False, False, False, False, True]
