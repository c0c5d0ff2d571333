"""A range of the embedded log as Arrow record batches, without making a Python object per record.

Frames are columns already: lengths become Arrow's offsets by a running sum, data is joined as it is. pyarrow and
numpy are loaded only when this module is. `spark.source` hands the batches to Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.log.embedded.frame import HEADERS, KEYS, SPARSE, Frame, columns, decode_headers
from headrace.log.embedded.log import EmbeddedLog

BATCH_BYTES = 4 * 1024 * 1024
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("arrived_at", pa.timestamp("us", tz="UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.field("element", _HEADER))),
    ]
)


def batches(log: EmbeddedLog, topic: str, partition: int, *, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """The records of one partition in [start, end), in order, in batches of a few megabytes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, EmbeddedLog(folder) as log:
    ...     _ = log.create_topic("payments"), log.append("payments", b"{}", headers=(("trace", b"1"),))
    ...     [batch.column("headers").to_pylist() for batch in batches(log, "payments", 0, start=0, end=1)]
    [[[{'key': 'trace', 'value': b'1'}]]]
    """
    while start < end:
        frames = log.frames(topic, partition, start, until=end, max_bytes=BATCH_BYTES)
        if not frames:
            return
        batch = _batch(topic, partition, frames, start, end)
        if batch.num_rows:
            yield batch
        start = frames[-1].next


def _batch(topic: str, partition: int, frames: list[Frame], start: int, end: int) -> pa.RecordBatch:
    offsets = np.concatenate([_offsets(frame) for frame in frames])
    counts = [frame.count for frame in frames]
    arrived_at = np.repeat(np.array([frame.arrived_at for frame in frames], dtype=np.int64), counts)
    size = len(offsets)
    arrays = [
        pa.repeat(pa.scalar(topic, pa.string()), size),
        pa.repeat(pa.scalar(partition, pa.int32()), size),
        pa.array(offsets, pa.int64()),
        pa.Array.from_buffers(SCHEMA.field("arrived_at").type, size, [None, pa.py_buffer(arrived_at)]),
        *_payload(frames),
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    # Offsets rise, so the range asked for is a slice.
    first, last = np.searchsorted(offsets, [start, end])
    return batch.slice(int(first), int(last - first))


def _offsets(frame: Frame) -> Any:
    if frame.flags & SPARSE:
        return frame.base + np.frombuffer(frame.body, "<u4", frame.count).astype(np.int64)
    return np.arange(frame.base, frame.base + frame.count, dtype=np.int64)


def _payload(frames: list[Frame]) -> tuple[pa.Array, pa.Array, pa.Array]:
    keys, values, headers = _Column(), _Column(), _Column()
    for frame in frames:
        place = columns(frame)
        at = place.data
        at = keys.add(frame, place.key_lengths if frame.flags & KEYS else None, at, absent=-1)
        at = values.add(frame, place.value_lengths, at, absent=-1)
        headers.add(frame, place.header_lengths if frame.flags & HEADERS else None, at, absent=0)
    return keys.array(), values.array(), _headers(headers.array())


class _Column:
    """Lengths and data of one column, gathered over frames."""

    def __init__(self) -> None:
        self.lengths: list[Any] = []
        self.data: list[memoryview] = []

    def add(self, frame: Frame, lengths: int | None, at: int, *, absent: int) -> int:
        if lengths is None:
            self.lengths.append(np.full(frame.count, absent, dtype=np.int32))
            return at
        found = np.frombuffer(frame.body, "<i4", frame.count, lengths)
        size = int(np.maximum(found, 0).sum())
        self.lengths.append(found)
        self.data.append(memoryview(frame.body)[at : at + size])
        return at + size

    def array(self) -> pa.Array:
        lengths = np.concatenate(self.lengths)
        ends = np.zeros(len(lengths) + 1, dtype=np.int32)
        np.cumsum(np.maximum(lengths, 0), out=ends[1:])
        missing = lengths < 0
        valid = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
        buffers = [valid, pa.py_buffer(ends), pa.py_buffer(b"".join(self.data))]
        return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def _headers(encoded: pa.Array) -> pa.Array:
    ends = np.zeros(len(encoded) + 1, dtype=np.int32)
    names: list[str] = []
    values: list[bytes] = []
    if encoded.buffers()[2].size:
        for row, item in enumerate(encoded.to_pylist()):
            for name, value in decode_headers(item) if item else ():
                names.append(name)
                values.append(value)
            ends[row + 1] = len(names)
    pairs = pa.StructArray.from_arrays(
        [pa.array(names, pa.string()), pa.array(values, pa.binary())], fields=list(_HEADER)
    )
    return pa.ListArray.from_arrays(pa.array(ends), pairs, type=SCHEMA.field("headers").type)
