"""A small silver table to write to, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import headrace as hr
from headrace.lake.copies import KEYS
from headrace.lake.files import DayWriter
from headrace.lake.layout import silver_shape
from headrace.lake.table import LakeTable

clicks = hr.stream("clicks", fields={"id": str, "at": hr.Timestamp}, event_time="at", event_id="id")
SHAPE = silver_shape(clicks)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def rows(events) -> pa.RecordBatch:
    """Silver rows of (id, time, hash, arrived, partition, offset, content)."""
    made = [
        {
            "id": identity,
            "at": moment(time),
            "_partition": partition,
            "_offset": offset,
            "_arrived_at": moment(arrived),
            "_late": False,
            "_closed": False,
            "_event_id": identity,
            "_identity": hashed,
            "_payload": content,
        }
        for identity, time, hashed, arrived, partition, offset, content in events
    ]
    return pa.RecordBatch.from_pylist(made, schema=SHAPE.schema)


def add(table: LakeTable, events, counters=None) -> None:
    writer = DayWriter(table.uri, SHAPE, table.options)
    writer.add(rows(events))
    table.commit(writer.close(), counters or {})


def keys(events) -> pa.Table:
    """What copies are told by, of the same tuples."""
    names = ("id", "time", "hash", "arrived", "partition", "offset", "content")
    rows = [dict(zip(names, event, strict=True)) for event in events]
    return pa.Table.from_pylist([row | {"order": row["arrived"]} for row in rows], schema=KEYS)


@pytest.fixture
def silver(tmp_path) -> LakeTable:
    return LakeTable(str(tmp_path / "silver"), SHAPE)
