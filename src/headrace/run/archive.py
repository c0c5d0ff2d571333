"""The archive of one stream: every record of its topic into the lake, exactly once, with its verdict.

    log ──► slice by arrival ──► judge ──► copies? ──► files ──► commit bronze ──► commit silver

The lake itself is the checkpoint: how far the archive has come stands in the very commit that adds the files, so a
batch that was cut off anywhere has either happened or left nothing. Slices follow arrival over all partitions, so the
first copy of an event is met first. If silver is behind bronze after a crash, it is made up for from bronze.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from headrace.clock import SECOND, Clock
from headrace.define.stream import Stream
from headrace.errors import DataError
from headrace.lake.copies import COPIES, copies
from headrace.lake.files import remove
from headrace.lake.layout import BRONZE, SILVER
from headrace.lake.place import Lake
from headrace.lake.table import LakeTable
from headrace.log.protocol import Log
from headrace.log.slice import bounded, cut
from headrace.run.admit import judged
from headrace.run.deposit import Deposit, deposit
from headrace.run.records import slice_of
from headrace.run.stage import laid_out, stage
from headrace.run.verdict import VERDICTS
from headrace.schema.writers import Writers

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

GUARD = SECOND
"""How far behind the clock a cut is made: what arrived before it can be seen by then."""
MOST_PER_BATCH = 500_000
BATCH, OFFSET, COUNT = "headrace.batch", "headrace.offset.", "headrace.count."
CONFLICTS, LATE_COPIES, LOST = "conflict", "late_copy", "lost"


def position(table: LakeTable, partitions: int) -> dict[int, int] | None:
    """The next offset of each partition to be archived; None before the first batch."""
    found = {p: table.counter(f"{OFFSET}{p}") for p in range(partitions)}
    known = {p: offset for p, offset in found.items() if offset is not None}
    return known or None


def totals(bronze: LakeTable) -> dict[str, int]:
    """How many records have got each verdict, how many copies contradict or came late, how many were lost."""
    return {name: bronze.counter(f"{COUNT}{name}") or 0 for name in (*VERDICTS, CONFLICTS, LATE_COPIES, LOST)}


class StreamArchive:
    """Archives one stream, batch by batch."""

    def __init__(
        self, stream: Stream, topic: str, log: Log, lake: Lake, session: SparkSession, clock: Clock, tasks: int = 2
    ) -> None:
        self.stream, self.topic, self.log, self.lake = stream, topic, log, lake
        self.session, self.clock, self.tasks = session, clock, tasks
        self.writers: Writers | None = None

    def accept_loss(self) -> int:
        """Go on after records that retention removed before they were archived; says how many, and keeps count."""
        self.mend()
        first = self.log.start_offsets(self.topic)
        done = position(self.lake.bronze, len(first)) or {}
        gone = {p: first[p] - offset for p, offset in done.items() if offset < first[p]}
        if gone:
            moved = _moved((self.lake.bronze.counter(BATCH) or 0) + 1, {p: first[p] for p in gone})
            lost = totals(self.lake.bronze)[LOST] + sum(gone.values())
            self.lake.bronze.commit([], moved | {f"{COUNT}{LOST}": lost})
            self.lake.silver.commit([], moved)
        return sum(gone.values())

    @property
    def start(self) -> dict[int, int]:
        """Where the next batch begins."""
        first = self.log.start_offsets(self.topic)
        done = position(self.lake.bronze, len(first)) or {}
        for partition, offset in done.items():
            if offset < first[partition]:
                message = "Retention has removed records of the log before they were archived."
                got = f"{self.topic}, partition {partition}: {first[partition] - offset:,} records from offset {offset}"
                hint = "Say `headrace run archive --accept-loss` to go on after them; the loss stays in the counts."
                raise DataError("offset-out-of-range", message, got=got, hint=hint)
        return first | done

    def waiting(self, most: int = MOST_PER_BATCH) -> dict[int, int]:
        """Where the next batch ends: at most so many records, in the order of arrival over all partitions."""
        start = self.start
        ends = cut(self.log, self.topic, self.clock.now() - GUARD)
        ends = {partition: max(offset, start[partition]) for partition, offset in ends.items()}
        return bounded(self.log, self.topic, start, ends, most=most)

    def step(self, most: int = MOST_PER_BATCH) -> Deposit | None:
        """Archive one batch; None when nothing waits."""
        self.mend()
        start, end = self.start, self.waiting(most)
        if end == start:
            return None
        records = slice_of(self.session, self.log, self.topic, start, end)
        return self.add(records, str(self.stream.arrival), end)

    def add(self, records: DataFrame, arrival: str, end: Mapping[int, int]) -> Deposit:
        """Archive records up to the offsets `end`."""
        with self._staged(judged(records, self.stream, self.writers), arrival) as (root, staged, keys):
            found = copies(keys, self.lake.silver) if self.stream.event_id else COPIES.empty_table()
            tables = {BRONZE: self.lake.bronze, SILVER: self.lake.silver}
            made = deposit(self.session, root, staged, found, tables, self.tasks)
        moved = _moved((self.lake.bronze.counter(BATCH) or 0) + 1, end)
        self.lake.bronze.commit(made.files[BRONZE], moved | self._counts(made))
        self.lake.silver.commit(made.files[SILVER], moved)
        return made

    @contextmanager
    def _staged(self, rows: DataFrame, arrival: str) -> Iterator[tuple[str, list[str], pa.Table]]:
        """Rows put down for the second pass, and taken away after it."""
        root = f"{self.lake.staging}/{uuid.uuid4().hex}"
        options = self.lake.bronze.options
        try:
            yield (root, *stage(laid_out(rows, self.stream, arrival), self.stream.event_time, root, options))
        finally:
            remove(root, options)

    def _counts(self, made: Deposit) -> dict[str, int]:
        before = totals(self.lake.bronze)
        added = dict.fromkeys(before, 0) | {CONFLICTS: made.conflicts, LATE_COPIES: made.late_copies}
        for (_, verdict), count in made.verdicts.items():
            added[verdict] += count
        return {f"{COUNT}{name}": before[name] + added[name] for name in before}

    def mend(self) -> None:
        """Bring silver to where bronze is: a crash may have come between the two commits."""
        bronze, silver = self.lake.bronze, self.lake.silver
        number = bronze.counter(BATCH)
        if number is None or number == silver.counter(BATCH):
            return
        partitions = len(self.log.end_offsets(self.topic))
        end, start = position(bronze, partitions) or {}, position(silver, partitions) or {}
        missed = " OR ".join(f"(partition = {p} AND offset >= {start.get(p, 0)})" for p in end)
        kept = self.session.read.option("recursiveFileLookup", "true").parquet(*bronze.files())
        counts = "verdict IN ('admitted', 'late') AND first_offset IS NULL"
        again = kept.where(f"({missed}) AND {counts}").withColumn("topic", F.lit(self.topic))
        raw = again.drop("arrived_at").withColumnRenamed("appended_at", "arrived_at")
        rows = judged(raw, self.stream, self.writers)
        with self._staged(rows, str(self.stream.arrival)) as (root, staged, _):
            made = deposit(self.session, root, staged, COPIES.empty_table(), {SILVER: silver}, self.tasks)
        files = made.files[SILVER]
        expected, found = again.count(), sum(file.rows for file in files)
        if found != expected:
            message = "Records that were admitted can no longer be read as the stream is declared now."
            hint = "Run the archive once with the earlier definition, then change it."
            raise DataError("lake-conflict", message, got=f"{expected - found:,} of {expected:,} records", hint=hint)
        silver.commit(files, _moved(number, end))


def _moved(number: int, end: Mapping[int, int]) -> dict[str, int]:
    return {BATCH: number, **{f"{OFFSET}{partition}": offset for partition, offset in end.items()}}
