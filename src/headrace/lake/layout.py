"""What the lake's tables are called and which columns they have.

`<data>/lake/<stream>/bronze` has one row for every record of the stream's topic, `<data>/lake/<stream>/silver` one for
every event that counts. Both are partitioned by day in UTC: bronze by arrival, silver by event time, because copies of
an event share their event time and are looked for there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.define.stream import Stream

if TYPE_CHECKING:
    import pyarrow as pa

BRONZE, SILVER = "bronze", "silver"

BRONZE_COLUMNS: dict[str, str] = {
    "partition": "INT",
    "offset": "BIGINT",
    "appended_at": "TIMESTAMP",
    "arrived_at": "TIMESTAMP",
    "arrival": "STRING",
    "key": "BINARY",
    "value": "BINARY",
    "headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
    "verdict": "STRING",
    "reason": "STRING",
    "event_time": "TIMESTAMP",
    "event_id": "STRING",
    "first_partition": "INT",
    "first_offset": "BIGINT",
    "conflict": "BOOLEAN",
}
BRONZE_DAY = "day"

IDENTITY, PAYLOAD = "_identity", "_payload"
SILVER_DAY = "_day"
SILVER_COLUMNS: dict[str, str] = {
    "_partition": "INT",
    "_offset": "BIGINT",
    "_arrived_at": "TIMESTAMP",
    "_late": "BOOLEAN",
    "_closed": "BOOLEAN",
    "_event_id": "STRING",
    "_identity": "BIGINT",
    "_payload": "BIGINT",
}
"""Beside the stream's own fields. `_closed` says that it was replayed after its tile had closed, so that it travels in
the late lane although it was on time. The last two are hashes, of the event id and of the fields: copies are looked for
by the first and told from contradictions by the second."""


@dataclass(frozen=True)
class TableLayout:
    """The columns of a table as Arrow has them, which one is the day, from what, and which have statistics."""

    schema: pa.Schema
    day: str
    day_of: str
    statistics: tuple[str, ...]


def bronze_shape() -> TableLayout:
    """The shape of every bronze table."""
    import pyarrow as pa

    return TableLayout(
        pa.schema(_arrow(BRONZE_COLUMNS)), BRONZE_DAY, "arrived_at", ("partition", "offset", "arrived_at", "event_time")
    )


def silver_shape(stream: Stream) -> TableLayout:
    """The shape of a stream's silver table: its fields, then what `SILVER_COLUMNS` adds.

    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> silver_shape(clicks).schema.names[:3]
    ['user', 'at', '_partition']
    """
    import pyarrow as pa

    from headrace.types.field_types import arrow_type

    fields = [(field.name, _nullable(arrow_type(field.type))) for field in stream.schema]
    schema = pa.schema([*fields, *_arrow(SILVER_COLUMNS)])
    return TableLayout(schema, SILVER_DAY, stream.event_time, (stream.event_time, "_arrived_at", "_offset"))


def _arrow(columns: dict[str, str]) -> list[tuple[str, pa.DataType]]:
    """The columns as Arrow has them."""
    import pyarrow as pa

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    kinds = {
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "TIMESTAMP": pa.timestamp("us", tz="UTC"),
        "STRING": pa.string(),
        "BINARY": pa.binary(),
        "BOOLEAN": pa.bool_(),
        BRONZE_COLUMNS["headers"]: pa.list_(pa.field("element", header)),
    }
    return [(name, kinds[kind]) for name, kind in columns.items()]


def _nullable(kind: pa.DataType) -> pa.DataType:
    """A type whose parts may all be null: a Parquet file promises nothing that a later schema could not keep."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _nullable(part.type)) for part in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _nullable(kind.value_type)))
    return kind
