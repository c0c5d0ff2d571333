"""What every partial column of a tile can do: empty, lift, merge, and the same in Spark SQL.

A tile row holds one *state* per monoid. Spark makes states from many events at once (`spark`), Python from one event
(`lift`), and both join with `merge`. What a state means to a feature is the business of `aggregate.aggregate`; which
monoids a view needs, `plan`'s; how states travel and rest, the changelog's and the store's (`pack`, `unpack`).

Three promises hold for every monoid, and property tests hold them to it. `merge` is associative and commutative with
`empty` as identity (floats within 1e-9 of the sum of their sizes, sketches within their declared error), it changes
neither argument, and null values leave the state empty. Values are of the declared type: floats are finite, decimals
fit their digits, event ids are unique per event time.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from headrace.types.field_types import Type

State = Any


@dataclass(frozen=True)
class EventSql:
    """Spark SQL texts for the event a row stands for.

    Parameters
    ----------
    time_micros
        Event time, a BIGINT of microseconds.
    id
        Event id, a STRING.
    tile_start_micros
        Start of the event's tile, a BIGINT of microseconds, the same for all rows of a group.

    Examples
    --------
    >>> EventSql("event_time", "event_id", "tile").id
    'event_id'
    """

    time_micros: str
    id: str
    tile_start_micros: str


@dataclass(frozen=True)
class Monoid:
    """One partial column of a tile."""

    kind: ClassVar[str]

    @property
    def form(self) -> dict[str, Any]:
        """Kind, parameters and input type as JSON: equal forms over equal values share a column."""
        return {"kind": self.kind, **form_of_fields(self)}

    @property
    def ddl(self) -> str:
        """The Spark type of the state column."""
        raise NotImplementedError

    @property
    def empty(self) -> State:
        """The state with no input."""
        raise NotImplementedError

    def lift(self, value: Any, event_time: int, event_id: str) -> State:
        """The state of one event; of a null value, `empty`."""
        return self.empty if value is None else self.of(value, event_time, event_id)

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        """The state of one event whose value is not null."""
        raise NotImplementedError

    def merge(self, a: State, b: State) -> State:
        """The state of the events of both."""
        raise NotImplementedError

    def fold(self, states: Iterable[State]) -> State:
        """The state of the events of all, None being none; much faster than one by one."""
        return functools.reduce(self.merge, (state for state in states if state is not None), self.empty)

    def spark(self, value_sql: str, at: EventSql) -> str:
        """The Spark SQL aggregate that makes the state of a group's rows.

        `value_sql` has the input's Spark type; filters are folded into it, so that a row left out is a null.
        """
        raise NotImplementedError

    def from_spark(self, cell: Any) -> State:
        """The state in what Spark hands over: a collected cell (with rows) or an Arrow one (with dicts)."""
        raise NotImplementedError

    @property
    def cell_is_state(self) -> bool:
        """Whether `fold` takes what Spark hands over as it is."""
        return False

    @property
    def carried(self) -> bool:
        """Whether msgpack carries a state as it is, so that it need not be packed."""
        return False

    def pack(self, state: State) -> Any:
        """The state as null, bool, 64-bit int, finite float, str, bytes or list: what JSON and msgpack can carry."""
        return state

    def unpack(self, packed: Any) -> State:
        """The inverse of `pack`, also after a way through JSON."""
        return packed


def form_of_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON, types by their own form."""
    pairs = ((field.name, getattr(value, field.name)) for field in fields(value))
    return {name: item.form if isinstance(item, Type) else item for name, item in pairs}
