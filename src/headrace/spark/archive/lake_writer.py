"""Records into the two tables of a stream: judged, held against what is there, written and committed.

    records ──► judge ──► copies? ──► files ──► commit bronze ──► commit silver

The archive and imports both write here, perhaps at the same time. Copies are found against silver as it was when a
batch began, so a batch may be committed only if nobody else had a turn since: every commit moves the counter
`headrace.turn`, of two writers that start from one state Delta lets only one commit, and the other looks again. Whoever
finds silver behind bronze, because a writer died between its two commits, makes up for it from bronze.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from headrace.codec.writers import Writers
from headrace.define.stream import Stream
from headrace.errors import DataError, DiskFullError
from headrace.lake.copies import COPIES, copies
from headrace.lake.counters import BATCH, OFFSET, TURN, behind
from headrace.lake.files import DataFile, remove, remove_files
from headrace.lake.imports import IMPORTS, partition_of, positions, rows_of
from headrace.lake.layout import BRONZE, SILVER
from headrace.lake.location import Lake
from headrace.lake.table import LakeTable
from headrace.plural import show_count
from headrace.spark.admission import judged
from headrace.spark.archive.refused_records import Refusals, letters_in
from headrace.spark.archive.staging import laid_out, stage
from headrace.spark.archive.table_files import Deposit, deposit
from headrace.spark.lake_rows import read_bronze

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

TURNS = 20
"""How often a batch is tried when others have their turns in between."""


def imported_as(stream: Stream) -> Stream:
    """The stream as imported rows are read: they are JSON, whatever its records are."""
    return replace(stream, format="json", avro_schema=None)


class LakeWriter:
    """Writes records of one stream into its tables.

    Parameters
    ----------
    topic
        The topic whose records they are.
    tasks
        How many tasks write files at once.
    writers
        The schemas that records of an Avro stream may be written with.
    also
        Another silver table to look for copies in.
    """

    def __init__(
        self,
        stream: Stream,
        topic: str,
        lake: Lake,
        session: SparkSession,
        *,
        tasks: int = 2,
        writers: Writers | None = None,
        also: LakeTable | None = None,
    ) -> None:
        self.stream, self.topic, self.lake, self.session = stream, topic, lake, session
        self.tasks, self.writers, self.also = tasks, writers, also

    def write(self, rows: DataFrame, arrival: str, refusals: Refusals | None = None) -> Deposit:
        """Judged rows as files that no commit names yet; copies are marked, and what is refused has gone to its topic.

        Letters come before the commit: a batch that is cut off in between is run again, and they are known by then.
        """
        with self._staged(rows, arrival) as (root, staged, keys):
            self.lake.faults.reach("lake.staging.after")
            tables = {BRONZE: self.lake.bronze, SILVER: self.lake.silver}
            sent_on = () if refusals is None else refusals.verdicts
            made = deposit(self.session, root, staged, self._copies(keys), tables, self.tasks, sent_on)
            self.lake.faults.reach("lake.files.after")
            if refusals is not None:
                refusals.take(letters_in(root, made.refused, self.lake.bronze.options))
            return made

    def _copies(self, keys: pa.Table) -> pa.Table:
        if self.stream.event_id is None:
            return COPIES.empty_table()
        found = copies(keys, self.lake.silver)
        if self.also is None:
            return found
        import pyarrow as pa

        both = pa.concat_tables([copies(keys, self.also), found])
        firsts = [(name, "first") for name in COPIES.names[2:]]
        once = both.group_by(COPIES.names[:2], use_threads=False).aggregate(firsts)
        named = once.rename_columns([name.removesuffix("_first") for name in once.column_names])
        return named.select(COPIES.names).sort_by([("partition", "ascending"), ("offset", "ascending")])

    @contextmanager
    def _staged(self, rows: DataFrame, arrival: str) -> Iterator[tuple[str, list[str], pa.Table]]:
        """Rows put down for the second pass, and taken away after it."""
        root = f"{self.lake.staging}/{uuid.uuid4().hex}"
        options = self.lake.bronze.options
        try:
            yield (root, *stage(laid_out(rows, self.stream), arrival, root, options))
        finally:
            remove(root, options)

    def commit(self, made: Deposit, moved: Mapping[str, int], counts: Mapping[str, int]) -> None:
        """Make files part of the tables and move counters, `counts` in bronze alone.

        When another writer had its turn since the tables were last looked at, nothing is committed: they are looked at
        anew, and the error is raised.
        """
        turn = {TURN: (self.lake.bronze.counter(TURN) or 0) + 1}
        self.lake.faults.reach("lake.bronze.before")
        try:
            self.lake.bronze.commit(made.files[BRONZE], turn | dict(moved) | dict(counts))
        except (DataError, DiskFullError):
            self.refresh()
            for name, table in ((BRONZE, self.lake.bronze), (SILVER, self.lake.silver)):
                _remove_uncommitted(self.lake.bronze, turn[TURN], table, made.files[name])
            raise
        self.lake.faults.reach("lake.bronze.after")
        self._follow(made.files[SILVER], turn | dict(moved))

    def _follow(self, files: Sequence[DataFile], moved: Mapping[str, int]) -> None:
        """Commit to silver what bronze has; fine when somebody has made up for it already."""
        silver = self.lake.silver
        try:
            silver.commit(files, moved)
        except (DataError, DiskFullError):
            silver.refresh()
            if (silver.counter(TURN) or 0) < moved.get(TURN, 0):
                _remove_uncommitted(silver, moved[TURN], silver, files)
                raise
        self.lake.faults.reach("lake.silver.after")

    def refresh(self) -> None:
        """See what others have committed. Silver comes last, so that it is never looked at before its bronze."""
        self.lake.bronze.refresh()
        self.lake.silver.refresh()

    def mend(self) -> None:
        """Bring silver to where bronze is: a crash may have come between the two commits."""
        bronze, silver = self.lake.bronze, self.lake.silver
        if not behind(bronze, silver):
            return
        end, start = positions(bronze), positions(silver)
        missed = read_bronze(self.session, bronze, start, end)
        counts = "verdict IN ('admitted', 'late') AND first_offset IS NULL"
        again = missed.where(counts).withColumn("topic", F.lit(self.topic))
        raw = again.drop("arrived_at").withColumnRenamed("appended_at", "arrived_at")
        rows = judged(raw.where("partition >= 0"), self.stream, self.writers)
        if min(end) < 0:
            imported = judged(raw.where("partition < 0"), imported_as(self.stream))
            rows = imported if max(end) < 0 else rows.unionByName(imported)
        with self._staged(rows, str(self.stream.arrival)) as (root, staged, _):
            made = deposit(self.session, root, staged, COPIES.empty_table(), {SILVER: silver}, self.tasks)
        files = made.files[SILVER]
        expected, found = again.count(), sum(file.rows for file in files)
        if found != expected:
            message = "Records that were admitted can no longer be read as the stream is declared now."
            hint = "Run the archive once with the earlier definition, then change it."
            raise DataError(
                "lake-conflict", message, got=f"{expected - found:,} of {show_count(expected, 'record')}", hint=hint
            )
        self.lake.faults.reach("lake.mend.before")
        self._follow(files, self._reached(end))

    def _reached(self, end: Mapping[int, int]) -> dict[str, int]:
        """Where silver is once it has caught up: at bronze's positions, turn, batch and number of imports."""
        offsets = {(f"{OFFSET}{p}" if p >= 0 else rows_of(partition_of(p))): offset for p, offset in end.items()}
        numbers = {name: self.lake.bronze.counter(name) for name in (TURN, BATCH, IMPORTS)}
        return offsets | {name: number for name, number in numbers.items() if number is not None}


def _remove_uncommitted(committed: LakeTable, turn: int, table: LakeTable, files: Sequence[DataFile]) -> None:
    """Remove the files of a commit that has not happened, as its turn says: whoever tries again writes others."""
    if (committed.counter(TURN) or 0) < turn:
        remove_files(table.uri, files, table.options)
