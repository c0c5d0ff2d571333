"""The events themselves: the monoid that keeps them all, for windows with `resolution="exact"`.

Its size grows with the events, so such windows are bounded where they are declared. No aggregate stands beside it:
whoever reads the state picks the events inside the window and calls the aggregate's `exact`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from headrace.aggregate.monoid import EventSql, State
from headrace.aggregate.order import PlacedValues, placed_sql


@dataclass(frozen=True)
class EventList(PlacedValues):
    """Every value with its place in time; the state is a sorted tuple of (event time, event id, value).

    >>> from headrace.types.field_types import Integer
    >>> EventList(Integer()).merge(((2, "b", 7),), ((1, "a", 7),))
    ((1, 'a', 7), (2, 'b', 7))
    """

    kind = "events"

    def fold(self, states: Iterable[State]) -> State:
        return tuple(sorted(chain(*filter(None, states))))

    def spark(self, value_sql: str, at: EventSql) -> str:
        return f"array_sort(collect_list({placed_sql(self.input, value_sql, at)}))"
