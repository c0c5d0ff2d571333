"""The events themselves: the monoid that keeps them all, for windows with `resolution="exact"`.

Its size grows with the events, so such windows are bounded where they are declared. No aggregate stands beside it:
whoever reads the state picks the events inside the window and calls the aggregate's `exact`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from headrace.aggregate import scalar
from headrace.aggregate.monoid import EventSql, Monoid, State
from headrace.aggregate.order import placed_ddl, placed_sql
from headrace.schema.types import Type


@dataclass(frozen=True)
class Events(Monoid):
    """Every value with its place in time; the state is a sorted tuple of (event time, event id, value).

    >>> from headrace.schema.types import Integer
    >>> Events(Integer()).merge(((2, "b", 7),), ((1, "a", 7),))
    ((1, 'a', 7), (2, 'b', 7))
    """

    input: Type
    kind = "events"
    empty = ()

    @property
    def ddl(self) -> str:
        return f"ARRAY<{placed_ddl(self.input)}>"

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        return ((event_time, event_id, value),)

    def merge(self, a: State, b: State) -> State:
        if not a or not b:
            return a or b
        return tuple(sorted(a + b))

    def fold(self, states: Iterable[State]) -> State:
        return tuple(sorted(chain(*states)))

    def spark(self, value_sql: str, at: EventSql) -> str:
        return f"array_sort(collect_list({placed_sql(self.input, value_sql, at)}))"

    def from_spark(self, cell: Any) -> State:
        return tuple((row["time"], row["id"], row["value"]) for row in cell or ())

    def pack(self, state: State) -> Any:
        return [[time, id, scalar.pack(self.input, value)] for time, id, value in state]

    def unpack(self, packed: Any) -> State:
        return tuple((time, id, scalar.unpack(self.input, value)) for time, id, value in packed)
