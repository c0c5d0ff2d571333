"""A table scored in Spark, in a process of its own: `python -m bench.scoring.table PROJECT ROWS ROUNDS`.

Prints the seconds that each round took as JSON, after one that does not count, without the start of Spark. The rows are
made up by Spark as it goes, in parts of equal size: their making is in the time, and no reading of files.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.scoring.champion import MODEL
from headrace import project
from headrace.models.columns import ModelColumn
from headrace.project import Project
from headrace.project_models import models_of, score_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORES, PARTS = 2, 16


def expressions(columns: Iterable[ModelColumn]) -> list[str]:
    """Random values for columns, as SQL.

    >>> expressions([ModelColumn("n", "integer", ""), ModelColumn("spend", "float", "")])
    ['CAST(rand(0) * 100 AS BIGINT) AS n', 'rand(1) * 900 AS spend']
    """
    made = {"integer": "CAST(rand({0}) * 100 AS BIGINT) AS {1}", "float": "rand({0}) * 900 AS {1}"}
    return [made[each.type].format(seed, each.name) for seed, each in enumerate(columns)]


def timed(session: SparkSession, made: Project, rows: int, rounds: int) -> list[float]:
    """Seconds of each round; refused when a row has no score."""
    models = models_of(made)
    champion = models.roles(MODEL).champion or 0
    frame = session.range(0, rows, 1, PARTS).selectExpr(*expressions(models.manifest(MODEL, champion).columns))
    refuse_unscored(score_table(frame, MODEL, project=made), rows)
    _once(frame, made)
    return [_once(frame, made) for _ in range(rounds)]


def _once(frame: DataFrame, made: Project) -> float:
    began = time.perf_counter()
    score_table(frame, MODEL, project=made).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def refuse_unscored(scored: DataFrame, rows: int) -> None:
    """Refuse to time what gives no scores."""
    found = scored.selectExpr("count(score) AS scores", "count(error) AS errors").first()
    if found is None or (found["scores"], found["errors"]) != (rows, 0):
        raise RuntimeError(f"of {rows:,} rows there are {found}")


if __name__ == "__main__":
    from headrace.spark.session import local_session

    root, rows, rounds = sys.argv[1:]
    started = local_session("bench", CORES)
    took = timed(started, project.load(Path(root)), int(rows), int(rounds))
    started.stop()
    sys.stdout.write(json.dumps({"seconds": took}) + "\n")
