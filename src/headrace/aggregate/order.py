"""Values by their place in time: `earliest`, `latest`, `latest_n`, and the aggregates `first`, `last`, `last_n`.

Order is (event time, event id). Two events that share both are copies and never reach a tile together; if they did, the
value would decide, so that even then no result depends on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from headrace.aggregate import scalar
from headrace.aggregate.aggregate import Aggregate, Event, refuse_unless_between
from headrace.aggregate.monoid import EventSql, Monoid, State
from headrace.types.field_types import List, Type, arrow_type

if TYPE_CHECKING:
    from headrace.aggregate.columns import Array, Column, RowRanges, Values

MOST_VALUES = 1_000


@dataclass(frozen=True)
class Earliest(Monoid):
    """The value of the earliest event; the state is (event time, event id, value), or None.

    >>> from headrace.types.field_types import String
    >>> Earliest(String()).merge((1, "b", "x"), (1, "a", "y"))
    (1, 'a', 'y')
    """

    input: Type
    kind = "earliest"
    empty = None

    @property
    def ddl(self) -> str:
        return placed_ddl(self.input)

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        return (event_time, event_id, value)

    def merge(self, a: State, b: State) -> State:
        if a is None or b is None:
            return b if a is None else a
        return min(a, b)

    def spark(self, value_sql: str, at: EventSql) -> str:
        return f"min({placed_sql(self.input, value_sql, at)})"

    def from_spark(self, cell: Any) -> State:
        return None if cell is None else (cell["time"], cell["id"], cell["value"])

    def pack(self, state: State) -> Any:
        return None if state is None else [state[0], state[1], scalar.pack(self.input, state[2])]

    def unpack(self, packed: Any) -> State:
        return None if packed is None else (packed[0], packed[1], scalar.unpack(self.input, packed[2]))


@dataclass(frozen=True)
class Latest(Earliest):
    """The value of the latest event; the state is (event time, event id, value), or None.

    >>> from headrace.types.field_types import String
    >>> Latest(String()).merge((1, "b", "x"), (1, "a", "y"))
    (1, 'b', 'x')
    """

    kind = "latest"

    def merge(self, a: State, b: State) -> State:
        if a is None or b is None:
            return b if a is None else a
        return max(a, b)

    def spark(self, value_sql: str, at: EventSql) -> str:
        return f"max({placed_sql(self.input, value_sql, at)})"


@dataclass(frozen=True)
class PlacedValues(Monoid):
    """What monoids share whose state is a tuple of (event time, event id, value)."""

    input: Type
    empty = ()

    @property
    def ddl(self) -> str:
        return f"ARRAY<{placed_ddl(self.input)}>"

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        return ((event_time, event_id, value),)

    def merge(self, a: State, b: State) -> State:
        if not a or not b:
            return a or b
        return self.fold((a, b))

    def from_spark(self, cell: Any) -> State:
        return tuple((row["time"], row["id"], row["value"]) for row in cell or ())

    def pack(self, state: State) -> Any:
        return [[time, id, scalar.pack(self.input, value)] for time, id, value in state]

    def unpack(self, packed: Any) -> State:
        return tuple((time, id, scalar.unpack(self.input, value)) for time, id, value in packed)


@dataclass(frozen=True)
class LatestN(PlacedValues):
    """The values of the latest n events; the state is a tuple of (event time, event id, value), newest first.

    >>> from headrace.types.field_types import Boolean
    >>> LatestN(Boolean(), 2).merge(((3, "c", True), (1, "a", True)), ((2, "b", False),))
    ((3, 'c', True), (2, 'b', False))
    """

    n: int
    kind = "latest_n"

    def fold(self, states: Iterable[State]) -> State:
        return tuple(sorted(chain(*filter(None, states)), reverse=True)[: self.n])

    def spark(self, value_sql: str, at: EventSql) -> str:
        placed = placed_sql(self.input, value_sql, at)
        return f"max_by({placed}, {placed}, {self.n})"


def placed_ddl(kind: Type) -> str:
    """The Spark type of a value with its place in time."""
    return f"STRUCT<time: BIGINT, id: STRING, value: {scalar.ddl(kind)}>"


def placed_sql(kind: Type, value_sql: str, at: EventSql) -> str:
    """A value with its place in time, in Spark: null when the value is, for then aggregates pass over it."""
    value = scalar.sql(kind, value_sql)
    placed = f"named_struct('time', {at.time_micros}, 'id', {at.id}, 'value', {value})"
    return f"CASE WHEN {value} IS NOT NULL THEN {placed} END"


@dataclass(frozen=True)
class First(Aggregate):
    """The value of the earliest event."""

    name = "first"
    is_ordered = True

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (Earliest(self.fed),)

    @property
    def type(self) -> Type:
        return self.fed

    def finish(self, states: Sequence[State], t: int) -> Any:
        del t
        return None if states[0] is None else states[0][2]

    def exact(self, events: Sequence[Event], t: int) -> Any:
        del t
        return sorted(events)[0][2] if events else None

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        from headrace.aggregate.columns import take_values

        del t
        return take_values(column.values, picked.first, picked.counts > 0, self.type)


@dataclass(frozen=True)
class Last(First):
    """The value of the latest event."""

    name = "last"

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (Latest(self.fed),)

    def exact(self, events: Sequence[Event], t: int) -> Any:
        del t
        return sorted(events)[-1][2] if events else None

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        from headrace.aggregate.columns import take_values

        del t
        return take_values(column.values, picked.last, picked.counts > 0, self.type)


@dataclass(frozen=True)
class LastN(Aggregate):
    """The values of the latest n events, newest first."""

    n: int
    name = "last_n"
    is_ordered = True

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless_between(self.n, "`n` of last_n", 1, MOST_VALUES)

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (LatestN(self.fed, self.n),)

    @property
    def type(self) -> Type:
        return List(self.fed)

    def finish(self, states: Sequence[State], t: int) -> Any:
        del t
        return [value for _, _, value in states[0]] or None

    def exact(self, events: Sequence[Event], t: int) -> Any:
        del t
        return [value for _, _, value in reversed(sorted(events)[-self.n :])] or None

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        import numpy as np
        import pyarrow as pa

        from headrace.aggregate.columns import ragged

        del t
        upto = np.concatenate([[0], np.cumsum(picked.high - picked.low)])
        later = upto[picked.start[1:]][picked.rows] - upto[1:]
        newest = picked.mapped(np.maximum(picked.low, picked.high - np.maximum(self.n - later, 0)), picked.high)
        places, _ = ragged(newest.low, newest.high)
        lengths = newest.counts
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        # Newest first: each row's places from its end.
        rows = np.repeat(np.arange(len(lengths)), lengths)
        places = places[offsets[rows] + offsets[rows + 1] - 1 - np.arange(len(places))]
        values = column.values.take(pa.array(places)).cast(arrow_type(self.fed))
        # A list that begins at null is null.
        starts = pa.array(offsets, pa.int32(), mask=np.append(lengths == 0, False))
        return pa.ListArray.from_arrays(starts, values).cast(arrow_type(self.type))
