"""Bronze rows back into Spark, wherever the lake is: tasks read the files as they write them, with pyarrow.

Only the files that may hold the wanted offsets are opened. `run.lake_writer` makes up for missing silver rows from
them.
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


def kept(session: SparkSession, bronze: LakeTable, start: Mapping[int, int], end: Mapping[int, int]) -> DataFrame:
    """Bronze rows of each partition from `start` to `end`."""
    spans = [(start.get(partition, 0), last - 1) for partition, last in end.items() if start.get(partition, 0) < last]
    files = bronze.files("offset", spans)
    columns = ", ".join(f"`{name}` {kind}" for name, kind in BRONZE_COLUMNS.items())
    rows = session.range(0, len(files), 1, max(1, len(files))).mapInArrow(_reader(files, bronze.options), columns)
    wanted = [f"(partition = {p} AND offset >= {start.get(p, 0)} AND offset < {last})" for p, last in end.items()]
    return rows.where(" OR ".join(wanted) or "false")


def _reader(files: Sequence[str], options: Mapping[str, str]) -> Callable[[Batches], Batches]:
    """What a task does: read the files whose numbers it is given. It runs in Spark's Python workers."""

    def read(given: Batches) -> Batches:
        import pyarrow.parquet as pq

        from headrace.lake.files import filesystem

        for numbers in given:
            for number in numbers.column(0).to_pylist():
                place, path = filesystem(files[number], options)
                with place.open_input_file(path) as source:
                    yield from pq.ParquetFile(source).iter_batches(columns=list(BRONZE_COLUMNS))

    return read
