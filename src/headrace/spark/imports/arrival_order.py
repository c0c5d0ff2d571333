"""Rows of an import in the order in which they arrived, sorted on the disk in bounded memory.

    rows ──► sorted runs (Arrow files) ──► merge, one block of each run at a time ──► rows by arrival

The first copy of an event is the one that arrived first, so an import has to meet rows as a log would have held them.
Rows of one arrival keep the order of the source. Rows whose arrival cannot be read come last: they never count.

Runs are sorted by numpy and merged here, not by Spark: each row is numbered by its place in this order, and a source
that is read again must get the same numbers, or an import that was killed could not go on. Memory is a run while rows
are read, and a block of up to `FAN_IN` runs while they are merged; more runs are merged into longer ones first.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace.meaning.verdict import whole_micros

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

RUN_BYTES, BLOCK_BYTES, FAN_IN = 64 * 1024 * 1024, 1024 * 1024, 64
MOMENT = "moment"
"""The column that rows are sorted by, beside their own: their arrival in microseconds."""
NEVER = 2**63 - 1
"""Stands for an arrival that cannot be read."""


@contextmanager
def sorted_by_arrival(rows: Iterable[pa.RecordBatch], folder: Path) -> Iterator[Iterator[pa.RecordBatch]]:
    """Rows with a column `arrival`, which holds microseconds as text, in the order of arrival.

    All of `rows` is read on entry. `folder` is made for the sorted runs, and removed on exit.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        files = [_write_run([batch], folder / f"0-{at}.arrow") for at, batch in enumerate(_runs(rows))]
        level = 1
        while len(files) > FAN_IN:
            files = _merge_groups(files, folder, level)
            level += 1
        yield (batch.drop_columns([MOMENT]) for batch in _merge(files))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _runs(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stretches of the source that fit into memory, each sorted in itself."""
    import pyarrow as pa

    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in (each for each in rows if each.num_rows):
        gathered.append(batch.append_column(MOMENT, pa.array(_moments(batch))))
        size += batch.nbytes
        if size >= RUN_BYTES:
            yield _sorted(gathered)
            gathered, size = [], 0
    if gathered:
        yield _sorted(gathered)


def _moments(batch: pa.RecordBatch) -> NDArray[np.int64]:
    read = (whole_micros(text or "") for text in batch.column("arrival").to_pylist())
    return np.fromiter((NEVER if moment is None else moment for moment in read), np.int64, batch.num_rows)


def _sorted(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches as one, in order of arrival; equal ones stay as they stand."""
    import pyarrow as pa

    (joined,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
    moments = joined.column(MOMENT).to_numpy()
    if (moments[1:] >= moments[:-1]).all():
        return joined
    return joined.take(pa.array(np.argsort(moments, kind="stable")))


def _write_run(batches: Iterable[pa.RecordBatch], file: Path) -> Path:
    """A run as a file of blocks that are small enough to have one of many runs in memory."""
    import pyarrow as pa

    writer, options = None, pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.OSFile(str(file), "wb") as sink:
        for batch in batches:
            writer = writer or pa.ipc.new_stream(sink, batch.schema, options=options)
            length = max(1, batch.num_rows * BLOCK_BYTES // max(1, batch.nbytes))
            for first in range(0, batch.num_rows, length):
                writer.write_batch(batch.slice(first, length))
        if writer is not None:
            writer.close()
    return file


def _merge_groups(files: Sequence[Path], folder: Path, level: int) -> list[Path]:
    """Neighbouring runs merged into fewer, longer ones."""
    merged = []
    for at in range(0, len(files), FAN_IN):
        group = files[at : at + FAN_IN]
        merged.append(_write_run(_merge(group), folder / f"{level}-{at}.arrow"))
        for file in group:
            file.unlink()
    return merged


def _merge(files: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """The rows of sorted runs in order; of equal arrivals those of an earlier run first."""
    heads = [_Head(_blocks(file)) for file in files]
    while heads:
        # What follows in a run is behind the last row of its block: up to the least of these, all rows are in memory.
        moment, last = min((head.last, at) for at, head in enumerate(heads))
        parts = [head.take(moment, with_equals=at <= last) for at, head in enumerate(heads)]
        yield _sorted([part for part in parts if part.num_rows])
        heads = [head for head in heads if head.block.num_rows]


def _blocks(file: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with pa.OSFile(str(file)) as source:
        yield from pa.ipc.open_stream(source)


class _Head:
    """The rows of a run that are in memory: a block without those that were taken, empty when the run is at its end."""

    def __init__(self, blocks: Iterator[pa.RecordBatch]) -> None:
        self._blocks = blocks
        self.block = next(blocks)

    @property
    def last(self) -> int:
        """The arrival of the block's last row."""
        return int(self.block.column(MOMENT)[-1].as_py())

    def take(self, moment: int, *, with_equals: bool) -> pa.RecordBatch:
        """Remove the block's rows up to a moment, and give them."""
        moments = self.block.column(MOMENT).to_numpy()
        count = int(np.searchsorted(moments, moment, side="right" if with_equals else "left"))
        taken, rest = self.block.slice(0, count), self.block.slice(count)
        self.block = rest if rest.num_rows else next(self._blocks, rest)
        return taken
