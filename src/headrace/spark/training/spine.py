"""A spine in Spark: read from where it lies, counted in one pass, written with its features.

What is read, which columns and which rows, is decided by `headrace.training`, which writes expressions; here they meet
a session, a classic one or one of Spark Connect. What a task or a parser complains of becomes an error of ours.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headrace.errors import DataError, HeadraceError, shown
from headrace.lake.table import LakeTable
from headrace.spark.failure import text_of
from headrace.spark.lake_rows import rows_of
from headrace.spark.on_demand import FAILED
from headrace.spark.session import settings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    Batches = Iterator[pa.RecordBatch]

LOOK = 0.5
Place = tuple[str, Mapping[str, Any]]
"""A file's address, and the columns whose one value is known without it."""
_TOLD = re.compile(f"{FAILED}(.*)")
_MALFORMED = "MALFORMED_RECORD_IN_PARSING"
_WRITING = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}


def active() -> SparkSession | None:
    """The session that this process has already, if any."""
    return SparkSession.getActiveSession()


def from_csv(session: SparkSession, path: str, names: Sequence[str]) -> DataFrame:
    """The rows of a CSV file with a header, every cell as its text; an empty one is null."""
    options = {"header": "true", "multiLine": "true", "escape": '"', "mode": "FAILFAST", "columnPruning": "false"}
    schema = ", ".join(f"`{name}` STRING" for name in names)
    return session.read.options(**options).schema(schema).csv(path)


def from_files(
    session: SparkSession, places: Sequence[Place], schema: pa.Schema, options: Mapping[str, str], *, plain: bool
) -> DataFrame:
    """The rows of Parquet files: by Spark itself where they are plain, else by tasks with pyarrow."""
    wanted = from_arrow_schema(schema)
    if plain and places:
        return session.read.schema(wanted).parquet(*(place for place, _ in places))
    numbers = session.range(0, len(places), 1, max(1, len(places)))
    return numbers.mapInArrow(_reader(list(places), schema, dict(options)), wanted)


def _reader(places: Sequence[Place], schema: pa.Schema, options: Mapping[str, str]) -> Callable[[Batches], Batches]:
    """What a task does: read the files whose numbers it is given. It runs in Spark's Python workers."""

    def read(given: Batches) -> Batches:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from headrace.lake.files import filesystem

        def column(batch: pa.RecordBatch, field: pa.Field, cells: Mapping[str, Any]) -> pa.Array:
            if field.name in cells:
                return pa.array([cells[field.name]] * batch.num_rows).cast(field.type)
            if field.name not in batch.schema.names:
                return pa.nulls(batch.num_rows, field.type)
            return batch.column(field.name).cast(field.type, safe=False)

        for numbers in given:
            for number in numbers.column(0).to_pylist():
                place, cells = places[number]
                files, path = filesystem(place, options)
                with files.open_input_file(path) as source:
                    for batch in pq.ParquetFile(source).iter_batches():
                        yield pa.RecordBatch.from_arrays([column(batch, f, cells) for f in schema], schema=schema)

    return read


def from_arrow(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows that are in memory; a moment without a time zone stays one."""
    return session.createDataFrame(rows, from_arrow_schema(rows.schema))


def from_query(session: SparkSession, sql: str, tables: Mapping[str, LakeTable]) -> DataFrame:
    """The rows of a query over tables of the lake, by the names that the query has for them.

    The views stay in the session: one of Spark Connect looks them up whenever the query runs.
    """
    for name, table in tables.items():
        columns = {field.name: field.dataType.simpleString() for field in from_arrow_schema(table.shape.schema)}
        day = f"CAST(`{table.shape.day_of}` AS DATE) AS `{table.shape.day}`"
        rows_of_table(session, table, columns).selectExpr("*", day).createOrReplaceTempView(name)
    with query_explained():
        found = session.sql(sql)
        # A query that cannot be answered says so now, also where it is only looked at when it runs.
        _ = found.schema
    return found


def rows_of_table(session: SparkSession, table: LakeTable, columns: Mapping[str, str]) -> DataFrame:
    """All rows of a table of the lake."""
    files = table.files()
    if not files or "://" in table.uri:
        return rows_of(session, table, files, columns)
    schema = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    return session.read.schema(schema).parquet(*files)


def answers(frame: DataFrame, questions: Mapping[str, str]) -> dict[str, Any]:
    """What expressions of one aggregate say of all rows, by their names."""
    with explained():
        (row,) = frame.selectExpr(*questions.values()).collect()
    return dict(zip(questions, row, strict=True))


def counts_by_time(frame: DataFrame, time: str) -> Callable[[int, int, int], dict[int, int]]:
    """Counts rows by their time: given [low, high] and a width, how many are in each span of it, by number."""
    moments = frame.selectExpr(f"unix_micros(`{time}`) AS moment")

    def counts(low: int, high: int, width: int) -> dict[int, int]:
        inside = moments.where(f"moment BETWEEN {low} AND {high}")
        rows = inside.selectExpr(f"(moment - {low}) DIV {width} AS span").groupBy("span").count().collect()
        return {row[0]: row[1] for row in rows}

    return counts


def write(frame: DataFrame, folder: str) -> None:
    """Write rows as Parquet files into a folder that is not there yet."""
    with explained(), settings(frame.sparkSession, _WRITING):
        frame.write.options(
            compression="zstd", **{"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
        ).parquet(folder)


def read_back(session: SparkSession, files: Sequence[str]) -> DataFrame:
    """The rows of Parquet files that were written here."""
    return session.read.parquet(*files)


def collected(frame: DataFrame) -> pa.Table:
    """All rows in memory."""
    with explained():
        return frame.toArrow()


@contextmanager
def explained() -> Iterator[None]:
    """Turns what Spark says of a user's function or file into an error of ours; a defect stays what it is."""
    try:
        yield
    except Exception as error:
        said = text_of(error)
        told = _TOLD.search(said)
        if told:
            given = json.JSONDecoder().raw_decode(told.group(1))[0]
            raise HeadraceError(given.pop("code"), given.pop("message"), **given) from None
        if _MALFORMED in said:
            message = "A row of the spine's CSV has not the cells that its header names."
            hint = "Give every row as many cells as the header has names."
            raise DataError("bad-file", message, got=shown(_sentence(said, _MALFORMED), 200), hint=hint) from None
        raise


@contextmanager
def query_explained() -> Iterator[None]:
    """Turns whatever Spark says of a user's query into an error of ours, with its words."""
    try:
        yield
    except PySparkException as error:
        said = text_of(error).partition("\n")[0]
        hint = "Look at the names of its tables and columns."
        raise DataError("bad-query", "The spine's query cannot be answered.", got=shown(said, 300), hint=hint) from None


def _sentence(said: str, code: str) -> str:
    """What Spark says behind an error's code, in one line."""
    return said[said.index(code) :].partition("\n")[0]


@contextmanager
def watched(session: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    """While entered, tells how many tasks of the stages that run are done, and of how many."""
    context = getattr(session, "_sc", None)
    if context is None:
        # Spark Connect has no tracker here.
        yield
        return
    tracker, over = context.statusTracker(), threading.Event()

    def look() -> None:
        while not over.wait(LOOK):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            found = [stage for stage in stages if stage is not None]
            if found:
                tell(sum(stage.numCompletedTasks for stage in found), sum(stage.numTasks for stage in found))

    thread = threading.Thread(target=look, name="headrace-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
