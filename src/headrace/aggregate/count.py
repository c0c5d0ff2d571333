"""How many: the `count` monoid, and the aggregate of that name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.aggregate.aggregate import Aggregate, Event
from headrace.aggregate.monoid import EventSql, Monoid, State
from headrace.types.field_types import Integer, Type

if TYPE_CHECKING:
    from headrace.aggregate.columns import Array, Column, RowRanges, Values


@dataclass(frozen=True)
class Count(Monoid):
    """How many values are not null; the state is an int.

    >>> Count().merge(2, 3)
    5
    """

    kind = "count"
    ddl = "BIGINT"
    empty = 0
    cell_is_state = True
    carried = True

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        del value, event_time, event_id
        return 1

    def merge(self, a: State, b: State) -> State:
        return a + b

    def fold(self, states: Iterable[State]) -> State:
        return sum(filter(None, states))

    def spark(self, value_sql: str, at: EventSql) -> str:
        del at
        return f"count({value_sql})"

    def from_spark(self, cell: Any) -> State:
        return cell or 0


@dataclass(frozen=True)
class CountOf(Aggregate):
    """How many events, or how many with a value."""

    name = "count"
    accepts = (Type,)
    needs_input = False
    nullable = False

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (Count(),)

    @property
    def type(self) -> Type:
        return Integer()

    def finish(self, states: Sequence[State], t: int) -> Any:
        del t
        return states[0]

    def exact(self, events: Sequence[Event], t: int) -> Any:
        del t
        return len(events)

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        import pyarrow as pa

        del column, t
        return pa.array(picked.counts, pa.int64())
