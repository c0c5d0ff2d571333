"""The first pass of a batch: Spark judges the records, its tasks put them down as Arrow files beside the lake.

What comes back is only what copies are told by. The records are read and decoded once; the second pass
(`run.deposit`) finds them where this one left them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.define.stream import Stream
from headrace.lake.layout import BRONZE_COLUMNS, SILVER_COLUMNS
from headrace.run.admit import (
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

if TYPE_CHECKING:
    import pyarrow as pa

    Batches = Iterator[pa.RecordBatch]

EVENT = "event"
AMONG_COPIES = "_order"
COUNTED = "`~verdict` IN ('admitted', 'late')"
_TOLD = "file STRING, hash BIGINT, time BIGINT, id STRING, arrived BIGINT, partition INT, offset BIGINT, content BIGINT"


def laid_out(rows: DataFrame, stream: Stream, arrival: str) -> DataFrame:
    """Judged rows as bronze has them, with the silver row of those that may count as one struct, `event`."""
    bronze = {
        "partition": f"`{PARTITION}`",
        "offset": f"`{OFFSET}`",
        "appended_at": f"timestamp_micros(`{APPENDED}`)",
        "arrived_at": f"timestamp_micros(`{ARRIVED}`)",
        "arrival": f"'{arrival}'",
        "key": f"`{KEY}`",
        "value": f"`{VALUE}`",
        "headers": f"`{HEADERS}`",
        "verdict": f"`{VERDICT}`",
        "reason": f"`{REASON}`",
        "event_time": f"timestamp_micros(`{EVENT_TIME}`)",
        "event_id": f"`{EVENT_ID}`",
        # Whether it is a copy is found out after this pass.
        "first_partition": "NULL",
        "first_offset": "NULL",
        "conflict": "false",
    }
    content = ", ".join(f"`{field.name}`" for field in stream.schema)
    silver = {
        "_partition": f"`{PARTITION}`",
        "_offset": f"`{OFFSET}`",
        "_arrived_at": f"timestamp_micros(`{ARRIVED}`)",
        "_late": f"`{VERDICT}` = 'late'",
        "_closed": f"`{CLOSED}`",
        "_event_id": f"`{EVENT_ID}`",
        "_identity": f"xxhash64(`{EVENT_ID}`)",
        "_payload": f"xxhash64({content})",
    }
    fields = [f"'{field.name}', `{field.name}`" for field in stream.schema]
    fields += [f"'{name}', CAST({silver[name]} AS {kind})" for name, kind in SILVER_COLUMNS.items()]
    # Only for finding copies: a replayed record stands among them where it was appended.
    fields.append(f"'{AMONG_COPIES}', `{ORDER}`")
    event = f"CASE WHEN {COUNTED} THEN named_struct({', '.join(fields)}) END"
    columns = [F.expr(f"CAST({bronze[name]} AS {kind})").alias(name) for name, kind in BRONZE_COLUMNS.items()]
    return rows.select(*columns, F.expr(event).alias(EVENT))


def stage(rows: DataFrame, event_time: str, root: str, options: Mapping[str, str]) -> tuple[list[str], pa.Table]:
    """Put laid-out rows down as files under `root`; gives the files and the keys of the records that may count."""
    from headrace.lake.copies import KEYS

    told = rows.mapInArrow(_stager(event_time, root, options), _TOLD).toArrow()
    named = told.column("file").is_valid()
    files = told.filter(named).column("file").to_pylist()
    keys = told.filter(told.column("file").is_null()).select(KEYS.names)
    return files, keys.cast(KEYS)


def _stager(event_time: str, root: str, options: Mapping[str, str]) -> Callable[[Batches], Batches]:
    def put_down(batches: Batches) -> Batches:
        import pyarrow as pa

        from headrace.lake.copies import KEYS
        from headrace.lake.files import filesystem

        files, folder = filesystem(root, options)
        files.create_dir(folder, recursive=True)
        name = f"{uuid.uuid4().hex}.arrow"
        schema = pa.schema([("file", pa.string()), *KEYS])
        writer = None
        with files.open_output_stream(f"{folder}/{name}") as sink:
            for batch in batches:
                writer = writer or pa.ipc.new_stream(sink, batch.schema)
                writer.write_batch(batch)
                event = batch.column(EVENT)
                found = pa.RecordBatch.from_struct_array(event.filter(event.is_valid()))
                taken = ("_identity", event_time, "_event_id", AMONG_COPIES, "_partition", "_offset", "_payload")
                columns = [found.column(taken[at]).cast(kind.type) for at, kind in enumerate(KEYS)]
                yield pa.RecordBatch.from_arrays([pa.nulls(found.num_rows, pa.string()), *columns], schema=schema)
            if writer is not None:
                writer.close()
        if writer is not None:
            nothing = [pa.nulls(1, kind.type) for kind in KEYS]
            yield pa.RecordBatch.from_arrays([pa.array([name]), *nothing], schema=schema)

    return put_down
