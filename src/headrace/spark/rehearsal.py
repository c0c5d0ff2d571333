"""A rehearsal: the archive and the pipeline once over a short log, so that a JVM loads the classes that both need.

The JVM writes them down as it ends (`spark.classes`).
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.clock import SystemClock
from headrace.config.config import Config, names
from headrace.errors import MachineError
from headrace.machine import find_java
from headrace.plan.model import Plan
from headrace.spark.archive.component import Archiving
from headrace.spark.classes import classes_file, stable_home
from headrace.spark.jvm import ended_if_interrupted
from headrace.spark.pipeline.pipeline import Pipeline
from headrace.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONGEST = 120.0


def rehearse(plan: Plan, config: Config) -> Path:
    """Run a plan's archive and pipeline over what its log holds, and keep the classes: gives the file."""
    file = classes_file(find_java())
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.environ["SPARK_HOME"] = str(stable_home(file))
        session = local_session("headrace prepare", keep_classes=fresh)
        with ended_if_interrupted():
            _perform(plan, config, session)
            _end(session)
        fresh.replace(file)
    except OSError as error:
        hint = "Run it as somebody who may write there; Headrace also works without."
        raise MachineError("not-prepared", "Spark's classes were not kept.", got=str(error), hint=hint) from error
    finally:
        fresh.unlink(missing_ok=True)
    return file


def _perform(plan: Plan, config: Config, session: SparkSession) -> None:
    archiving = Archiving(plan, config, session, SystemClock())
    while archiving.step():
        pass
    archiving.stop()
    pipeline, deadline = Pipeline(plan, config, session, SystemClock()), time.monotonic() + LONGEST
    changelogs = [names(config).topic(f"changelog.{tile_set.id}") for tile_set in plan.tile_sets]
    try:
        while not all(sum(pipeline.log.end_offsets(topic).values()) for topic in changelogs):
            pipeline.step()
            if time.monotonic() > deadline:
                hint = "Try again when the machine is less busy."
                raise MachineError("not-prepared", f"The pipeline gave no tile within {LONGEST:.0f} s.", hint=hint)
            time.sleep(0.2)
    finally:
        pipeline.stop()


def _end(session: SparkSession) -> None:
    """Stop the session and its JVM, and wait until that has written down its classes."""
    process = session.sparkContext._gateway.proc  # type: ignore[union-attr]
    session.stop()
    process.stdin.close()
    process.wait(LONGEST)
