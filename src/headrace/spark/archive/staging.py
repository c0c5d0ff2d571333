"""The first pass of a batch: Spark judges the records, its tasks put them down as Arrow files beside the lake.

What comes back is only what copies are told by. The records are read and decoded once; the second pass
(`spark.archive.table_files`) finds them where this one left them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.define.stream import Stream
from headrace.spark.admission import (
    APPENDED,
    ARRIVED,
    CLOSED,
    EVENT_ID,
    EVENT_TIME,
    HEADERS,
    KEY,
    OFFSET,
    ORDER,
    PARTITION,
    REASON,
    VALUE,
    VERDICT,
)
from headrace.spark.archive.batch_counts import EARLIER

if TYPE_CHECKING:
    import pyarrow as pa

    Batches = Iterator[pa.RecordBatch]

FIELD = "~"
"""What the columns of an event's fields begin with, beside bronze's own."""
AMONG_COPIES = "_order"
COUNTED = ("admitted", "late")
_TOLD = (
    "file STRING, hash BIGINT, time BIGINT, id STRING, `order` BIGINT, arrived BIGINT, partition INT, offset BIGINT, "
    "content BIGINT"
)


def laid_out(rows: DataFrame, stream: Stream) -> DataFrame:
    """Judged rows as bronze has them, and beside them what silver has more.

    Every column is flat and comes once: Spark looks at the size of each value on its way to Python.
    """
    columns = {
        "partition": f"`{PARTITION}`",
        "offset": f"`{OFFSET}`",
        "appended_at": f"timestamp_micros(`{APPENDED}`)",
        "arrived_at": f"timestamp_micros(`{ARRIVED}`)",
        "key": f"`{KEY}`",
        "value": f"`{VALUE}`",
        "headers": f"`{HEADERS}`",
        "verdict": f"`{VERDICT}`",
        "reason": f"`{REASON}`",
        "event_time": f"timestamp_micros(`{EVENT_TIME}`)",
        "event_id": f"`{EVENT_ID}`",
        "_closed": f"`{CLOSED}`",
        "_identity": f"xxhash64(`{EVENT_ID}`)",
        "_payload": f"xxhash64({', '.join(f'`{field.name}`' for field in stream.schema)})",
        # Only for finding copies: a replayed record stands among them where it was appended.
        AMONG_COPIES: f"`{ORDER}`",
    }
    made = [F.expr(text).alias(name) for name, text in columns.items()]
    fields = [field.name for field in stream.schema if field.name != stream.event_time]
    return rows.select(*made, *(F.col(f"`{name}`").alias(f"{FIELD}{name}") for name in fields))


def silver_columns(event_time: str, names: Sequence[str]) -> dict[str, str]:
    """Silver's columns by the staged ones they are taken from; `_late` is told by the verdict."""
    known = {"_partition": "partition", "_offset": "offset", "_arrived_at": "arrived_at", "_event_id": "event_id"}
    known |= {name: name for name in ("_closed", "_identity", "_payload")} | {event_time: "event_time"}
    return {name: known.get(name, f"{FIELD}{name}") for name in names if name != "_late"}


def stage(rows: DataFrame, arrival: str, root: str, options: Mapping[str, str]) -> tuple[list[str], pa.Table]:
    """Put laid-out rows down as files under `root`; gives the files and the keys of the records that may count."""
    from headrace.lake.copies import KEYS

    told = rows.mapInArrow(_stager(arrival, root, options), _TOLD).toArrow()
    named = told.column("file").is_valid()
    files = told.filter(named).column("file").to_pylist()
    keys = told.filter(told.column("file").is_null()).select(KEYS.names)
    return files, keys.cast(KEYS)


def _stager(arrival: str, root: str, options: Mapping[str, str]) -> Callable[[Batches], Batches]:
    def put_down(batches: Batches) -> Batches:
        import pyarrow as pa
        import pyarrow.compute as pc

        from headrace.lake.copies import KEYS
        from headrace.lake.files import filesystem

        files, folder = filesystem(root, options)
        files.create_dir(folder, recursive=True)
        name = f"{uuid.uuid4().hex}.arrow"
        schema = pa.schema([("file", pa.string()), *KEYS])
        taken = ("_identity", "event_time", "event_id", AMONG_COPIES, "arrived_at", "partition", "offset", "_payload")
        writer = None
        with files.open_output_stream(f"{folder}/{name}") as sink:
            for batch in batches:
                whole = _with_defaults(batch, arrival)
                writer = writer or pa.ipc.new_stream(sink, whole.schema)
                writer.write_batch(whole)
                found = batch.filter(pc.is_in(batch.column("verdict"), pa.array(COUNTED)))
                columns = [found.column(taken[at]).cast(kind.type) for at, kind in enumerate(KEYS)]
                yield pa.RecordBatch.from_arrays([pa.nulls(found.num_rows, pa.string()), *columns], schema=schema)
            if writer is not None:
                writer.close()
        if writer is not None:
            nothing = [pa.nulls(1, kind.type) for kind in KEYS]
            yield pa.RecordBatch.from_arrays([pa.array([name]), *nothing], schema=schema)

    return put_down


def _with_defaults(batch: pa.RecordBatch, arrival: str) -> pa.RecordBatch:
    """The batch with bronze's columns that are the same in every row; which are copies is found out after this pass."""
    import pyarrow as pa

    same = {
        "arrival": pa.repeat(arrival, batch.num_rows),
        "first_partition": pa.nulls(batch.num_rows, pa.int32()),
        "first_offset": pa.nulls(batch.num_rows, pa.int64()),
        "conflict": pa.repeat(False, batch.num_rows),
        EARLIER: pa.repeat(False, batch.num_rows),
    }
    return pa.RecordBatch.from_arrays([*batch.columns, *same.values()], names=[*batch.schema.names, *same])
