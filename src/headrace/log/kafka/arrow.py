"""A range of a Kafka topic as Arrow record batches, in the columns of `log.embedded.arrow`.

For streams that are planned by arrival (`spark.source`). Slices are read by Spark's connector inside the JVM instead.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headrace.log.embedded.arrow import BATCH_BYTES, SCHEMA
from headrace.log.protocol import Log
from headrace.log.record import Record

RECORDS = 10_000


def batches(log: Log, topic: str, partition: int, *, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """The records of one partition in [start, end), in order; any log will do.

    Examples
    --------
    >>> from headrace.log import MemoryLog
    >>> log = MemoryLog()
    >>> _ = log.create_topic("payments"), log.append("payments", b"{}", headers=(("trace", b"1"),))
    >>> [batch.column("headers").to_pylist() for batch in batches(log, "payments", 0, start=0, end=1)]
    [[[{'key': 'trace', 'value': b'1'}]]]
    """
    while start < end:
        records = log.read(topic, partition, start, limit=min(RECORDS, end - start), max_bytes=BATCH_BYTES)
        # Offsets without records, left by compaction or transactions, may reach up to the end and past it.
        wanted = records if records and records[-1].offset < end else [r for r in records if r.offset < end]
        if wanted:
            yield _batch(wanted)
        if not records:
            return
        start = records[-1].offset + 1


def _batch(records: list[Record]) -> pa.RecordBatch:
    headers = [[{"key": name, "value": value} for name, value in record.headers] for record in records]
    arrays = [
        pa.repeat(pa.scalar(records[0].topic, pa.string()), len(records)),
        pa.repeat(pa.scalar(records[0].partition, pa.int32()), len(records)),
        pa.array([record.offset for record in records], pa.int64()),
        pa.array([record.arrived_at for record in records], pa.int64()).cast(SCHEMA.field("arrived_at").type),
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array(headers, SCHEMA.field("headers").type),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
