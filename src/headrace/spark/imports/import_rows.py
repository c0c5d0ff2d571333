"""The rows of an import on their way to Spark: in the order of arrival, in batches, each put down as a file.

    rows of the source ──► `spark.imports.arrival_order` ──► batches that fit into memory ──► Parquet with row numbers

`spark.imports.history_import` reads what is put down and commits it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.spark.imports.arrival_order import sorted_by_arrival

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES = 128 * 1024 * 1024
"""A batch ends early when its rows are as long as this."""
ROWS_PER_GROUP = 20_000

CHUNK_ROWS = 10_000
"""Rows of the source that become one Arrow batch."""

Source = Callable[[int], Iterator[Any]]
"""The rows of a source from a number on, in its own order, each with `value`, `arrival` and `done`."""


@dataclass(frozen=True)
class OrderedRows:
    """Rows in the order in which they are imported: each batch with how much is done by then, and the total.

    Without a total, which is a number of rows, what is done is counted as the source counts it.
    """

    batches: Iterator[tuple[pa.RecordBatch, int]]
    total: int | None


@contextmanager
def sorted_rows(source: Source, start: int, folder: Path, progress: Callable[[int], None]) -> Iterator[OrderedRows]:
    """The rows from number `start` on, numbered in the order of arrival.

    Parameters
    ----------
    folder
        Where they are sorted; it is made and removed.
    progress
        Called with how much of the source was read.
    """
    count = 0

    def read() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch, done in _arrow_batches(source(0)):
            yield batch
            count += batch.num_rows
            progress(done)

    with sorted_by_arrival(read(), folder) as batches:
        yield OrderedRows(_from(batches, start), count)


@contextmanager
def plain_rows(source: Source, start: int) -> Iterator[OrderedRows]:
    """The rows from number `start` on, numbered as the source has them."""
    yield OrderedRows(_arrow_batches(source(start)), None)


def _from(batches: Iterable[pa.RecordBatch], start: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches without the first rows, each with the number of the row behind it."""
    end = 0
    for batch in batches:
        skipped = max(0, start - end)
        end += batch.num_rows
        yield batch.slice(min(skipped, batch.num_rows)), end


def _arrow_batches(rows: Iterator[Any]) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Rows as Arrow batches, each with how much of the source is read by then."""
    import pyarrow as pa

    while chunk := list(islice(rows, CHUNK_ROWS)):
        values = pa.array([row.value for row in chunk], pa.binary())
        arrivals = pa.array([row.arrival for row in chunk], pa.string())
        yield pa.RecordBatch.from_arrays([values, arrivals], names=["value", "arrival"]), chunk[-1].done


class ImportBatch(NamedTuple):
    """Rows that are committed together, how much is done with them, and whether they are the last."""

    rows: list[pa.RecordBatch]
    done: int
    last: bool


def in_batches(given: Iterable[tuple[pa.RecordBatch, int]], left: int | None, most: int) -> Iterator[ImportBatch]:
    """Rows in batches that fit into memory; the last one, perhaps empty, is marked once the source is at its end.

    Parameters
    ----------
    left
        How many rows are wanted; all when None.
    most
        Rows in a batch.
    """
    gathered: list[pa.RecordBatch] = []
    count = size = done = 0
    for batch, done in given:
        rows = batch
        while rows.num_rows:
            room = most - count if left is None else min(most - count, left)
            part, rows = rows.slice(0, room), rows.slice(room)
            gathered.append(part)
            count, size = count + part.num_rows, size + part.nbytes
            left = None if left is None else left - part.num_rows
            if count >= most or size >= MOST_BYTES or left == 0:
                yield ImportBatch(gathered, done, last=False)
                gathered, count, size = [], 0, 0
            if left == 0:
                return
    yield ImportBatch(gathered, done, last=True)


def put_down(rows: list[pa.RecordBatch], first: int, file: Path) -> None:
    """Rows with their numbers, where Spark can read them; row groups are what its tasks share."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not rows:
        return
    table = pa.Table.from_batches(rows)
    table = table.append_column("offset", pa.array(range(first, first + table.num_rows), pa.int64()))
    pq.write_table(table, file, row_group_size=ROWS_PER_GROUP, compression="lz4")
