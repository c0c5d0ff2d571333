"""A training set handed out or written down: as pandas, as Spark, or in a folder with its manifest.

`training.reproduce` makes a set anew from its manifest.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.batch import loaded, session_of
from headrace.clock import SystemClock
from headrace.project import Project
from headrace.training.build import Check, PreparedSet, Tell, ready
from headrace.training.lake_tables import LakeTables
from headrace.training.manifest import manifest, write_manifest
from headrace.training.output_folder import as_delta, content, filling, folder_of, write_arrow
from headrace.training.request import TrainingRequest
from headrace.training.spine_source import NUMBER, is_pandas, is_spark

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def make_result(asked: TrainingRequest, spine: Any, out: str | Path | None, project: Any, spark: Any) -> Any:
    """What `hr.training_set` gives: pandas for pandas, else a Spark DataFrame."""
    folder = None if out is None else folder_of(out)
    whose = loaded(project)
    with _session(whose, spark, spine, keep=not is_pandas(spine)) as session:
        tables = LakeTables(whose.config)
        found = ready(session, whose, asked, spine, tables, now=SystemClock().now())
        if is_pandas(spine):
            return _as_pandas(session, whose, found, spine, tables, folder)
        if folder is None:
            return found.frame
        return written(session, whose, found, tables, folder)[0]


def make(
    project: Project,
    asked: TrainingRequest,
    spine: Any,
    folder: Path,
    *,
    session: SparkSession,
    tables: LakeTables | None = None,
    check: Check = lambda _: None,
    tell: Tell = lambda _: None,
) -> dict[str, Any]:
    """Write a training set to a folder; gives its manifest.

    Parameters
    ----------
    tables
        The lake's tables, when they are not those of now.
    check
        Looks at what is known of the spine before anything is done with it.
    """
    now, held = SystemClock().now() if tables is None else None, tables or LakeTables(project.config)
    found = ready(session, project, asked, spine, held, now=now, check=check, tell=tell)
    return written(session, project, found, held, folder, tell=tell)[1]


def written(
    session: SparkSession,
    project: Project,
    found: PreparedSet,
    tables: LakeTables,
    folder: Path,
    *,
    rows: pa.Table | None = None,
    tell: Tell = lambda _: None,
) -> tuple[DataFrame, dict[str, Any]]:
    """A training set in its folder: its rows as they were written, and its manifest.

    `rows` are those of the set, where they are in memory already.
    """
    from headrace.spark.training.spine import write

    with filling(folder) as data:
        tell("computing values")
        if rows is None:
            write(found.frame, str(data.resolve()))
        else:
            write_arrow(rows, data)
        if found.wish.format == "delta":
            as_delta(data)
        tell("looking at the result")
        told = manifest(found, project.plan(), tables, SystemClock().now())
        frame, more = content(session, data, found.wish, list(found.asked.picked))
        write_manifest(folder, told | more)
        return frame, told | more


def _as_pandas(
    session: SparkSession,
    project: Project,
    found: PreparedSet,
    spine: pd.DataFrame,
    tables: LakeTables,
    folder: Path | None,
) -> pd.DataFrame:
    """The rows of a pandas DataFrame that stayed, as they were, with what was added."""
    import pandas as pd

    from headrace.spark.training.spine import collected

    added = [NUMBER, *found.added]
    frame = found.frame if folder is not None else found.frame.selectExpr(*(f"`{name}`" for name in added))
    rows = collected(frame).sort_by(NUMBER)
    if folder is not None:
        written(session, project, found, tables, folder, rows=rows.drop_columns([NUMBER]))
    kept = spine.iloc[rows.column(NUMBER).to_numpy()]
    columns = rows.select(found.added).to_pandas()
    result: pd.DataFrame = pd.concat([kept, columns.set_axis(kept.index)], axis=1)
    return result


@contextmanager
def _session(project: Project, spark: Any, spine: Any, *, keep: bool) -> Iterator[Any]:
    """The session to use. A local one that is started here ends here, unless what is handed out needs it."""
    given = spark if spark is not None else spine.sparkSession if is_spark(spine) else None
    if given is None:
        from headrace.spark.training.spine import active

        given = active()
    with ExitStack() as stack:
        session = stack.enter_context(session_of(project, given, "training-set"))
        yield session
        if keep and given is None:
            atexit.register(stack.pop_all().close)
