"""Tables of a project's lake as the archive would have filled them, written without Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from headrace.clock import show_time
from headrace.config.config import Config
from headrace.define.stream import Stream
from headrace.lake.counters import BATCH, COUNT, OFFSET, TURN
from headrace.lake.files import DayWriter
from headrace.lake.location import Lake, open_lake
from headrace.lake.table import LakeTable
from tests.lake.conftest import moment


def record(partition: int, offset: int, arrived: int, delay: int, **more: Any) -> dict[str, Any]:
    """A row of bronze: a payment that arrived `delay` after it happened."""
    happened = arrived - delay
    at = show_time(happened)
    row = {"id": f"{partition}-{offset}", "card": f"card-{offset % 10}", "amount": 1.5, "country": "DE", "at": at}
    return {
        "partition": partition,
        "offset": offset,
        "appended_at": moment(arrived),
        "arrived_at": moment(arrived),
        "arrival": "log",
        "key": b"key",
        "value": json.dumps(row).encode(),
        "headers": [],
        "verdict": "admitted",
        "reason": None,
        "event_time": moment(happened),
        "event_id": row["id"],
        "first_partition": None,
        "first_offset": None,
        "conflict": False,
    } | more


def silver_row(bronze: dict[str, Any]) -> dict[str, Any]:
    """The row of silver that belongs to a row of bronze."""
    own: dict[str, Any] = json.loads(bronze["value"]) | {"at": bronze["event_time"]}
    place = {"_partition": bronze["partition"], "_offset": bronze["offset"], "_arrived_at": bronze["arrived_at"]}
    told = {"_late": bronze["verdict"] == "late", "_event_id": bronze["event_id"], "_identity": 1, "_payload": 1}
    return own | place | told


def fill(config: Config, stream: Stream, batches: Iterable[list[dict[str, Any]]], *, silver: bool = True) -> Lake:
    """Commit batches of bronze rows and the silver rows that belong to them, counters included."""
    lake = open_lake(config, stream)
    counts: Counter[str] = Counter()
    ends: dict[int, int] = {}
    for number, rows in enumerate(batches, 1):
        counts.update(row["verdict"] for row in rows)
        ends |= {row["partition"]: row["offset"] + 1 for row in rows}
        moved = {BATCH: number, TURN: number} | {f"{OFFSET}{p}": end for p, end in ends.items()}
        write(lake.bronze, rows, moved | {f"{COUNT}{verdict}": count for verdict, count in counts.items()})
        counted = [row for row in rows if row["verdict"] in ("admitted", "late") and row["first_offset"] is None]
        if silver:
            write(lake.silver, [silver_row(row) for row in counted], moved)
    return lake


def write(table: LakeTable, rows: list[dict[str, Any]], counters: dict[str, int]) -> None:
    """One commit."""
    writer = DayWriter(table.uri, table.shape)
    writer.add(pa.RecordBatch.from_pylist(rows, schema=table.shape.schema))
    table.commit(writer.close(), counters)
