"""Parquet files of a table, written by whoever holds the rows and not yet part of the table.

An executor writes and tells what it wrote; the driver commits that (`lake.table`). A file nobody commits is invisible,
and `vacuum` removes it one day. Names are never used twice, so a task that is run again harms nothing.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from headrace.codec.json.rules import LATEST
from headrace.lake.layout import TableLayout

ROWS_PER_GROUP = 131_072
BYTES_PER_GROUP = 64 * 1024 * 1024
COMPRESSION = "zstd"


@dataclass(frozen=True)
class DataFile:
    """A file as a commit needs it; `path` is relative to the table."""

    path: str
    day: str
    size: int
    rows: int
    statistics: str


class DayWriter:
    """Writes batches of a table into one file per day, whose name begins with the name of the batch."""

    def __init__(
        self, root: str, shape: TableLayout, options: Mapping[str, str] | None = None, batch: str = ""
    ) -> None:
        self._shape, self._batch = shape, batch
        self._files, self._root = filesystem(root, options)
        self._open: dict[str, _DayFile] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch with the table's columns."""
        if not batch.num_rows:
            return
        batch = batch.select(self._shape.schema.names).cast(self._shape.schema)
        days = pc.cast(batch.column(self._shape.day_of), pa.date32())
        found = pc.unique(days)
        for day in found:
            part = batch if len(found) == 1 else batch.filter(pc.equal(days, day))
            self._file(day.as_py().isoformat()).add(part)

    def _file(self, day: str) -> _DayFile:
        if day not in self._open:
            path = f"{self._shape.day}={day}/{self._batch}{uuid.uuid4().hex}.parquet"
            self._open[day] = _DayFile(self._files, f"{self._root}/{path}", path, day, self._shape)
        return self._open[day]

    def close(self) -> list[DataFile]:
        """Finish every file; what comes back is all there is to commit."""
        return [each.close() for each in self._open.values()]


@dataclass
class _DayFile:
    """One file being written, in row groups of a useful size."""

    files: fs.FileSystem
    full: str
    path: str
    day: str
    shape: TableLayout
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bounds: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    nulls: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.files.create_dir(self.full.rpartition("/")[0], recursive=True)
        self.sink = self.files.open_output_stream(self.full)
        self.writer = pq.ParquetWriter(self.sink, self.shape.schema, compression=COMPRESSION, compression_level=1)

    def add(self, batch: pa.RecordBatch) -> None:
        self.waiting.append(batch)
        rows, size = sum(each.num_rows for each in self.waiting), sum(each.nbytes for each in self.waiting)
        if rows >= ROWS_PER_GROUP or size >= BYTES_PER_GROUP:
            self._write()

    def _write(self) -> None:
        if not self.waiting:
            return
        table = pa.Table.from_batches(self.waiting)
        self.waiting = []
        self.rows += table.num_rows
        for name in self.shape.statistics:
            column = table.column(name)
            self.nulls[name] = self.nulls.get(name, 0) + column.null_count
            found = pc.min_max(column)
            low, high = found["min"], found["max"]
            if low.is_valid:
                seen = self.bounds.get(name)
                low, high = _plain(low), _plain(high)
                self.bounds[name] = (low, high) if seen is None else (min(seen[0], low), max(seen[1], high))
        self.writer.write_table(table, row_group_size=ROWS_PER_GROUP)

    def close(self) -> DataFile:
        self._write()
        self.writer.close()
        self.sink.close()
        if isinstance(self.files, fs.LocalFileSystem):
            _sync(self.full)
        size = self.files.get_file_info(self.full).size
        return DataFile(self.path, self.day, size, self.rows, self._statistics())

    def _statistics(self) -> str:
        """As the Delta protocol has them; moments in milliseconds, rounded outwards."""
        kinds = {name: self.shape.schema.field(name).type for name in self.bounds}
        told = {
            "numRecords": self.rows,
            "minValues": {name: _statistic_value(low, kinds[name], up=False) for name, (low, _) in self.bounds.items()},
            "maxValues": {
                name: _statistic_value(high, kinds[name], up=True) for name, (_, high) in self.bounds.items()
            },
            "nullCount": self.nulls,
        }
        return json.dumps(told)


def _plain(scalar: pa.Scalar) -> int:
    return int(scalar.value) if pa.types.is_timestamp(scalar.type) else int(scalar.as_py())


def _statistic_value(value: int, kind: pa.DataType, *, up: bool) -> int | str:
    if not pa.types.is_timestamp(kind):
        return value
    from headrace.clock import show_time

    millis = -(-value // 1000) if up else value // 1000
    # In the last millisecond there is, outwards is nowhere.
    return show_time(min(millis * 1000, LATEST))


def filesystem(root: str, options: Mapping[str, str] | None = None) -> tuple[fs.FileSystem, str]:
    """Where a table's files go: a local folder, or object storage as pyarrow knows it.

    >>> filesystem("data/lake")[1].endswith("data/lake")
    True
    """
    if "://" not in root:
        return fs.LocalFileSystem(), os.path.abspath(root)
    if root.startswith("s3://") and options:
        from headrace.lake.storage import s3

        return s3(options), root.removeprefix("s3://").rstrip("/")
    found, path = fs.FileSystem.from_uri(root)
    return found, path.rstrip("/")


def remove(root: str, options: Mapping[str, str] | None = None) -> None:
    """Remove a folder and what is in it; one that is not there is fine."""
    files, path = filesystem(root, options)
    if files.get_file_info(path).type != fs.FileType.NotFound:
        files.delete_dir(path)


def remove_batch(root: str, batch: str, options: Mapping[str, str] | None = None) -> None:
    """Remove the files of a batch that no commit will name, from a local table: they would keep a full disk full.

    In object storage they stay until `vacuum` removes them.
    """
    files, path = filesystem(root, options)
    if isinstance(files, fs.LocalFileSystem) and batch:
        for file in Path(path).glob(f"*/{batch}*.parquet"):
            file.unlink(missing_ok=True)


def remove_files(root: str, unnamed: Iterable[DataFile], options: Mapping[str, str] | None = None) -> None:
    """The same for single files."""
    files, path = filesystem(root, options)
    if isinstance(files, fs.LocalFileSystem):
        for file in unnamed:
            Path(path, file.path).unlink(missing_ok=True)


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
