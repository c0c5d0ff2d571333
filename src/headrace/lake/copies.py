"""Which records of a batch are copies of an event that was there before: in the lake, or earlier in the batch.

Copies share event id and event time, so only files of those event times are looked at, and of them a hash of the id
first. The first copy is the one the lake has; within a batch the least (order, partition, offset). Nothing is
dropped: a copy learns which record was first, and whether it arrived before that one, which the lake met too late.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headrace.clock import MINUTE
from headrace.lake.files import filesystem
from headrace.lake.layout import IDENTITY, PAYLOAD
from headrace.lake.table import LakeTable

STEP = 5 * MINUTE
"""Event times are looked for in the lake in steps of this."""
MARKS = 1 << 24

KEYS = pa.schema(
    [
        ("hash", pa.int64()),
        ("time", pa.int64()),
        ("id", pa.string()),
        ("order", pa.int64()),
        ("arrived", pa.int64()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("content", pa.int64()),
    ]
)
"""What copies are told by: a hash of the event id, when it happened, the id, its place, a hash of all its fields.

`order` is the time by which it is placed: its arrival, or that of its append when it was appended again later.
"""

COPIES = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("first_partition", pa.int32()),
        ("first_offset", pa.int64()),
        ("conflict", pa.bool_()),
        ("earlier", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class _Copy:
    """One record as copies are compared; those of the lake sort before those of the batch."""

    order: tuple[bool, int, int, int]
    arrived: int
    content: int


def copies(batch: pa.Table, silver: LakeTable) -> pa.Table:
    """The copies among a batch's `KEYS`, each with the place of the record that was first, ordered by place."""
    hashes = batch.column("hash").to_numpy()
    known = _in_lake(batch, hashes, silver)
    ordered = np.sort(hashes)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    suspicious = np.unique(np.concatenate([twice, known.column("hash").to_numpy()]))
    suspects = batch.take(np.flatnonzero(np.isin(hashes, suspicious)))
    return _copies_table(known, suspects)


def _copies_table(known: pa.Table, suspects: pa.Table) -> pa.Table:
    events: dict[tuple[str, int], list[_Copy]] = {}
    for fresh, table in ((False, known), (True, suspects)):
        columns = (table.column(name).to_pylist() for name in KEYS.names[1:])
        for time, identity, order, arrived, partition, offset, content in zip(*columns, strict=True):
            events.setdefault((identity, time), []).append(_Copy((fresh, order, partition, offset), arrived, content))
    found: list[tuple[int, int, int, int, bool, bool]] = []
    for held in events.values():
        first, *others = sorted(held, key=lambda copy: copy.order)
        found += [
            (*copy.order[2:], *first.order[2:], copy.content != first.content, copy.arrived < first.arrived)
            for copy in others
            if copy.order[0]
        ]
    found.sort()
    columns_of: list[Any] = [list(column) for column in zip(*found, strict=True)] if found else [[]] * len(COPIES)
    return pa.table(dict(zip(COPIES.names, columns_of, strict=True)), schema=COPIES)


def spans(times: Iterable[int]) -> list[tuple[int, int]]:
    """Stretches of time that hold all the moments, in whole steps, neighbours joined.

    >>> spans([0, STEP, 7 * STEP]) == [(0, 2 * STEP - 1), (7 * STEP, 8 * STEP - 1)]
    True
    """
    joined: list[tuple[int, int]] = []
    for step in np.unique(np.asarray(times, dtype=np.int64) // STEP).tolist():
        if joined and joined[-1][1] + 1 == step * STEP:
            joined[-1] = (joined[-1][0], (step + 1) * STEP - 1)
        else:
            joined.append((step * STEP, (step + 1) * STEP - 1))
    return joined


def _in_lake(batch: pa.Table, hashes: Any, silver: LakeTable) -> pa.Table:
    """The lake's events that have the hash and the time of one of the batch."""
    happened = silver.shape.day_of
    asked = np.unique(hashes)
    marks = np.zeros(MARKS, dtype=bool)
    marks[asked & (MARKS - 1)] = True
    found = [KEYS.empty_table()]
    for uri in silver.files(happened, spans(batch.column("time").to_numpy())):
        files, path = filesystem(uri, silver.options)
        file = pq.ParquetFile(files.open_input_file(path))
        held = file.read([IDENTITY]).column(0).to_numpy()
        # Most hashes are told apart by their last bits, at the cost of a look into a table.
        maybe = np.flatnonzero(marks[held & (MARKS - 1)])
        hits = maybe[np.isin(held[maybe], asked)]
        if len(hits):
            names = [happened, "_event_id", "_arrived_at", "_partition", "_offset", IDENTITY, PAYLOAD]
            found.append(_keys(file.read(names).take(hits), happened))
    return pa.concat_tables(found)


def _keys(rows: pa.Table, happened: str) -> pa.Table:
    named = {
        "hash": IDENTITY,
        "time": happened,
        "id": "_event_id",
        "order": "_arrived_at",
        "arrived": "_arrived_at",
        "partition": "_partition",
        "offset": "_offset",
        "content": PAYLOAD,
    }
    return pa.table([rows.column(named[name]).cast(KEYS.field(name).type) for name in KEYS.names], schema=KEYS)
