"""What was known of a key at a past moment: its events from silver, as the reference interpreter takes them.

Only files that can hold such events are read, and in them only the columns that the view eats. It is exact and takes as
long as reading takes: milliseconds for a small lake, seconds for a large one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.clock import show_time
from headrace.define.event import Event
from headrace.define.exact import Key, ViewEvents
from headrace.define.view import View
from headrace.errors import DataError
from headrace.expression.node import Name
from headrace.lake.counters import FORGOTTEN
from headrace.lake.files import filesystem
from headrace.lake.table import LakeTable
from headrace.schema.json_rules import EARLIEST

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

PLACE = ("_arrived_at", "_partition", "_offset")


def values_at(silver: LakeTable, view: View, key: Key, t: int) -> tuple[dict[str, Any], bool]:
    """Every feature of a key at a past moment, from what was known then, and whether there was anything to count.

    Raises
    ------
    DataError
        When days that the value needs were forgotten.
    """
    held = ViewEvents(view, events_before(silver, view, key, t))
    return held.values(key, (t,)), key in held.by_key


def events_before(silver: LakeTable, view: View, key: Key, t: int) -> Iterator[Event]:
    """The events of a key, and perhaps of others, that count in a value at t and had arrived before it."""
    low, high = _reach(view, t)
    forgotten = silver.counter(FORGOTTEN)
    if forgotten is not None and low < forgotten:
        message = "Days that the value needs were forgotten."
        got = f"{view.name} at {show_time(t)}, events before {show_time(forgotten)}"
        raise DataError("lake-forgotten", message, got=got, hint="Ask for a later moment.")
    for uri in silver.files(silver.shape.day_of, [(low, high - 1)]):
        yield from _events(_chosen(silver, uri, view, key, low, t), view)


def _reach(view: View, t: int) -> tuple[int, int]:
    """The event times that a value at t is made of."""
    spans = [term.window.span(t) for feature in view.features for term in feature.terms]
    return max(EARLIEST, min(low for low, _ in spans)), max(high for _, high in spans)


def _chosen(silver: LakeTable, uri: str, view: View, key: Key, low: int, t: int) -> pa.Table:
    """The rows of a file that may count: of the key as far as it is told by columns alone."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    files, path = filesystem(uri, silver.options)
    moment = pa.timestamp("us", tz="UTC")
    happened = pc.field(silver.shape.day_of)
    wanted = (happened >= pa.scalar(low, moment)) & (pc.field("_arrived_at") < pa.scalar(t, moment))
    for part in _same(view, key):
        wanted = wanted & part
    if view.stream.late != "update":
        wanted = wanted & ~pc.field("_late")
    columns = [*_fields(view), silver.shape.day_of, "_event_id", *PLACE]
    return pq.read_table(
        path, columns=list(dict.fromkeys(columns)), filters=wanted, filesystem=files, partitioning=None
    )


def _same(view: View, key: Key) -> Iterator[pc.Expression]:
    """That the columns of the key are those asked for; of a key that is computed, nothing."""
    import pyarrow.compute as pc

    for (_, column), asked in zip(view.key, key, strict=True):
        if isinstance(column.root, Name):
            yield pc.field(column.root.name) == asked


def _fields(view: View) -> Iterable[str]:
    eaten = [term.value for feature in view.features for term in feature.terms]
    keys, chosen = [column for _, column in view.key], [view.stream.filter] if view.stream.filter else []
    return sorted({name for each in (*eaten, *keys, *chosen) for name in each.fields})


def _events(rows: pa.Table, view: View) -> Iterator[Event]:
    fields = [field for field in view.stream.schema if field.name in rows.column_names]
    plain = {
        name: rows.column(name).cast(_plain(rows.schema.field(name).type)).to_pylist() for name in rows.column_names
    }
    for at in range(rows.num_rows):
        row = {field.name: plain[field.name][at] for field in fields}
        place = (plain["_arrived_at"][at], plain["_partition"][at], plain["_offset"][at])
        yield Event(row, plain[view.stream.event_time][at], plain["_event_id"][at], place)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type with every moment as microseconds, as values are inside Headrace."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _plain(part.type)) for part in kind])
    return kind
