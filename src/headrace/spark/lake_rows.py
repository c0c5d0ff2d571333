"""Rows of the lake back in Spark, wherever it is: tasks read the files as they write them, with pyarrow.

Of bronze only the files that may hold the wanted offsets are opened; `spark.archive.lake_writer` makes up for missing
silver rows
from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.lake.layout import BRONZE_COLUMNS
from headrace.lake.table import LakeTable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    Batches = Iterator[pa.RecordBatch]


def read_bronze(
    session: SparkSession, bronze: LakeTable, start: Mapping[int, int], end: Mapping[int, int]
) -> DataFrame:
    """Bronze rows of each partition from `start` to `end`."""
    spans = [(start.get(partition, 0), last - 1) for partition, last in end.items() if start.get(partition, 0) < last]
    rows = rows_of(session, bronze, bronze.files("offset", spans), BRONZE_COLUMNS)
    wanted = [f"(partition = {p} AND offset >= {start.get(p, 0)} AND offset < {last})" for p, last in end.items()]
    return rows.where(" OR ".join(wanted) or "false")


def rows_of(session: SparkSession, table: LakeTable, files: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
    """Some columns of the rows of some files of a table; a column that a file lacks is null in its rows."""
    import pyarrow as pa

    schema = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    read = _reader(files, table.options, pa.schema([table.shape.schema.field(name) for name in columns]))
    return session.range(0, len(files), 1, max(1, len(files))).mapInArrow(read, schema)


def _reader(files: Sequence[str], options: Mapping[str, str], schema: pa.Schema) -> Callable[[Batches], Batches]:
    """What a task does: read the files whose numbers it is given. It runs in Spark's Python workers."""

    def read(given: Batches) -> Batches:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from headrace.lake.files import filesystem

        def whole(batch: pa.RecordBatch) -> pa.RecordBatch:
            columns = [
                batch.column(field.name).cast(field.type)
                if field.name in batch.schema.names
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ]
            return pa.RecordBatch.from_arrays(columns, schema=schema)

        for numbers in given:
            for number in numbers.column(0).to_pylist():
                place, path = filesystem(files[number], options)
                with place.open_input_file(path) as source:
                    file = pq.ParquetFile(source)
                    wanted = [name for name in schema.names if name in file.schema_arrow.names]
                    for batch in file.iter_batches(columns=wanted):
                        yield whole(batch)

    return read
