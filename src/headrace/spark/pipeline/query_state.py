"""What Spark keeps between batches: rows and bytes of each stateful operator, as a query tells of them or as they are.

A query tells of its state after every batch (`operator_states`); that costs nothing, and `spark.status` publishes it.
Looking into the state itself (`inspect`) reads it back from the checkpoint with a session of Spark's, and finds the
oldest and the newest row; the query may run meanwhile. How long rows are kept is the plan's business
(`TileSet.state_retention`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.clock import micros
from headrace.errors import DataError
from headrace.plan.model import DEDUPLICATION, TILES
from headrace.spark.failure import cause_of
from headrace.spark.progress import last_batch
from headrace.status.records import OperatorState

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

OPERATORS = {"dedupe": DEDUPLICATION, "stateStoreSave": TILES}
"""Spark's names of the operators, and ours."""
TRIES = 3
"""A batch that is looked at may be tidied away meanwhile; a newer one is there then."""


def operator_states(progress: Any) -> dict[str, OperatorState]:
    """What a batch's progress says of each operator."""
    return {
        OPERATORS.get(state.operatorName, state.operatorName): OperatorState(
            rows=state.numRowsTotal,
            memory_bytes=state.memoryUsedBytes,
            disk_bytes=int(state.customMetrics.get("rocksdbSstFileSize", 0)),
        )
        for state in progress.stateOperators
    }


def watermark(progress: Any) -> int | None:
    """The watermark of a batch, before which all state is gone; None while there is none."""
    return _moment_of(progress, "watermark")


def newest(progress: Any) -> int | None:
    """The newest event of a batch."""
    return _moment_of(progress, "max")


def _moment_of(progress: Any, name: str) -> int | None:
    # Before its first event, a query has a watermark of 1970.
    text = progress.eventTime.get(name)
    return None if text is None else micros(text) or None


def checkpoint_bytes(checkpoint: Path) -> dict[str, int]:
    """What the state of each operator takes in a checkpoint: the last batches, for a restart."""
    found = {}
    for file in checkpoint.glob("state/*/_metadata/metadata"):
        # A line with the format's version, then one JSON object.
        name = json.loads(file.read_text("utf-8").splitlines()[1])["operatorInfo"]["operatorName"]
        found[OPERATORS.get(name, name)] = sum(_size(each) for each in file.parents[1].rglob("*"))
    return found


def _size(file: Path) -> int:
    try:
        return file.stat().st_size if file.is_file() else 0
    except OSError:
        return 0  # tidied away meanwhile


@dataclass(frozen=True)
class OperatorUsage:
    """What an operator holds: rows, and the oldest and newest moment among them (of a tile its start)."""

    rows: int
    oldest: int | None
    newest: int | None


def inspect(session: SparkSession, checkpoint: Path) -> dict[str, OperatorUsage]:
    """What each operator of a query holds after its last batch; nothing before the first."""
    from pyspark.errors import PySparkException

    for left in reversed(range(TRIES)):
        if last_batch(checkpoint) is None:
            return {}
        try:
            return _inspected(session, str(checkpoint))
        except PySparkException as error:
            if not left:
                message = "The state of a query cannot be read from its checkpoint."
                hint = "Try again; a run whose state is damaged begins anew at the next start."
                raise DataError("state-unreadable", message, got=cause_of(error), hint=hint) from error
    return {}


def _inspected(session: SparkSession, checkpoint: str) -> dict[str, OperatorUsage]:
    known = session.read.format("state-metadata").load(checkpoint).select("operatorId", "operatorName").distinct()
    found = {}
    for row in known.orderBy("operatorId").collect():
        rows = session.read.format("statestore").option("operatorId", row.operatorId).load(checkpoint)
        moment = _moment(rows, row.operatorName)
        aggregates = [f"unix_micros({function}(moment)) AS {function}" for function in ("min", "max")]
        (seen,) = rows.select(moment.alias("moment")).selectExpr("count(1) AS rows", *aggregates).collect()
        found[OPERATORS.get(row.operatorName, row.operatorName)] = OperatorUsage(seen["rows"], seen["min"], seen["max"])
    return found


def _moment(rows: DataFrame, operator: str) -> Column:
    """Which time of a state row is meant: an event's own, or the start of a tile."""
    from pyspark.sql.functions import lit

    key = rows["key"]
    if operator == "dedupe":
        return key.getField("~time")
    return key.getField("window").getField("start") if operator == "stateStoreSave" else lit(None).cast("timestamp")
