"""Parquet as rows: each becomes JSON text by the types of the stream's fields.

A timestamp needs a time zone, in the column's own type. Columns that name no field are left out.
"""

from __future__ import annotations

import decimal
import json
from datetime import datetime
from typing import Any

from headrace.clock import micros, show_time
from headrace.errors import DataError, did_you_mean, shown
from headrace.ingest.send.source import Fault, Row, Rows, Source
from headrace.types.field_types import Decimal, Float, List, Struct, Timestamp, Type

BATCH = 10_000


def rows(given: Source, schema: Struct) -> Rows:
    """The rows of a file; `done` counts bytes in proportion to the rows read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with given.open() as opened:
        try:
            file = pq.ParquetFile(opened)
            columns = _checked(given, file.schema_arrow, schema)
            total, size, number = max(1, file.metadata.num_rows), given.size or 0, 0
            for batch in file.iter_batches(BATCH, columns=columns):
                for found in in_microseconds(pa.Table.from_batches([batch])).to_pylist():
                    number += 1
                    yield _row(f"{given.name}, row {number}", found, schema, size * number // total)
        except pa.ArrowException as error:
            message = "The file is not Parquet that can be read."
            raise DataError("bad-file", message, where=given.name, got=shown(str(error))) from error


def _checked(given: Source, found: Any, schema: Struct) -> list[str]:
    """The columns to read, if every required field has one and every timestamp has a time zone."""
    import pyarrow as pa

    for field in schema:
        if field.name not in found.names:
            if not field.optional:
                message = f"There is no column for the required field {field.name!r}."
                hint = did_you_mean(field.name, found.names)
                raise DataError("bad-file", message, where=given.name, got=shown(found.names), hint=hint)
            continue
        kind = found.field(field.name).type
        if pa.types.is_timestamp(kind) and kind.tz is None:
            message = f"The timestamps of column {field.name!r} have no time zone."
            hint = "Write the column with one, as pandas does after .dt.tz_localize('UTC')."
            raise DataError("bad-file", message, where=given.name, got=str(kind), hint=hint)
    return [name for name in found.names if name in schema]


def in_microseconds(table: Any) -> Any:
    """Timestamps in microseconds: finer digits are cut off, as everywhere."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            cut = table.column(number).cast(pa.timestamp("us", "UTC"), safe=False)
            table = table.set_column(number, field.name, cut)
    return table


def _row(place: str, found: dict[str, Any], schema: Struct, done: int) -> Row:
    try:
        made = {name: json_value(schema[name].type, value) for name, value in found.items()}
        text = json.dumps(made, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return Row(place, text.encode(), None, done)
    except (TypeError, ValueError) as error:
        return Row(place, b"", Fault(place, f"a value has no JSON form ({error})", shown(found)), done)


def json_value(kind: Type, value: Any) -> Any:
    """A value of a column as JSON has it in a field of this type; what does not fit is left for the check to refuse.

    >>> json_value(Timestamp("ms"), datetime.fromisoformat("1970-01-01T00:00:01+00:00"))
    1000
    """
    match kind, value:
        case _, None:
            return None
        case Timestamp(unit), datetime():
            moment = micros(value) if value.tzinfo else None
            if moment is None:
                raise ValueError("a timestamp has no time zone")
            return show_time(moment) if unit == "rfc3339" else moment // Timestamp.units[unit]
        case Decimal(), decimal.Decimal():
            return format(value, "f")
        case Float(), decimal.Decimal():
            return float(value)
        case List(element), list():
            return [json_value(element, each) for each in value]
        case Struct(), dict():
            return {name: json_value(kind[name].type, each) for name, each in value.items() if name in kind}
    return value
