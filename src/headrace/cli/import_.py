"""`headrace import`: existing history into the lake. It writes straight to the tables, whether or not anything runs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.interrupt import if_interrupted
from headrace.cli.output import data_json, table, talk
from headrace.cli.progress_bar import bar
from headrace.cli.send import report_column
from headrace.errors import UsageError, shown
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.define.stream import Stream
    from headrace.ingest.files.columns import Columns
    from headrace.ingest.files.source import Source
    from headrace.spark.imports.history_import import Imported, ImportProgress, ImportRequest, Progress

DEAD_EXIT = 1


@click.command("import")
@click.argument("source", metavar="FILE|TABLE")
@click.option("--stream", "stream", required=True, metavar="NAME", help="The stream whose history it is.")
@click.option(
    "--arrived-at", metavar="COL[:UNIT]", help="The column that says when a row arrived; UNIT is s, ms or us."
)
@click.option("--arrival-delay", metavar="DURATION", help="Assume that every row arrived so long after it happened.")
@click.option("--map", "mapping", multiple=True, metavar="COL=FIELD", help="A column whose field has another name.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Import the N rows that arrived first; the rest can follow."
)
@click.option("--again", is_flag=True, help="Import it once more, though it was imported before.")
@click.option("--dry-run", "dry", is_flag=True, help="Say what would become of the rows, and change nothing.")
@click.option("--strict", is_flag=True, help="Exit with 1 when a row is malformed, invalid or from the future.")
@click.option("--format", type=click.Choice(["jsonl", "csv", "parquet", "delta"]), help="Otherwise told by what it is.")
@options.project_options
@options.as_json
def command(source: str, stream: str, path: Path | None, env: str | None, as_json: bool, **wishes: Any) -> int:
    """Bring history into the lake, with its own arrival times.

    FILE holds CSV with a header, JSON lines or Parquet; a folder holds Parquet files or a Delta table. Every row
    becomes a record of the stream's bronze table with its verdict, judged by when it arrived, so that old rows are not
    late for being old; rows that count come to the silver table. Rows are taken in the order in which they arrived,
    whatever their order in the source. The same history is imported once: run again, it goes on where it was. The exit
    code is 0 when every row is in the lake, whatever its verdict, unless --strict is given.
    """
    from headrace import project
    from headrace.config.config import names
    from headrace.define.stream import find_stream
    from headrace.ingest.files.columns import parse_columns
    from headrace.ingest.files.rows import read_extent
    from headrace.ingest.files.source import find_source
    from headrace.ingest.import_scratch import scratch
    from headrace.lake.location import storage_options
    from headrace.spark.imports.import_session import run_import

    loaded = project.load(path, env)
    declared = find_stream(loaded.streams, stream).base
    arrived_at = _arrived_at(declared, wishes["arrived_at"], wishes["arrival_delay"])
    delay = _delay(arrived_at, wishes["arrival_delay"])
    given = find_source(source, wishes["format"], storage_options(loaded.config))
    read = parse_columns(declared.schema, _mapping(wishes["mapping"]), arrived_at)
    size, found = read_extent(given)
    if found:
        read.match(found, given.name)
        read.report_others(found, partial(report_column, declared))
    wish = wish_of(given, read, delay, limit=wishes["limit"], again=wishes["again"])
    began, count = time.monotonic(), ImportedRows()
    with (
        if_interrupted(lambda: count.standing(dry=wishes["dry"])),
        scratch(names(loaded.config), declared.name) as folder,
        progress_of(size) as progress,
    ):
        shown_progress = count.counting(progress)
        done = run_import(loaded.config, declared, wish, folder, dry=wishes["dry"], progress=shown_progress)
    report_import(done, declared.name, source, time.monotonic() - began, dry=wishes["dry"], as_json=as_json)
    return DEAD_EXIT if wishes["strict"] and dead(done) else 0


class ImportedRows:
    """How many rows an import has committed, for when it is interrupted."""

    def __init__(self) -> None:
        self.rows = 0

    def counting(self, progress: Progress) -> Progress:
        """A progress that is counted on its way."""

        def counted(step: ImportProgress) -> None:
            self.rows = step.imported.rows
            progress(step)

        return counted

    def standing(self, *, dry: bool) -> str:
        """What stands of the import in a sentence."""
        if dry:
            return "Nothing was imported: it was a dry run."
        if not self.rows:
            return "No batch was whole yet; what earlier runs imported stays, and the same command goes on from there."
        stay = show_count(self.rows, "row of this run stays", "rows of this run stay")
        return f"{stay} in the lake; the same command goes on with the rest."


def wish_of(given: Source, read: Columns, delay: int | None, *, limit: int | None, again: bool) -> ImportRequest:
    """What is to be imported, as the lake takes it."""
    from headrace.ingest.files.rows import read_rows
    from headrace.spark.imports.history_import import ImportRequest

    rule = repr((given.format, sorted(read.mapping.items()), read.arrival, delay))
    return ImportRequest(given.fingerprint(), rule, lambda start: read_rows(given, read, start), delay, limit, again)


def _arrived_at(stream: Stream, given: str | None, delay: str | None) -> str | None:
    """The column that says when a row arrived; without a word of it the field in which the stream's records do."""
    declared = stream.arrival.name if stream.arrival.source == "field" else None
    return given if given is not None or delay is not None else declared


def _delay(arrived_at: str | None, delay: str | None) -> int | None:
    from headrace.clock import duration

    if (arrived_at is None) == (delay is None):
        message = "An import needs to know when rows arrived: either a column says so, or it is assumed."
        hint = "Say --arrived-at COLUMN, or --arrival-delay 5s. `headrace lateness` shows the delays of live events."
        raise UsageError("bad-usage", message, hint=hint)
    return None if delay is None else duration(delay, "the arrival delay", zero=True)


def _mapping(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given:
        column, equals, field = pair.rpartition("=")
        if not equals or not column or not field:
            hint = "Write it as --map card_no=card."
            raise UsageError("bad-usage", "--map takes a column and a field.", got=shown(pair), hint=hint)
        if column in found:
            hint = "Name each column once."
            raise UsageError("bad-usage", "--map names one column twice.", got=shown(column), hint=hint)
        found[column] = field
    return found


def dead(done: Imported) -> int:
    """How many rows can never count as they are."""
    from headrace.meaning.verdict_names import DEAD

    return sum(done.verdicts[verdict] for verdict in DEAD)


def report_import(done: Imported, stream: str, source: str, seconds: float, *, dry: bool, as_json: bool) -> None:
    """Say what was done: the counts on stdout, the rest on stderr."""
    if done.before:
        talk(f"Imported before, and left as they are: {show_count(done.before, 'row')}.")
    rate, verb = done.rows / seconds if seconds > 0 else 0.0, "Would import" if dry else "Imported"
    imported = f"{verb} {show_count(done.rows, 'row')} into {stream} as partition {done.partition}"
    talk(f"{imported} in {seconds:.1f} s ({rate:,.0f}/s).")
    if done.earlier_copies:
        talk(
            f"{show_count(done.earlier_copies, 'row')} arrived before the copy of the event that the lake had already. "
            "The lake's copy goes on counting: bronze names it in each such row, and says that it arrived later."
        )
    if as_json:
        told = {"stream": stream, "source": source, "dry_run": dry, "partition": done.partition}
        counts = {"rows": done.rows, "imported_before": done.before, "verdicts": done.verdicts}
        copies = {"late_copies": done.late_copies, "earlier_copies": done.earlier_copies}
        extra = {"conflicts": done.conflicts, **copies}
        data_json(told | counts | extra | {"seconds": round(seconds, 3), "per_second": round(rate, 1)})
    else:
        table(("verdict", "rows"), [(verdict, f"{count:,}") for verdict, count in done.verdicts.items()])


@contextlib.contextmanager
def progress_of(size: int | None) -> Iterator[Progress]:
    """A bar over what is sorted of the source, then over its rows, with how many are imported and how fast."""
    began = time.monotonic()
    with bar("reading", size) as advance:

        def progress(step: ImportProgress) -> None:
            rate = step.imported.rows / max(time.monotonic() - began, 1e-6)
            rows = show_count(step.imported.rows, "row")
            advance(step.done, step.total or size, f"{rows}, {rate:,.0f}/s" if step.imported.rows else step.name)

        yield progress
