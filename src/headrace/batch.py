"""Batch work over the lake from Python, on a Spark of your own: `hr.backfill` and `hr.lake_tiles`.

Both take `spark=`, a classic session or one of Spark Connect; without it a local one is started. The session's workers
need Headrace installed only where the lake is in object storage that Spark itself has no jars for. `headrace backfill`
is the same on the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.clock import Clock, SystemClock
from headrace.config.config import names
from headrace.project import Project
from headrace.project import load as load_project
from headrace.public_calls import check_call
from headrace.spark.backfill.step import END, SPARK, BackfillProgress, BackfillStep
from headrace.topics import create, open_log, spark_jars, topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.spark.backfill.backfill import Filled


@check_call
def backfill(
    project: Project | str | Path | None = None,
    view: str | None = None,
    *,
    spark: SparkSession | None = None,
    rate: float | None = None,
    progress: BackfillProgress = lambda _: None,
    clock: Clock | None = None,
) -> list[Filled]:
    """Begin a new run of a view's tiles, or of all, from the history in the lake.

    One that was begun before and cut off is finished instead. The running pipeline follows it, and when it has caught
    up it takes the place of the run that serves.

    Parameters
    ----------
    project
        A loaded project or its folder; the current folder when left out.
    view
        The view whose tiles are meant; views that share their tiles are filled together.
    spark
        The session to use.
    rate
        The most rows a second to write.
    progress
        Called when a step begins and as it goes on.
    """
    whose = loaded(project)
    progress(BackfillStep(SPARK))
    from headrace.spark.backfill.project_backfill import run_backfill

    with open_log(whose.config) as log:
        create(log, topics(whose.plan(), names(whose.config), whose.config.log.partitions))
    with session_of(whose, spark, "backfill") as session:
        chosen = whose.plan().tile_sets_of(view)
        done = run_backfill(whose.config, chosen, session, clock or SystemClock(), rate=rate, progress=progress)
        progress(BackfillStep(END, 0, 1.0))
    return done


@check_call
def lake_tiles(
    project: Project | str | Path | None, view: str, *, spark: SparkSession, before: int | None = None
) -> DataFrame:
    """The tiles of a view over all events in the lake: start, key and partial columns, one row for each (key, tile).

    Parameters
    ----------
    before
        Only events that happened before, in microseconds.
    """
    from headrace.spark.backfill.project_backfill import tiles_of_lake

    whose = loaded(project)
    (chosen,) = whose.plan().tile_sets_of(view)
    return tiles_of_lake(whose.config, chosen, spark, before)


def loaded(project: Project | str | Path | None) -> Project:
    """A project that is loaded, or is now, from its folder or the current one."""
    return project if isinstance(project, Project) else load_project(None if project is None else Path(project))


@contextmanager
def session_of(project: Project, spark: Any, what: str) -> Iterator[Any]:
    """The given session, or a local one for the time being, which is for `what`."""
    if spark is not None:
        yield spark
        return
    from headrace.spark.session import quiet_session

    config = project.config
    file = names(config).path("run", f"{what}-spark.log")
    with quiet_session(f"headrace {config.name} {what}", file, spark_jars(config, project.plan())) as session:
        yield session
