"""The second pass of a batch: what the first put down (`spark.archive.staging`) becomes files of bronze and silver.

Tasks tell what they wrote, how many records got which verdict (`spark.archive.batch_counts`) and where they put those
that are sent on; the caller commits the first, counts the second and appends the third. A file that no commit names
does not exist for any reader.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.lake.files import DataFile, remove_batch
from headrace.lake.layout import BRONZE, BRONZE_COLUMNS, SILVER, TableLayout
from headrace.spark.archive.batch_counts import EARLIER, BatchCounts
from headrace.spark.archive.refused_records import RefusedFile
from headrace.spark.archive.staging import COUNTED, silver_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from headrace.lake.table import LakeTable

    Batches = Iterator[pa.RecordBatch]


@dataclass
class Deposit:
    """What a batch wrote, not yet committed, its counts, and the files of the records that are sent on."""

    files: dict[str, list[DataFile]] = field(default_factory=lambda: {BRONZE: [], SILVER: []})
    counts: BatchCounts = field(default_factory=BatchCounts)
    refused: list[str] = field(default_factory=list)


def deposit(
    session: SparkSession,
    root: str,
    staged: Sequence[str],
    copies: pa.Table,
    tables: Mapping[str, LakeTable],
    tasks: int,
    sent_on: Sequence[str] = (),
) -> Deposit:
    """Write staged rows into files of the given tables, copies marked as such.

    Records with a verdict that is `sent_on` are put down once more under `root`.
    """
    if not staged:
        return Deposit()
    places = {name: (table.uri, table.shape) for name, table in tables.items()}
    options = next(iter(tables.values())).options
    batch = f"{uuid.uuid4().hex[:12]}-"
    write = _writer(root, places, options, copies, sent_on, batch)
    names = session.createDataFrame([(name,) for name in staged], "name STRING").repartition(min(tasks, len(staged)))
    done = Deposit()
    try:
        for row in names.mapInArrow(write, "told STRING").collect():
            _add(done, json.loads(row.told))
    except Exception:
        for table in tables.values():
            remove_batch(table.uri, batch, options)
        raise
    return done


def marked(batch: pa.RecordBatch, copies: pa.Table) -> pa.RecordBatch:
    """A staged batch in which every copy names its first; a copy that was on time is a duplicate."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    partitions, offsets = (batch.column(name).to_numpy() for name in ("partition", "offset"))
    at = np.full(batch.num_rows, -1, dtype=np.int64)
    for partition in np.unique(partitions):
        mine = pc.equal(copies.column("partition"), pa.scalar(partition, pa.int32()))
        rows = np.flatnonzero(mine.to_numpy(zero_copy_only=False))
        held = copies.column("offset").take(rows).to_numpy()
        here = np.flatnonzero(partitions == partition)
        place = np.searchsorted(held, offsets[here])
        inside = place < len(held)
        here, place = here[inside], place[inside]
        same = held[place] == offsets[here]
        at[here[same]] = rows[place[same]]
    found = np.flatnonzero(at >= 0)
    if not len(found):
        return batch
    taken = copies.take(pa.array(at, mask=at < 0)).combine_chunks()
    first_partition, first_offset = taken.column("first_partition"), taken.column("first_offset")
    copy = pc.is_valid(first_offset)
    text = [column.cast(pa.string()) for column in (first_partition, first_offset)]
    earlier = pc.fill_null(taken.column("earlier"), False)
    later = pc.if_else(earlier, ", which arrived later", "")
    reason = pc.binary_join_element_wise("a copy of partition ", text[0], ", offset ", text[1], later, "")
    duplicate = pc.and_(copy, pc.equal(batch.column("verdict"), "admitted"))
    new = {
        "verdict": pc.if_else(duplicate, "duplicate", batch.column("verdict")),
        "reason": pc.if_else(copy, reason, batch.column("reason")),
        "first_partition": first_partition,
        "first_offset": first_offset,
        "conflict": pc.fill_null(taken.column("conflict"), False),
        EARLIER: earlier,
    }
    arrays = [_one_chunk(new[name]) if name in new else batch.column(name) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _one_chunk(column: Any) -> Any:
    import pyarrow as pa

    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _writer(
    root: str,
    places: Mapping[str, tuple[str, TableLayout]],
    options: Mapping[str, str],
    copies: pa.Table,
    sent_on: Sequence[str],
    made_in: str,
) -> Callable[[Batches], Batches]:
    """What a task does with the files it is given; it runs in Spark's Python workers."""

    def write(given: Batches) -> Batches:
        import pyarrow as pa

        from headrace.lake.files import DayWriter, filesystem

        files, folder = filesystem(root, options)
        writers = {name: DayWriter(uri, shape, options, made_in) for name, (uri, shape) in places.items()}
        counts, refused = BatchCounts(), RefusedFile(files, folder, sent_on)
        for names in given:
            for name in names.column(0).to_pylist():
                with files.open_input_stream(f"{folder}/{name}") as staged:
                    for plain in pa.ipc.open_stream(staged):
                        batch = marked(plain, copies)
                        counts.add(batch)
                        refused.add(batch)
                        writers[SILVER].add(_counted(batch, places[SILVER][1]))
                        if BRONZE in writers:
                            writers[BRONZE].add(batch.select(list(BRONZE_COLUMNS)))
        told = [{"table": name, "file": asdict(file)} for name, writer in writers.items() for file in writer.close()]
        told += [{"refused": name} for name in refused.close()]
        yield pa.RecordBatch.from_pydict({"told": [json.dumps(each) for each in [*told, counts.told()]]})

    return write


def _counted(batch: pa.RecordBatch, silver: TableLayout) -> pa.RecordBatch:
    """The silver rows of a batch: those that count and are no copies."""
    import pyarrow as pa
    import pyarrow.compute as pc

    counts = pc.is_in(batch.column("verdict"), pa.array(COUNTED))
    found = batch.filter(pc.and_(counts, pc.is_null(batch.column("first_offset"))))
    columns = {name: found.column(held) for name, held in silver_columns(silver.day_of, silver.schema.names).items()}
    columns["_late"] = pc.equal(found.column("verdict"), "late")
    return pa.RecordBatch.from_arrays([columns[name] for name in silver.schema.names], names=silver.schema.names)


def _add(done: Deposit, told: dict[str, Any]) -> None:
    if "table" in told:
        done.files[told["table"]].append(DataFile(**told["file"]))
    elif "refused" in told:
        done.refused.append(told["refused"])
    else:
        done.counts.join(told)
