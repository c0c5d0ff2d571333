"""Spread: the `moments` monoid (n, mean, M2), and the aggregates `variance` and `stddev`.

A sum of squares would be simpler and wrong: at a mean of 1e9 it has no digit left for a variance of 1. M2, the sum of
squared distances from the mean, keeps them, and two of them join by Chan's formula.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from headrace.aggregate import real, scalar
from headrace.aggregate.aggregate import Aggregate, Event
from headrace.aggregate.monoid import EventSql, Monoid, State
from headrace.types.field_types import Float, Type

if TYPE_CHECKING:
    from headrace.aggregate.columns import Array, Column, RowRanges, States, Values


@dataclass(frozen=True)
class Moments(Monoid):
    """Count, mean and sum of squared distances from it; the state is (n, mean, M2).

    >>> Moments(Float()).merge((1, 1.0, 0.0), (1, 3.0, 0.0))
    (2, 2.0, 2.0)
    """

    input: Type
    kind = "moments"
    ddl = "STRUCT<n: BIGINT, mean: DOUBLE, m2: DOUBLE>"
    empty = (0, 0.0, 0.0)

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        del event_time, event_id
        return (1, float(value), 0.0)

    def merge(self, a: State, b: State) -> State:
        (n, mean, m2), (other_n, other_mean, other_m2) = a, b
        if not n:
            return b
        if not other_n:
            return a
        both = n + other_n
        apart = other_mean - mean
        return (both, mean + apart * (other_n / both), m2 + other_m2 + apart * apart * (n * other_n / both))

    def spark(self, value_sql: str, at: EventSql) -> str:
        del at
        x = f"CAST({value_sql} AS DOUBLE)"
        return f"named_struct('n', count({x}), 'mean', avg({x}), 'm2', var_pop({x}) * count({x}))"

    def from_spark(self, cell: Any) -> State:
        return (cell["n"], cell["mean"], cell["m2"]) if cell["n"] else self.empty

    def pack(self, state: State) -> Any:
        n, mean, m2 = state
        return [n, real.pack(mean), real.pack(m2)]

    def unpack(self, packed: Any) -> State:
        n, mean, m2 = packed
        return (n, float(mean), float(m2))


@dataclass(frozen=True)
class Variance(Aggregate):
    """The sample variance; null with fewer than two values."""

    name = "variance"
    accepts = scalar.NUMBERS
    is_rounded = True

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (Moments(self.fed),)

    @property
    def type(self) -> Type:
        return Float()

    def finish(self, states: Sequence[State], t: int) -> Any:
        del t
        ((n, _, m2),) = states
        return real.finite(m2 / (n - 1)) if n > 1 else None

    def exact(self, events: Sequence[Event], t: int) -> Any:
        del t
        values = [Fraction(value) for _, _, value in events]
        return real.rounded(_variance(values)) if len(values) > 1 else None

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        import numpy as np

        from headrace.aggregate.columns import finite_values

        del t
        n, _, m2 = column.folded("moments", lambda: (_of_values(column.floats), (0, 0.0, 0.0), _merge_arrays), picked)
        with np.errstate(all="ignore"):
            return finite_values(self._spread(m2 / np.maximum(n - 1, 1)), n > 1)

    def _spread(self, variances: Array) -> Array:
        return variances

    def close(self, a: Any, b: Any, events: Sequence[Event]) -> bool:
        return _near(_root(a), _root(b), events)


@dataclass(frozen=True)
class Stddev(Variance):
    """The sample standard deviation; null with fewer than two values."""

    name = "stddev"

    def finish(self, states: Sequence[State], t: int) -> Any:
        return _root(super().finish(states, t))

    def exact(self, events: Sequence[Event], t: int) -> Any:
        return _root(super().exact(events, t))

    def _spread(self, variances: Array) -> Array:
        import numpy as np

        return np.sqrt(variances)

    def close(self, a: Any, b: Any, events: Sequence[Event]) -> bool:
        return _near(a, b, events)


def _of_values(values: Array) -> States:
    import numpy as np

    return np.ones(len(values), dtype=np.int64), values, np.zeros(len(values))


def _merge_arrays(a: States, b: States) -> States:
    """`Moments.merge` of whole arrays."""
    import numpy as np

    (n, mean, m2), (other_n, other_mean, other_m2) = a, b
    both = n + other_n
    whole = np.maximum(both, 1)
    apart = other_mean - mean
    joined = mean + apart * (other_n / whole), m2 + other_m2 + apart * apart * (n * (other_n / whole))
    empty, other_empty = n == 0, other_n == 0
    return (
        both,
        np.where(empty, other_mean, np.where(other_empty, mean, joined[0])),
        np.where(empty, other_m2, np.where(other_empty, m2, joined[1])),
    )


def _variance(values: Sequence[Fraction]) -> Fraction:
    mean = sum(values, Fraction(0)) / len(values)
    return sum(((value - mean) ** 2 for value in values), Fraction(0)) / (len(values) - 1)


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def _near(a: float | None, b: float | None, events: Sequence[Event]) -> bool:
    """Whether two deviations are equal: within 1e-9 of themselves, or as near as doubles of that size can tell.

    1e-9 of the sum of sizes would let a sum of squares pass. What doubles cannot tell is a distance from the mean below
    some roundings of the greatest value.
    """
    values = [float(value) for _, _, value in events]
    if math.isinf(real.size(value * value for value in values)):
        return True
    if a is None or b is None:
        return a is b
    blur = 64 * sys.float_info.epsilon * max(map(abs, values), default=0.0)
    return abs(a - b) <= real.TOLERANCE * max(a, b) + blur
