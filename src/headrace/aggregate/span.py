"""When: the `span` monoid, and the aggregates `time_since_last` and `time_since_first`.

Every view keeps a span of all its events besides: n is a tile row's version, and the ends tell which neighbouring tiles
belong to one session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.aggregate.aggregate import Aggregate, Event
from headrace.aggregate.monoid import EventSql, Monoid, State
from headrace.clock import SECOND
from headrace.types.field_types import Float, Type

if TYPE_CHECKING:
    from headrace.aggregate.columns import Array, Column, RowRanges, Values


@dataclass(frozen=True)
class TimeSpan(Monoid):
    """How many events with a value, and the first and last of their times; the state is (n, min, max).

    >>> TimeSpan().merge((1, 5, 5), (2, 3, 4))
    (3, 3, 5)
    """

    kind = "span"
    ddl = "STRUCT<n: BIGINT, min: BIGINT, max: BIGINT>"
    empty = (0, None, None)

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        del value, event_id
        return (1, event_time, event_time)

    def merge(self, a: State, b: State) -> State:
        if not a[0] or not b[0]:
            return b if not a[0] else a
        return (a[0] + b[0], min(a[1], b[1]), max(a[2], b[2]))

    def spark(self, value_sql: str, at: EventSql) -> str:
        time = f"CASE WHEN {value_sql} IS NOT NULL THEN {at.time_micros} END"
        return f"named_struct('n', count({value_sql}), 'min', min({time}), 'max', max({time}))"

    def from_spark(self, cell: Any) -> State:
        return (cell["n"], cell["min"], cell["max"])

    def pack(self, state: State) -> Any:
        return list(state)

    def unpack(self, packed: Any) -> State:
        return tuple(packed)


def _seconds(t: int, event_time: int) -> float:
    """Seconds since an event, never below zero."""
    return max(t - event_time, 0) / SECOND


def _column_seconds(column: Column, picked: RowRanges, places: Array, t: Array) -> Values:
    """Seconds since the events at some places, one for each row."""
    import numpy as np

    from headrace.aggregate.columns import finite_values

    there = picked.counts > 0
    times = np.append(column.times, 0)[np.where(there, places, -1)]
    return finite_values(np.maximum(t - times, 0) / SECOND, there)


@dataclass(frozen=True)
class TimeSinceLast(Aggregate):
    """Seconds from the latest event to t, or from the latest with a value.

    Zero when that event's clock ran ahead of t, which a stream's `max_clock_skew` allows: nothing happened after now.
    """

    name = "time_since_last"
    accepts = (Type,)
    needs_input = False

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (TimeSpan(),)

    @property
    def type(self) -> Type:
        return Float()

    def finish(self, states: Sequence[State], t: int) -> Any:
        n, _, last = states[0]
        return _seconds(t, last) if n else None

    def exact(self, events: Sequence[Event], t: int) -> Any:
        return _seconds(t, max(time for time, _, _ in events)) if events else None

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        return _column_seconds(column, picked, picked.last, t)


@dataclass(frozen=True)
class TimeSinceFirst(TimeSinceLast):
    """Seconds from the earliest event to t, or from the earliest with a value."""

    name = "time_since_first"

    def finish(self, states: Sequence[State], t: int) -> Any:
        n, first, _ = states[0]
        return _seconds(t, first) if n else None

    def exact(self, events: Sequence[Event], t: int) -> Any:
        return _seconds(t, min(time for time, _, _ in events)) if events else None

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        return _column_seconds(column, picked, picked.first, t)
