"""What was known of keys at past moments: their events from silver, evaluated as training sets are.

Only files that can hold such events are read, and in them only the columns that the view eats. It is exact and takes as
long as reading takes: milliseconds for a small lake, seconds for a large one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.define.view import View
from headrace.expression import Expression
from headrace.expression.node import Name
from headrace.lake.completeness import reach, refuse_forgotten
from headrace.lake.files import filesystem
from headrace.lake.table import LakeTable, reading
from headrace.meaning.event import Event, Place
from headrace.meaning.exact import Key, Moment, ViewEvents
from headrace.types.field_types import arrow_type

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

PLACE, LANE = ("_arrived_at", "_partition", "_offset"), ("_late", "_closed")
NOWHERE = (-(2**62), 0, 0)
"""Before every place."""


Asked = tuple[Key, Moment]
"""A key at a past moment."""


class PastEvents:
    """Events of a view, each with whether it came through the late lane, and values at past moments from them.

    All of them are in memory.

    Attributes
    ----------
    held
        The events of each key that count, by event time.
    late
        The places of those that came through the late lane.
    """

    def __init__(self, view: View, events: Iterable[tuple[Event, bool]]) -> None:
        self.view = view
        self.late: set[Place] = set()
        self.held: dict[Key, list[Event]] = ViewEvents(view, self._noted(events)).by_key

    @classmethod
    def read(
        cls,
        silver: LakeTable,
        view: View,
        moments: Sequence[int],
        keys: Collection[Key] | None = None,
        *,
        arrived_by: int | None = None,
    ) -> PastEvents:
        """What counts in values at some moments: of some keys, perhaps with a few others, or of all.

        What arrived after the last of them is left out, or after another moment.

        Raises
        ------
        DataError
            When days that a value needs were forgotten.
        """
        return cls(view, _known_events(silver, view, moments, keys, arrived_by) if moments else ())

    def _noted(self, events: Iterable[tuple[Event, bool]]) -> Iterator[Event]:
        for event, late in events:
            if late:
                self.late.add(event.place)
            yield event

    def values(self, asked: Sequence[Asked]) -> dict[str, list[Any]]:
        """Every feature of keys, each at a moment of its own, in the order in which they are asked for."""
        return _answered(self.view, self.held, asked)


def _known_events(
    silver: LakeTable, view: View, moments: Sequence[int], keys: Collection[Key] | None, arrived_by: int | None
) -> Iterator[tuple[Event, bool]]:
    """The events that count in a value at one of the moments and had arrived by the last, or by another."""
    first, last = min(moments), max(moments)
    refuse_forgotten(silver, view, first)
    low, high = reach([view], first, last)
    for uri in silver.files(silver.shape.day_of, [(low, high - 1)]):
        yield from _events(_select_rows(silver, uri, view, keys, low, last if arrived_by is None else arrived_by), view)


def values_at(silver: LakeTable, view: View, key: Key, t: int) -> tuple[dict[str, Any], bool]:
    """Every feature of a key at a past moment, from what was known then, and whether there was anything to count.

    Raises
    ------
    DataError
        When days that the value needs were forgotten.
    """
    past = PastEvents.read(silver, view, [t], [key])
    there = any(event.arrived_at < t for event in past.held.get(key, ()))
    return {name: values[0] for name, values in past.values([(key, (t,))]).items()}, there


def _answered(view: View, held: Mapping[Key, list[Event]], asked: Sequence[Asked]) -> dict[str, list[Any]]:
    import numpy as np
    import pyarrow as pa

    from headrace.aggregate.columns import carried
    from headrace.asof.query import question
    from headrace.asof.values import EventColumns, QueryMoments, RecordPositions, answers

    numbers = {key: number for number, key in enumerate(dict.fromkeys(key for key, _ in asked))}
    numbered = [(number, event) for key, number in numbers.items() for event in held.get(key, ())]
    wanted, eaten = question([view], "as_known")

    def whole(values: Iterable[int]) -> Any:
        return np.fromiter(values, dtype=np.int64)

    def eat(expression: Expression) -> list[Any]:
        value = expression.python()
        return [value(event.row) for _, event in numbered]

    events = EventColumns(
        whole(number for number, _ in numbered),
        whole(event.event_time for _, event in numbered),
        RecordPositions(*(whole(event.place[part] for _, event in numbered) for part in range(3))),
        tuple(pa.array(eat(each), carried(kind)) for kind, each in zip(wanted.eaten, eaten, strict=True)),
        pa.array([event.event_id for _, event in numbered], pa.string()),
    )
    # What stands before a place is what stands before the one behind it, with that one.
    places = [(t, place[0], place[1] - 1) if place else NOWHERE for _, (t, *place) in asked]
    moments = QueryMoments(
        whole(numbers[key] for key, _ in asked),
        whole(moment[0] for _, moment in asked),
        RecordPositions(*(whole(place[part] for place in places) for part in range(3))),
    )
    found = answers(wanted, events, moments)
    return {
        feature.name: each.cast(plain_type(each.type)).to_pylist()
        for feature, each in zip(wanted.features, found, strict=True)
    }


def _select_rows(silver: LakeTable, uri: str, view: View, keys: Collection[Key] | None, low: int, t: int) -> pa.Table:
    """The rows of a file that may count: of keys as far as they are told by single columns."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    files, path = filesystem(uri, silver.options)
    moment = pa.timestamp("us", tz="UTC")
    happened = pc.field(silver.shape.day_of)
    wanted = (happened >= pa.scalar(low, moment)) & (pc.field("_arrived_at") <= pa.scalar(t, moment))
    for part in () if keys is None else _key_filter(view, keys):
        wanted = wanted & part
    if view.stream.late != "update":
        wanted = wanted & ~pc.field("_late")
    columns = [*_fields(view), silver.shape.day_of, "_event_id", *PLACE, *LANE]
    chosen = list(dict.fromkeys(columns))
    with reading(silver.uri):
        return pq.read_table(path, columns=chosen, filters=wanted, filesystem=files, partitioning=None)


def _key_filter(view: View, keys: Collection[Key]) -> Iterator[pc.Expression]:
    """That each column of the key is one of those asked for; of one that is computed, nothing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, (_, column) in enumerate(view.key):
        if isinstance(column.root, Name):
            asked = pa.array(sorted({key[place] for key in keys}), arrow_type(column.type))
            yield pc.field(column.root.name).isin(asked)


def _fields(view: View) -> Iterable[str]:
    eaten = [term.value for feature in view.features for term in feature.terms]
    keys, chosen = [column for _, column in view.key], [view.stream.filter] if view.stream.filter else []
    return sorted({name for each in (*eaten, *keys, *chosen) for name in each.fields})


def _events(rows: pa.Table, view: View) -> Iterator[tuple[Event, bool]]:
    """The events of rows, each with whether it came through the late lane."""
    fields = [field for field in view.stream.schema if field.name in rows.column_names]
    plain = {
        name: rows.column(name).cast(plain_type(rows.schema.field(name).type)).to_pylist() for name in rows.column_names
    }
    for at in range(rows.num_rows):
        row = {field.name: plain[field.name][at] for field in fields}
        place = (plain["_arrived_at"][at], plain["_partition"][at], plain["_offset"][at])
        late = in_late_lane(late=plain["_late"][at], closed=plain["_closed"][at], partition=place[1])
        yield Event(row, plain[view.stream.event_time][at], plain["_event_id"][at], place), late


def in_late_lane(*, late: bool, closed: bool | None, partition: int) -> bool:
    """Whether an event of silver travels in the late lane; `spark.silver` says the same in SQL."""
    return late or bool(closed and partition >= 0)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type with every moment as microseconds, as values are inside Headrace."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, plain_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, plain_type(part.type)) for part in kind])
    return kind
