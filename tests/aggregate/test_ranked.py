"""Quantiles of the same tiles are the same, whichever were merged first; and what is kept is bounded."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from datasketches import kll_doubles_sketch

from headrace.aggregate import Quantiles, aggregate
from headrace.aggregate.kll import values_of
from headrace.aggregate.quantiles import K
from headrace.aggregate.ranked import MOST, Ranked, is_ranked, read_ranked, write_ranked
from headrace.types.field_types import Float

MONOID = Quantiles(Float())
SHARES = (0.0, 0.25, 0.5, 0.99, 1.0)

SPREADS: dict[str, Callable[[random.Random], float]] = {
    "amounts": lambda draws: round(draws.lognormvariate(3, 2), 2),
    "both signs": lambda draws: draws.gauss(0, 100),
    "far from zero": lambda draws: 1e9 + draws.random(),
    "every power of two": lambda draws: draws.choice((-1, 1)) * 2.0 ** draws.uniform(-1_000, 1_000),
    "few different ones": lambda draws: float(draws.randrange(50)),
    "tiny ones": lambda draws: draws.choice((-0.0, 0.0, 5e-324, -5e-324, 1e-310)),
}


def tile(values: Sequence[float]) -> bytes:
    """The sketch of a tile, as Spark writes it."""
    sketch = kll_doubles_sketch(K)
    for value in values:
        sketch.update(value)
    return bytes(sketch.serialize())


def tiles_of(spread: str, count: int, size: int) -> tuple[list[bytes], list[float]]:
    draws = random.Random(spread)
    values = [[SPREADS[spread](draws) for _ in range(size)] for _ in range(count)]
    return [tile(each) for each in values], [value for each in values for value in each]


def in_levels(tiles: Sequence[bytes], width: int) -> bytes:
    """The tiles merged as a store with levels would have merged them."""
    rows = [MONOID.fold(tiles[start : start + width]) for start in range(0, len(tiles), width)]
    return MONOID.fold(rows) if len(rows) == 1 else in_levels(rows, width)


@pytest.mark.parametrize("spread", SPREADS)
def test_the_same_tiles_give_the_same_bytes_in_any_order_and_through_any_levels(spread: str) -> None:
    tiles, _ = tiles_of(spread, 12, 600)
    whole, draws = MONOID.fold(tiles), random.Random(7)
    assert {in_levels(tiles, width) for width in (2, 5, 12)} == {whole}
    for _ in range(3):
        draws.shuffle(tiles)
        assert in_levels(tiles, draws.randint(2, 9)) == whole
    one_by_one = MONOID.empty
    for each in tiles:
        one_by_one = MONOID.merge(one_by_one, each)
    assert one_by_one == whole


@pytest.mark.parametrize("spread", SPREADS)
def test_quantiles_of_many_tiles_are_within_the_error_of_the_sketches(spread: str) -> None:
    tiles, values = tiles_of(spread, 6, 1_500)
    events = [(0, "id", value) for value in values]
    state = MONOID.fold(tiles)
    for q in SHARES:
        asked = aggregate("quantile", Float(), q=q)
        assert asked.close(asked.finish([state], 0), asked.exact(events, 0), events), q


@pytest.mark.parametrize("spread", SPREADS)
def test_what_is_kept_has_a_bound_and_all_of_the_weight(spread: str) -> None:
    draws = random.Random(spread)
    values = [SPREADS[spread](draws) for _ in range(2 * MOST)]
    ranked = read_ranked(MONOID.fold([MONOID.lift(value, 0, "") for value in values]))
    assert len(ranked.values) <= MOST
    assert ranked.weights.sum() == len(values)
    assert ranked.values[0] == min(values) + 0.0
    assert (np.diff(ranked.values) > 0).all()


def test_as_many_different_values_as_there_are_places_are_exact() -> None:
    values = random.Random(3).sample(range(10**6), MOST)
    events = [(0, "id", float(value)) for value in values]
    state = MONOID.fold([MONOID.lift(value, 0, "") for value in values])
    for q in SHARES:
        asked = aggregate("quantile", Float(), q=q)
        assert asked.finish([state], 0) == asked.exact(events, 0)


def test_a_weight_comes_back_as_it_was_in_however_many_bytes() -> None:
    for weight in (1, 255, 256, 2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**63 - 1):
        ranked = Ranked(np.array([1.0, 2.0]), np.array([1, weight]), 7)
        back = read_ranked(write_ranked(ranked))
        assert (back.values.tolist(), back.weights.tolist(), back.shift) == ([1.0, 2.0], [1, weight], 7)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 199, 200, 201, 202, 500, 5_000, 100_000])
def test_a_sketch_has_the_values_that_its_library_finds_in_it(size: int) -> None:
    sketch = kll_doubles_sketch(K)
    for value in range(size):
        sketch.update(float(value * 7919 % 100_003))
    whole, counts = values_of(bytes(sketch.serialize()) + b"padded")
    weights = np.repeat([1 << level for level in range(len(counts))], counts).tolist()
    assert sorted(zip(np.frombuffer(whole), weights, strict=True)) == sorted(sketch)
    assert sum(weights) == size


def test_a_sketch_that_is_cut_off_or_none_is_refused() -> None:
    whole = tile([float(value) for value in range(1_000)])
    for broken in (b"", b"{}", bytes(40), whole[:-8], whole[:25], whole[:8] + bytes(12) + whole[20:]):
        with pytest.raises((ValueError, struct.error)):
            values_of(broken)


def test_a_sketch_of_a_tile_is_never_taken_for_what_was_merged() -> None:
    assert [is_ranked(tile([1.0] * size)) for size in (0, 1, 2, 500)] == [False] * 4
    assert MONOID.fold([tile([])]) is None
    assert is_ranked(MONOID.fold([tile([1.0])]))
