"""Extremes: the monoids `least` and `greatest`, and the aggregates `min` and `max`.

Text is ordered by code point, which is the order of its UTF-8 bytes in Spark; false is less than true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.aggregate import scalar
from headrace.aggregate.aggregate import Aggregate, Event
from headrace.aggregate.monoid import EventSql, Monoid, State
from headrace.types.field_types import Decimal, Type

if TYPE_CHECKING:
    from headrace.aggregate.columns import Array, Column, RowRanges, Values


@dataclass(frozen=True)
class Least(Monoid):
    """The least value; the state is the value, or None.

    >>> from headrace.types.field_types import String
    >>> Least(String()).merge("b", "a")
    'a'
    """

    input: Type
    kind = "least"
    empty = None
    cell_is_state = True

    @property
    def ddl(self) -> str:
        return scalar.ddl(self.input)

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        del event_time, event_id
        return value

    def merge(self, a: State, b: State) -> State:
        if a is None or b is None:
            return b if a is None else a
        return min(a, b)

    def fold(self, states: Iterable[State]) -> State:
        return min([state for state in states if state is not None], default=None)

    def spark(self, value_sql: str, at: EventSql) -> str:
        del at
        return f"min({scalar.sql(self.input, value_sql)})"

    def from_spark(self, cell: Any) -> State:
        return cell

    @property
    def carried(self) -> bool:
        return not isinstance(self.input, Decimal)

    def pack(self, state: State) -> Any:
        return scalar.pack(self.input, state)

    def unpack(self, packed: Any) -> State:
        return scalar.unpack(self.input, packed)


@dataclass(frozen=True)
class Greatest(Least):
    """The greatest value; the state is the value, or None.

    >>> from headrace.types.field_types import String
    >>> Greatest(String()).merge("b", "a")
    'b'
    """

    kind = "greatest"

    def merge(self, a: State, b: State) -> State:
        if a is None or b is None:
            return b if a is None else a
        return max(a, b)

    def fold(self, states: Iterable[State]) -> State:
        return max([state for state in states if state is not None], default=None)

    def spark(self, value_sql: str, at: EventSql) -> str:
        del at
        return f"max({scalar.sql(self.input, value_sql)})"


@dataclass(frozen=True)
class Min(Aggregate):
    """The least value."""

    name = "min"

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (Least(self.fed),)

    @property
    def type(self) -> Type:
        return self.fed

    def finish(self, states: Sequence[State], t: int) -> Any:
        del t
        return states[0]

    def exact(self, events: Sequence[Event], t: int) -> Any:
        del t
        return min((value for _, _, value in events), default=None)

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        import numpy as np

        del t
        return self._extremes(column, picked, np.minimum, len(column.codes))

    def _extremes(
        self, column: Column, picked: RowRanges, choose: Callable[[Array, Array], Array], empty: int
    ) -> Values:
        from headrace.aggregate.columns import take_values

        make = (column.codes,), (empty,), lambda a, b: (choose(a[0], b[0]),)
        (codes,) = column.folded(self.name, lambda: make, picked)
        return take_values(column.distinct, codes, picked.counts > 0, self.type)


@dataclass(frozen=True)
class Max(Min):
    """The greatest value."""

    name = "max"

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (Greatest(self.fed),)

    def exact(self, events: Sequence[Event], t: int) -> Any:
        del t
        return max((value for _, _, value in events), default=None)

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        import numpy as np

        del t
        return self._extremes(column, picked, np.maximum, -1)
