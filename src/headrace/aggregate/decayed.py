"""Sums that fade: the `decayed` monoid, and the aggregate `decayed_sum`.

An event counts half as much after every half-life. The state is a sum as of a moment; Spark takes the start of the tile
for it, so that with a grain of at most the half-life no weight in a tile exceeds two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.aggregate import real, scalar
from headrace.aggregate.aggregate import Aggregate, Event, refuse_unless_between
from headrace.aggregate.monoid import EventSql, Monoid, State
from headrace.clock import LONGEST
from headrace.types.field_types import Float, Type

if TYPE_CHECKING:
    from headrace.aggregate.columns import Array, Column, Merge, RowRanges, States, Values


@dataclass(frozen=True)
class Decayed(Monoid):
    """The sum of x * 2 ** ((event time - ref) / half_life); the state is (ref, sum), or None.

    >>> Decayed(Float(), half_life=10).merge((0, 4.0), (10, 1.0))
    (10, 3.0)
    """

    input: Type
    half_life: int
    kind = "decayed"
    ddl = "STRUCT<ref: BIGINT, total: DOUBLE>"
    empty = None

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        del event_id
        return (event_time, float(value))

    def merge(self, a: State, b: State) -> State:
        if a is None or b is None:
            return b if a is None else a
        (earlier, faded), (later, total) = (a, b) if a[0] <= b[0] else (b, a)
        return (later, faded * weight(earlier - later, self.half_life) + total)

    def spark(self, value_sql: str, at: EventSql) -> str:
        x = f"CAST({value_sql} AS DOUBLE)"
        faded = f"{x} * power(2D, ({at.time_micros} - {at.tile_start_micros}) / {self.half_life}D)"
        state = f"named_struct('ref', max({at.tile_start_micros}), 'total', sum({faded}))"
        return f"CASE WHEN count({x}) > 0 THEN {state} END"

    def from_spark(self, cell: Any) -> State:
        return None if cell is None else (cell["ref"], cell["total"])

    def pack(self, state: State) -> Any:
        return None if state is None else [state[0], real.pack(state[1])]

    def unpack(self, packed: Any) -> State:
        return None if packed is None else (packed[0], float(packed[1]))


def weight(age: int, half_life: int) -> float:
    """How much an event counts that happened `age` microseconds from now, negative before.

    >>> weight(-20, half_life=10)
    0.25
    """
    try:
        return float(2.0 ** (age / half_life))
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class DecayedSum(Aggregate):
    """A sum in which an event counts half as much after every half-life; 0 of nothing, like a sum."""

    half_life: int
    name = "decayed_sum"
    accepts = scalar.NUMBERS
    is_rounded = True

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless_between(self.half_life, "`half_life` of decayed_sum in microseconds", 1, LONGEST)

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (Decayed(self.fed, self.half_life),)

    @property
    def type(self) -> Type:
        return Float()

    def finish(self, states: Sequence[State], t: int) -> Any:
        if states[0] is None:
            return 0.0
        ref, total = states[0]
        return real.finite(total * weight(ref - t, self.half_life))

    def exact(self, events: Sequence[Event], t: int) -> Any:
        return real.total(float(value) * weight(time - t, self.half_life) for time, _, value in events)

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        import numpy as np

        from headrace.aggregate.columns import finite_values

        def make() -> tuple[States, tuple[Any, ...], Merge]:
            return (column.times, column.floats), (np.iinfo(np.int64).min // 4, 0.0), merge

        def merge(a: States, b: States) -> States:
            ref = np.maximum(a[0], b[0])
            faded, other_faded = (total * np.exp2((at - ref) / self.half_life) for at, total in (a, b))
            return ref, faded + other_faded

        ref, total = column.folded(f"decayed {self.half_life}", make, picked)
        with np.errstate(all="ignore"):
            return finite_values(np.where(picked.counts > 0, total * np.exp2((ref - t) / self.half_life), 0.0))

    def close(self, a: Any, b: Any, events: Sequence[Event]) -> bool:
        # An event may lie a little after t and then counts more than its size.
        results = [abs(value) for value in (a, b) if value is not None]
        return real.near(a, b, max([real.size(float(value) for _, _, value in events), *results]))
