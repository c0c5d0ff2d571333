"""Rows of Parquet files and of Delta tables, as Arrow reads them, each as JSON text by the types of the fields.

Files come in the order of their paths, rows in the order of their file. Of a Delta table only the files of its present
version are read; one that marks rows in its files as deleted, or renames columns in its metadata, is refused. A
timestamp needs a time zone, in the column's own type.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from headrace.clock import micros, show_time
from headrace.errors import DataError, shown
from headrace.ingest.files.columns import Columns
from headrace.ingest.files.rows import Extent, RowFault, Rows, SourceRow
from headrace.ingest.files.source import DELTA, Source
from headrace.types.field_types import Decimal, Float, List, Struct, Timestamp, Type

BATCH_ROWS = 10_000


def read_extent(source: Source) -> Extent:
    """The number of rows, and the columns."""
    schema, fragments = open_table(source)
    return Extent(sum(fragment.count_rows() for fragment in fragments), schema.names)


def read_table(source: Source, columns: Columns, start: int) -> Rows:
    """The rows from number `start` on."""
    import pyarrow as pa

    schema, fragments = open_table(source)
    columns.report_others(schema.names, source.report)
    fields, arrival, done = columns.match(schema.names, source.name), columns.arrival, start
    wanted = [*fields, *([arrival.name] if arrival and arrival.name not in fields else [])]
    _refuse_naive(source, schema, wanted)
    try:
        for name, first, rows in _read_batches(schema, fragments, wanted, start):
            for number, row in enumerate(rows, first):
                done += 1
                place = f"{name if source.content is None else source.name}, row {number}"
                value, reason = _write_row(row, fields, columns.schema)
                fault = None if reason is None else RowFault(place, reason, shown(row))
                arrived = None if arrival is None else arrival.micros(row[arrival.name], place)
                yield SourceRow(place, value, fault, done, arrived)
    except (pa.ArrowException, OSError) as error:
        message, hint = "The files cannot be read to their end.", "Write the damaged file again, and read it again."
        raise DataError("bad-file", message, where=source.name, got=shown(str(error), 200), hint=hint) from error


def _refuse_naive(source: Source, schema: Any, names: list[str]) -> None:
    import pyarrow as pa

    for name in names:
        kind = schema.field(name).type
        if pa.types.is_timestamp(kind) and kind.tz is None:
            message = f"The timestamps of column {name!r} have no time zone."
            hint = "Write the column with one, as pandas does after .dt.tz_localize('UTC')."
            raise DataError("bad-file", message, where=source.name, got=str(kind), hint=hint)


def open_table(source: Source) -> tuple[Any, list[Any]]:
    """The schema of all files, and the files in order."""
    import pyarrow as pa
    from pyarrow import dataset, fs

    if source.format == DELTA:
        return _open_delta(source)
    try:
        if source.content is not None:
            fragment = dataset.ParquetFileFormat().make_fragment(pa.BufferReader(source.content))
            return fragment.physical_schema, [fragment]
        files = [str(path) for path in source.files()]
        root = source.place if source.path.is_dir() else None
        partitioning = dataset.HivePartitioning.discover() if root else None
        options = dataset.FileSystemFactoryOptions(root, partitioning=partitioning)
        factory = dataset.FileSystemDatasetFactory(fs.LocalFileSystem(), files, dataset.ParquetFileFormat(), options)
        # The first file's columns are not all there are: a file that has more must not lose them.
        found = factory.finish(factory.inspect(promote_options="permissive"))
    except (pa.ArrowException, OSError) as error:
        message, hint = "This is not Parquet that can be read.", "Name Parquet files alone, or say --format."
        raise DataError("bad-file", message, where=source.name, got=shown(str(error), 200), hint=hint) from error
    return found.schema, sorted(found.get_fragments(), key=lambda fragment: fragment.path)


def _open_delta(source: Source) -> tuple[Any, list[Any]]:
    from deltalake.exceptions import DeltaError

    table = source.table()
    try:
        found = table.to_pyarrow_dataset()
    except (DeltaError, OSError) as error:
        message = "The Delta table has features that Headrace does not read."
        hint = "Write it anew without deletion vectors and column mapping, or export it as Parquet."
        raise DataError("bad-file", message, where=source.name, got=shown(str(error), 200), hint=hint) from error
    return found.schema, sorted(found.get_fragments(), key=lambda fragment: fragment.path)


def _read_batches(
    schema: Any, fragments: list[Any], wanted: list[str], start: int
) -> Iterator[tuple[str, int, list[dict[str, Any]]]]:
    """The name of a file, the number of a row in it from 1, and rows from there on; those before the start are
    skipped, whole files unread."""
    import pyarrow as pa

    skip = start
    for fragment in fragments:
        if skip and skip >= (rows := fragment.count_rows()):
            skip -= rows
            continue
        name, number = fragment.path.rpartition("/")[2], 1
        for batch in fragment.to_batches(schema=schema, columns=wanted, batch_size=BATCH_ROWS):
            rest, first = batch.slice(skip), number + min(skip, batch.num_rows)
            skip, number = max(0, skip - batch.num_rows), number + batch.num_rows
            if rest.num_rows:
                yield name, first, _in_microseconds(pa.Table.from_batches([rest])).to_pylist()


def _in_microseconds(table: Any) -> Any:
    """Timestamps in microseconds: finer digits are cut off, as everywhere."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            cut = table.column(number).cast(pa.timestamp("us", "UTC"), safe=False)
            table = table.set_column(number, field.name, cut)
    return table


def _write_row(row: dict[str, Any], fields: dict[str, str], schema: Struct) -> tuple[bytes, str | None]:
    """A row's JSON text, and why it has none."""
    try:
        made = {known: json_value(schema[known].type, row[name]) for name, known in fields.items()}
        return json.dumps(made, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(), None
    except (TypeError, ValueError) as error:
        # A value has no JSON form, NaN say: a list is no record, whatever is in it.
        kept = json.dumps([row], ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
        return kept, f"a value has no JSON form ({error})"


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
