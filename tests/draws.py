"""Cases drawn outside a property test: a list that one Spark query or one world takes together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def draw_cases(strategy: SearchStrategy[T], tries: int, start: int, take: Callable[[T], None]) -> None:
    """Hand so many drawn values to `take`; the same seed draws the same ones."""

    @settings(max_examples=tries, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(value: T) -> None:
        take(value)

    seed(start)(collect)()
