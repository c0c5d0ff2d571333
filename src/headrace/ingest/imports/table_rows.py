"""Rows of Parquet files and of Delta tables, as Arrow reads them.

Files come in the order of their paths, rows in the order of their file. Of a Delta table only the files of its present
version are read; one that marks rows in its files as deleted, or renames columns in its metadata, is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from headrace.errors import DataError, shown
from headrace.ingest.imports.columns import Columns
from headrace.ingest.imports.rows import MOST, Chunk, Chunks, Extent
from headrace.ingest.imports.source import DELTA, History
from headrace.ingest.send.parquet_rows import in_microseconds, json_value
from headrace.types.field_types import Struct


def extent(given: History) -> Extent:
    """The number of rows, and the columns."""
    dataset, fragments = opened(given)
    return Extent(sum(fragment.count_rows() for fragment in fragments), dataset.schema.names)


def chunks(given: History, columns: Columns, start: int) -> Chunks:
    """The rows from number `start` on."""
    import pyarrow as pa

    dataset, fragments = opened(given)
    fields = columns.held_to(dataset.schema.names, given.name)
    arrival = columns.arrival
    wanted = [*fields, *([arrival.name] if arrival and arrival.name not in fields else [])]
    for name in wanted:
        kind = dataset.schema.field(name).type
        if pa.types.is_timestamp(kind) and kind.tz is None:
            message = f"The timestamps of column {name!r} have no time zone."
            hint = "Write the column with one, as pandas does after .dt.tz_localize('UTC')."
            raise DataError("bad-file", message, where=given.name, got=str(kind), hint=hint)
    done = start
    try:
        for rows in _batches(dataset, fragments, wanted, start):
            done += len(rows)
            values = [_value(row, fields, columns.schema) for row in rows]
            arrivals = None if arrival is None else [arrival.micros(row[arrival.name], given.name) for row in rows]
            yield Chunk(values, arrivals, done)
    except (pa.ArrowException, OSError) as error:
        message = "The files cannot be read to their end."
        raise DataError("bad-file", message, where=given.name, got=shown(str(error), 200)) from error


def opened(given: History) -> tuple[Any, list[Any]]:
    """The dataset with the schema of all its files, and its files in order."""
    import pyarrow as pa
    from pyarrow import dataset, fs

    if given.format == DELTA:
        return _delta(given)
    try:
        files = [str(path) for path in given.files()]
        root = given.place if given.path.is_dir() else None
        partitioning = dataset.HivePartitioning.discover() if root else None
        options = dataset.FileSystemFactoryOptions(root, partitioning=partitioning)
        factory = dataset.FileSystemDatasetFactory(fs.LocalFileSystem(), files, dataset.ParquetFileFormat(), options)
        # The first file's columns are not all there are: a file that has more must not lose them.
        found = factory.finish(factory.inspect(promote_options="permissive"))
    except (pa.ArrowException, OSError) as error:
        message = "This is not Parquet that can be read."
        raise DataError("bad-file", message, where=given.name, got=shown(str(error), 200)) from error
    return found, sorted(found.get_fragments(), key=lambda fragment: fragment.path)


def _delta(given: History) -> tuple[Any, list[Any]]:
    from deltalake.exceptions import DeltaError

    table = given.table()
    try:
        found = table.to_pyarrow_dataset()
    except (DeltaError, OSError) as error:
        message = "The Delta table has features that Headrace does not read."
        hint = "Write it anew without deletion vectors and column mapping, or export it as Parquet."
        raise DataError("bad-file", message, where=given.name, got=shown(str(error), 200), hint=hint) from error
    return found, sorted(found.get_fragments(), key=lambda fragment: fragment.path)


def _batches(dataset: Any, fragments: list[Any], wanted: list[str], start: int) -> Iterator[list[dict[str, Any]]]:
    """Lists of rows; whole files and batches before the start are not made into rows."""
    import pyarrow as pa

    skip = start
    for fragment in fragments:
        if skip and skip >= (rows := fragment.count_rows()):
            skip -= rows
            continue
        for batch in fragment.to_batches(schema=dataset.schema, columns=wanted, batch_size=MOST):
            rest = batch.slice(skip)
            skip = max(0, skip - batch.num_rows)
            if rest.num_rows:
                yield in_microseconds(pa.Table.from_batches([rest])).to_pylist()


def _value(row: dict[str, Any], fields: dict[str, str], schema: Struct) -> bytes:
    try:
        made = {known: json_value(schema[known].type, row[name]) for name, known in fields.items()}
        return json.dumps(made, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):
        # A value has no JSON form, NaN say: a list is no record, whatever is in it.
        return json.dumps([row], ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
