"""Where a spine comes from: a pandas or Spark DataFrame, a CSV or Parquet file, a folder, a Delta table, or SQL.

What comes out is a Spark DataFrame of the spine's own columns, and what the manifest says of it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import DataError, UsageError, shown
from headrace.ingest.files.source import CSV, DELTA, PARQUET, find_source
from headrace.lake.location import storage_options
from headrace.lake.query import names as table_names
from headrace.project import Project
from headrace.training.lake_tables import LakeTables
from headrace.training.spine_files import carried, files_of
from headrace.training.spine_sql import is_query, rewritten

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

PANDAS, SPARK, SQL = "pandas", "spark", "sql"
NUMBER = "~number"
"""The column that says which row of a pandas DataFrame it was."""


@dataclass(frozen=True)
class Spine:
    """A spine in Spark.

    Parameters
    ----------
    frame
        Its columns as they are.
    kind
        What it was: "pandas", "spark", "sql", "csv", "parquet" or "delta".
    source
        The path or query to read it again by; None for a DataFrame.
    text
        Whether every column is text.
    """

    frame: DataFrame
    kind: str
    source: str | None = None
    text: bool = False


def is_pandas(spine: Any) -> bool:
    """Whether it is a pandas DataFrame, told without loading pandas."""
    return type(spine).__module__.partition(".")[0] == "pandas"


def is_spark(spine: Any) -> bool:
    """Whether it is a Spark DataFrame, classic or of Spark Connect."""
    return type(spine).__module__.startswith("pyspark.") and hasattr(spine, "sparkSession")


def spine_of(session: SparkSession, given: Any, project: Project, tables: LakeTables) -> Spine:
    """A spine from what a user hands in."""
    if is_pandas(given):
        return Spine(_from_pandas(session, given), PANDAS)
    if is_spark(given):
        return Spine(given, SPARK)
    if not isinstance(given, str | Path):
        hint = "Give a pandas or Spark DataFrame, a path, or SQL over the lake."
        raise UsageError("bad-usage", "This is no spine.", got=shown(given), hint=hint)
    if is_query(str(given)):
        return Spine(_from_query(session, str(given), project, tables), SQL, str(given))
    return _from_path(session, str(given), project)


def _from_pandas(session: SparkSession, given: pd.DataFrame) -> DataFrame:
    import pyarrow as pa

    from headrace.spark.training.spine import from_arrow

    odd = [name for name in given.columns if not isinstance(name, str)]
    if odd or not given.columns.is_unique:
        got = shown(odd or list(given.columns), 200)
        hint = "Give each column a text as its name, each once."
        raise DataError("bad-spine", "The columns of the spine need names, each its own.", got=got, hint=hint)
    try:
        rows = pa.Table.from_pandas(given, preserve_index=False)
        rows = rows.cast(carried(rows.schema), safe=False)
    except pa.ArrowException as error:
        message = "A column of the spine has cells of several types."
        hint = "Give every cell of a column one type."
        raise DataError("bad-spine", message, got=shown(str(error), 200), hint=hint) from error
    return from_arrow(session, rows.append_column(NUMBER, pa.array(range(len(given)), pa.int64())))


def _from_query(session: SparkSession, sql: str, project: Project, tables: LakeTables) -> DataFrame:
    from headrace.spark.training.spine import from_query

    streams = {stream.name: stream for stream in project.streams}
    known = table_names({name: tables.of(stream) for name, stream in streams.items()})
    owners = {id(table): (stream, name) for stream in streams.values() for name, table in tables.of(stream).items()}
    mark, used = uuid.uuid4().hex[:8], {}

    def called(name: str) -> str:
        view = f"headrace_{mark}_{name}"
        used[view] = tables.use(*owners[id(known[name])])
        return view

    text = rewritten(sql, known, called)
    return from_query(session, text, used)


def _from_path(session: SparkSession, place: str, project: Project) -> Spine:
    from headrace.spark.training.spine import from_csv, from_files

    given = find_source(place, None, storage_options(project.config))
    whole = place if "://" in place else str(Path(place).resolve())
    if given.format == CSV:
        from headrace.ingest.files.text_rows import read_header

        names = read_header(given)
        if not names or "" in names:
            hint = "Write the names of the columns into its first line."
            raise DataError("bad-file", "The file has no header that names every column.", where=given.name, hint=hint)
        return Spine(from_csv(session, whole, names), given.format, whole, text=True)
    if given.format not in (PARQUET, DELTA):
        hint = "Write it as CSV or Parquet."
        raise UsageError("bad-usage", "A spine is CSV, Parquet or a Delta table.", got=shown(place), hint=hint)
    files = files_of(given)
    frame = from_files(session, files.places, files.schema, files.options, plain=files.plain)
    return Spine(frame, given.format, whole)
