"""An import: existing history into a stream's lake, each row once, with its own or an assumed arrival.

    rows ──► by arrival ──► batches ──► records with the header `headrace.arrived_at` ──► the same way as live records

Every import has a partition of its own, below zero. A row's offset there is its place in the order of arrival
(`spark.imports.arrival_order`), so that of two copies in a source the one that arrived first is met first. Where
arrival is assumed, copies have one arrival, and the order of the source will do. How far an import has come stands in
the commit that adds its rows: one that was killed goes on where it was, and one that is run again finds nothing to do.
What the rows are and where they come from is `headrace.ingest.files`'s business.

A row may have arrived before the copy of its event that the lake has by then. What the lake has is not undone: the row
is a copy, its reason says so, and all such rows are counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from headrace.clock import Clock
from headrace.define.stream import Stream
from headrace.errors import DataError
from headrace.lake.counters import EARLIER_COPIES
from headrace.lake.imports import IMPORT, IMPORTS, Import, count_of, end_of, import_of, partition_of, rows_of, rule_of
from headrace.lake.table import LakeTable
from headrace.meaning.verdict import ARRIVED_AT, VERDICTS
from headrace.spark.admission import judged
from headrace.spark.archive.lake_writer import TURNS, LakeWriter, imported_as
from headrace.spark.archive.table_files import Deposit
from headrace.spark.decode import decode
from headrace.spark.imports.import_rows import OrderedRows, Source, in_batches, plain_rows, put_down, sorted_rows
from headrace.types.field_types import Boolean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

IMPORTED, ASSUMED = "imported", "assumed"


@dataclass(frozen=True)
class ImportRequest:
    """What is to be imported and how.

    Parameters
    ----------
    fingerprint
        What the source is known by.
    rule
        How its rows are read, as text: an import is finished by the rule it was begun with.
    rows
        The source's rows from a number on, in its own order, each with `value`, `arrival` and `done`.
    delay
        From an event to its assumed arrival; None when the rows say when they arrived.
    limit
        How many rows are wanted, from the one that is imported first; all when None.
    again
        Import anew what was imported before.
    """

    fingerprint: str
    rule: str
    rows: Source
    delay: int | None = None
    limit: int | None = None
    again: bool = False


@dataclass
class Imported:
    """What an import has done: its partition, the rows imported before this run and in it, and their verdicts.

    `earlier_copies` arrived before the copies of their events that the lake had already.
    """

    partition: int
    before: int
    rows: int = 0
    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    conflicts: int = 0
    late_copies: int = 0
    earlier_copies: int = 0

    def add(self, made: Deposit) -> None:
        """Count a batch."""
        counts = made.counts
        self.rows += counts.records
        for (_, verdict), count in counts.verdicts.items():
            self.verdicts[verdict] += count
        self.conflicts += counts.conflicts
        self.late_copies += counts.late_copies
        self.earlier_copies += counts.earlier_copies


class ImportProgress(NamedTuple):
    """How far an import is.

    Parameters
    ----------
    name
        What it does: "sorting" the rows or "importing" them.
    done
        How much of that is done, of `total`, which is None when it is the size of the source.
    imported
        What has been done in all.
    """

    name: str
    done: int
    total: int | None
    imported: Imported


Progress = Callable[[ImportProgress], None]


def begun(bronze: LakeTable, wish: ImportRequest) -> Import | None:
    """The import that a wish goes on with; None when it begins one."""
    number = bronze.counter(f"{IMPORT}{wish.fingerprint}")
    if number is None:
        return None
    found = import_of(bronze, number)
    same = found.rule == _number_of(wish.rule)
    if wish.again and (has_all(found, wish) or not same):
        return None
    if not same:
        message = "This history was imported before, with another mapping or another arrival."
        hint = "Give the same options to go on with it, or --again to import all of it once more."
        raise DataError("imported-otherwise", message, got=f"rows imported so far: {found.rows:,}", hint=hint)
    return found


def has_all(found: Import, wish: ImportRequest) -> bool:
    """Whether an import has every row that is wished for."""
    return found.ended or (wish.limit is not None and found.rows >= wish.limit)


def bring(
    writer: LakeWriter,
    wish: ImportRequest,
    scratch: Path,
    *,
    most: int,
    clock: Clock,
    progress: Progress = lambda _: None,
) -> Imported:
    """Import what a wish names that is not there yet.

    Parameters
    ----------
    scratch
        A folder for rows on their way.
    most
        Rows in a batch.
    progress
        Called after every batch, and while rows are sorted.
    """
    writer.refresh()
    writer.mend()
    bronze = writer.lake.bronze
    found = begun(bronze, wish)
    number = (bronze.counter(IMPORTS) or 0) if found is None else found.number
    done = Imported(partition_of(number), 0 if found is None else found.rows)
    if found is not None and has_all(found, wish):
        return done
    file = scratch / "rows.parquet"
    left = None if wish.limit is None else wish.limit - done.before
    with _rows_in_order(wish, done, scratch / "sorted", progress) as rows:
        for batch in in_batches(rows.batches, left, most):
            put_down(batch.rows, done.before + done.rows, file)
            writer.lake.faults.reach("import.rows.after")
            made = _add(writer, wish, number, done, file, clock, ended=batch.last)
            done.partition, number = partition_of(made[0]), made[0]
            done.add(made[1])
            progress(ImportProgress("importing", batch.done, rows.total, done))
    return done


def _rows_in_order(
    wish: ImportRequest, done: Imported, folder: Path, progress: Progress
) -> AbstractContextManager[OrderedRows]:
    """The rows that are not imported yet: by arrival, or where that is assumed, as the source has them."""
    if wish.delay is not None:
        return plain_rows(wish.rows, done.before)
    return sorted_rows(
        wish.rows, done.before, folder, lambda read: progress(ImportProgress("sorting", read, None, done))
    )


def _add(
    writer: LakeWriter, wish: ImportRequest, number: int, done: Imported, file: Path, clock: Clock, *, ended: bool
) -> tuple[int, Deposit]:
    """Commit one batch, looked at again when the archive had its turn meanwhile; gives the import's number, too."""
    bronze, first, turns = writer.lake.bronze, done.before + done.rows, TURNS
    while True:
        made = Deposit()
        if file.exists():
            rows = _records(writer, wish.delay, number, file, clock.now())
            made = writer.write(judged(rows, imported_as(writer.stream)), IMPORTED if wish.delay is None else ASSUMED)
        moved = {rows_of(number): first + made.counts.records, IMPORTS: max(bronze.counter(IMPORTS) or 0, number + 1)}
        try:
            writer.commit(made, moved, _bronze_note(bronze, wish, number, made, ended=ended))
        except DataError:
            turns -= 1
            number = _after(bronze, wish, number, first, last=not turns)
            writer.mend()
        else:
            file.unlink(missing_ok=True)
            writer.lake.faults.reach("import.batch.after")
            return number, made


def _after(bronze: LakeTable, wish: ImportRequest, number: int, first: int, *, last: bool) -> int:
    """The import's number after another writer had its turn; refused when that was an import of the same history."""
    known = bronze.counter(f"{IMPORT}{wish.fingerprint}")
    mine = known == number and (bronze.counter(rows_of(number)) or 0) == first
    fresh = first == 0 and (known is None or wish.again)
    if last or not (mine or fresh):
        message = "Others write to the lake at the same time, and this import gives way."
        hint = "Run it again when they have ended: it goes on where it is."
        raise DataError("lake-conflict", message, got=f"rows imported so far: {first:,}", hint=hint)
    return number if mine else bronze.counter(IMPORTS) or 0


def _records(writer: LakeWriter, delay: int | None, number: int, file: Path, now: int) -> DataFrame:
    """The batch as records of the stream's topic: appended now, arrived when their header says."""
    stream = writer.stream
    rows = decode(writer.session.read.parquet(str(file)), stream.schema)
    arrived = "arrival" if delay is None else f"CAST(unix_micros(row.`{stream.event_time}`) + {delay} AS STRING)"
    header = f"named_struct('key', '{ARRIVED_AT}', 'value', CAST({arrived} AS BINARY))"
    none = "CAST(array() AS ARRAY<STRUCT<key: STRING, value: BINARY>>)"
    return rows.selectExpr(
        f"'{writer.topic}' AS topic",
        f"CAST({partition_of(number)} AS INT) AS partition",
        "offset",
        f"timestamp_micros({now}) AS arrived_at",
        f"{_key(stream)} AS key",
        "value",
        f"CASE WHEN {arrived} IS NULL THEN {none} ELSE array({header}) END AS headers",
    )


def _key(stream: Stream) -> str:
    """The record's key as a producer writes it: the field's value as Python shows it."""
    if stream.key is None:
        return "CAST(NULL AS BINARY)"
    text = f"CAST(row.`{stream.key}` AS STRING)"
    shown = f"initcap({text})" if isinstance(stream.schema[stream.key].type, Boolean) else text
    return f"CAST({shown} AS BINARY)"


def _bronze_note(bronze: LakeTable, wish: ImportRequest, number: int, made: Deposit, *, ended: bool) -> dict[str, int]:
    """What bronze alone keeps of an import: which source and rule it has, its verdicts, and whether it has ended."""
    known = import_of(bronze, number)
    counts = known.verdicts | {EARLIER_COPIES: known.earlier_copies + made.counts.earlier_copies}
    for (_, verdict), count in made.counts.verdicts.items():
        counts[verdict] += count
    told = {count_of(number, name): count for name, count in counts.items()}
    told |= {f"{IMPORT}{wish.fingerprint}": number, rule_of(number): _number_of(wish.rule)}
    return told | ({end_of(number): 1} if ended else {})


def _number_of(rule: str) -> int:
    """A rule as a number, which is all that a counter can hold."""
    return int.from_bytes(hashlib.blake2b(rule.encode(), digest_size=7).digest(), "big")
