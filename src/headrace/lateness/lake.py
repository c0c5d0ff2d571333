"""Delays and a sample of records from a stream's bronze table, a file at a time and only the columns needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.lake.files import filesystem
from headrace.lake.table import LakeTable, reading
from headrace.lateness.delays import Delays
from headrace.log.record import Record

COUNTED = ("admitted", "late", "future")
"""The verdicts of records that say when they happened and are no further copy on time."""
ASSUMED = "assumed"
"""The arrival of history for which somebody only supposed one: it says nothing of lateness."""
COLUMNS = ["partition", "arrived_at", "event_time", "verdict", "first_offset", "arrival"]
SAMPLE = ["partition", "offset", "appended_at", "key", "value", "headers", "verdict"]
ROWS = 131_072


@dataclass
class UncountedRecords:
    """What was not counted: copies of an event, and records whose arrival is only assumed."""

    copies: int = 0
    assumed: int = 0


def read(bronze: LakeTable, delays: Delays) -> UncountedRecords:
    """Add all of a bronze table to the delays; says what was left out."""
    left = UncountedRecords()
    with reading(bronze.uri):
        for uri in bronze.files():
            files, path = filesystem(uri, bronze.options)
            with files.open_input_file(path) as opened:
                for batch in pq.ParquetFile(opened).iter_batches(ROWS, columns=COLUMNS):
                    _add(batch, delays, left)
    return left


def _add(batch: pa.RecordBatch, delays: Delays, left: UncountedRecords) -> None:
    verdict, happened = batch.column("verdict"), batch.column("event_time")
    copy = pc.or_(pc.equal(verdict, "duplicate"), pc.is_valid(batch.column("first_offset")))
    assumed = pc.fill_null(pc.starts_with(batch.column("arrival"), ASSUMED), False)
    timed = pc.and_(pc.is_valid(happened), pc.is_in(verdict, value_set=pa.array([*COUNTED, "duplicate"])))
    left.copies += _count(pc.and_(timed, copy))
    left.assumed += _count(pc.and_(timed, pc.and_not(assumed, copy)))
    wanted = batch.filter(pc.and_not(pc.and_not(timed, copy), assumed))
    arrived, happened = (wanted.column(name).cast(pa.int64()).to_numpy() for name in ("arrived_at", "event_time"))
    delays.add(wanted.column("partition").to_numpy(), arrived=arrived, happened=happened)


def _count(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)


def newest(bronze: LakeTable, topic: str, most: int) -> list[Record]:
    """About the last admitted records of a topic, to be read again; imported ones are left out."""
    found: list[Record] = []
    with reading(bronze.uri):
        actions = pa.table(bronze.delta.get_add_actions(flatten=True))
        if not actions.num_rows:
            return []
        paths = actions.sort_by([("max.arrived_at", "descending")]).column("path").to_pylist()
        root = bronze.delta.table_uri.rstrip("/")
        for path in paths:
            files, place = filesystem(f"{root}/{path}", bronze.options)
            with files.open_input_file(place) as opened:
                file = pq.ParquetFile(opened)
                for group in reversed(range(file.num_row_groups)):
                    found += _records(file.read_row_group(group, SAMPLE), topic, most - len(found))
                    if len(found) >= most:
                        return found
    return found


def _records(rows: pa.Table, topic: str, most: int) -> list[Record]:
    live = pc.and_(pc.equal(rows.column("verdict"), "admitted"), pc.greater_equal(rows.column("partition"), 0))
    kept = rows.filter(live)
    kept = kept.slice(max(0, kept.num_rows - most))
    appended = kept.column("appended_at").cast(pa.int64()).to_numpy()
    columns = (kept.column(name).to_pylist() for name in ("partition", "offset", "key", "value", "headers"))
    return [
        Record(topic, partition, offset, int(at), key, value, _headers(headers))
        for at, partition, offset, key, value, headers in zip(appended, *columns, strict=True)
    ]


def _headers(listed: list[dict[str, Any]] | None) -> tuple[tuple[str, bytes], ...]:
    return tuple((each["key"], each["value"] or b"") for each in listed or ())
