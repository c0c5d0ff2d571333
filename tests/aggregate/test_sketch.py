"""Sketches stay within the error they declare when they are merged tile by tile."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headrace.aggregate import Aggregate, aggregate
from headrace.types.field_types import Float, Integer, String

MANY = 20_000


def merged(asked: Aggregate, events: list[tuple[int, str, Any]], tiles: int) -> Any:
    (monoid,) = asked.monoids
    cut = [monoid.fold(monoid.lift(v, t, i) for t, i, v in events[tile::tiles]) for tile in range(tiles)]
    return asked.finish([monoid.fold(cut)], 0)


def test_count_distinct_of_many_is_within_its_declared_error() -> None:
    asked = aggregate("count_distinct", String())
    events = [(at, "id", f"user-{at % (MANY // 2)}") for at in range(MANY)]
    got = merged(asked, events, 5)
    assert asked.close(got, got, events)
    assert not asked.close(int(got * 1.2), got, events)


@pytest.mark.parametrize("q", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_quantiles_of_many_are_within_their_declared_rank_error(q: float) -> None:
    asked = aggregate("quantile", Float(), q=q)
    draws = random.Random(7)
    events = [(at, "id", draws.lognormvariate(3, 2)) for at in range(MANY)]
    got = merged(asked, events, 5)
    assert asked.close(got, asked.exact(events, 0), events)
    assert not asked.close(got + 0.001, got, events)
    far = aggregate("quantile", Float(), q=0.5 if q != 0.5 else 0.6).exact(events, 0)
    assert not asked.close(got, far, events)


def test_top_k_of_more_values_than_it_holds_is_within_its_declared_error() -> None:
    asked = aggregate("top_k", Integer(), k=5)
    draws = random.Random(7)
    events = [(at, "id", int(draws.paretovariate(0.4))) for at in range(MANY)]
    assert len({value for _, _, value in events}) > 768
    got = merged(asked, events, 5)
    assert [row["item"] for row in got] == [1, 2, 3, 4, 5]
    assert asked.close(got, asked.exact(events, 0), events)
    shifted = [{**row, "count": row["count"] + 100} for row in got]
    assert not asked.close(shifted, got, events)
    assert not asked.close(got[1:], got, events)


def test_top_k_of_as_many_values_as_it_holds_is_exact() -> None:
    asked = aggregate("top_k", Integer(), k=5)
    events = [(at, "id", at % 768) for at in range(768 * 2 + 3)]
    assert merged(asked, events, 4) == asked.exact(events, 0)


def test_quantiles_of_up_to_two_hundred_values_are_exact() -> None:
    asked = aggregate("quantile", Integer(), q=0.07)
    events = [(at, "id", at * 7919 % 1009) for at in range(200)]
    true = asked.exact(events, 0)
    assert merged(asked, events, 9) == true
    neighbour = min(value for _, _, value in events if value > true)
    assert not asked.close(float(neighbour), true, events)
