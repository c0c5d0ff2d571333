"""`headrace lake`: what the archive has put into the lake, asked in SQL, and kept in order.

`ls` and `sql` only look. `compact` and `vacuum` change which files there are, never a row that is shown; only
`--forget-before` takes rows away, and it takes none that a view can still ask for.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.byte_size import show_size
from headrace.cli.interrupt import if_interrupted
from headrace.cli.output import data, data_json, table, talk
from headrace.errors import DefinitionError, UsageError, shown

if TYPE_CHECKING:
    from headrace.define.stream import Stream
    from headrace.lake.table import LakeTable
    from headrace.project import Project

ROWS = 1_000
LEFT = 1


@click.group("lake")
def command() -> None:
    """Look into the lake, ask it in SQL, keep its files in order.

    The lake has two Delta tables for each stream: bronze, every record with its verdict, and silver, every event that
    counts, once. STREAM may be left out for all of them.
    """


def _opened(
    path: Path | None, env: str | None, stream: str | None = None
) -> tuple[Project, list[tuple[Stream, dict[str, LakeTable]]]]:
    """The tables of a stream, or of all: those of predictions too."""
    from headrace import project
    from headrace.define.stream import find_stream
    from headrace.lake.location import find_tables

    loaded = project.load(path, env)
    known = [stage.stream for stage in loaded.plan().admissions]
    chosen = known if stream is None else [find_stream(known, stream)]
    return loaded, [(each, find_tables(loaded.config, each)) for each in chosen]


@command.command("ls")
@click.argument("stream", required=False, metavar="[STREAM]")
@options.project_options
@options.as_json
def list_tables(stream: str | None, path: Path | None, env: str | None, as_json: bool) -> None:
    """List the tables: rows, files, bytes, days, and how far the archive has come.

    Days are in UTC: of arrival in bronze, of event time in silver.
    """
    from headrace.lake.overview import stream_as_json

    _, opened = _opened(path, env, stream)
    told = {declared.name: stream_as_json(tables) for declared, tables in opened}
    if as_json:
        data_json({"streams": told})
        return
    rows = [(name, each, *_cells(held)) for name, found in told.items() for each, held in found["tables"].items()]
    if rows:
        table(("stream", "table", "rows", "files", "size", "days", "version"), rows)
    for name, found in told.items():
        data(f"{name}: {_archived(found)}")
        for each in found["imports"]:
            data(f"{name}: {_imported(each)}")


def _cells(held: dict[str, Any]) -> tuple[str, ...]:
    days = f"{held['first_day']}..{held['last_day']}" if held["first_day"] else "-"
    return f"{held['rows']:,}", f"{held['files']:,}", show_size(held["bytes"]), days, f"{held['version']}"


def _imported(found: dict[str, Any]) -> str:
    rows = f"{found['rows']:,} imported as partition {found['partition']} ({_verdicts(found)})"
    left = [] if found["complete"] else ["not all rows of the source"]
    return "; ".join([rows, *_extra(found), *left])


def _verdicts(found: dict[str, Any]) -> str:
    return ", ".join(f"{count:,} {verdict}" for verdict, count in found["verdicts"].items() if count) or "none"


def _extra(found: dict[str, Any]) -> list[str]:
    return [f"{found[name]:,} {said}" for name, said in _EXTRA.items() if found.get(name)]


def _archived(found: dict[str, Any]) -> str:
    if found["empty"]:
        return "empty: nothing has been archived yet"
    positions = ", ".join(f"{partition}/{offset}" for partition, offset in found["positions"].items())
    behind = ["silver lacks a batch that bronze has"] if found["silver_behind"] else []
    told = [f"{found['archived']:,} archived ({_verdicts(found)})", f"next {positions or '-'}", *_extra(found), *behind]
    return "; ".join(told)


_EXTRA = {
    "conflict": "contradict their first copy",
    "late_copy": "late copies",
    "earlier_copy": "arrived before the copy that counts",
    "lost": "lost to retention",
}


@command.command("sql")
@click.argument("query", metavar="QUERY")
@options.project_options
@click.option("--limit", type=click.IntRange(0), default=ROWS, metavar="N", help="The most rows; 0 for all of them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a row.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with a header.")
def sql(query: str, path: Path | None, env: str | None, limit: int, as_json: bool, as_csv: bool) -> None:
    """Ask the lake in SQL: SELECT, WITH, DESCRIBE or EXPLAIN, answered by DataFusion.

    Tables are called STREAM_bronze and STREAM_silver; with one stream, bronze and silver will do. Nothing is written.
    """
    from headrace.cli.table_output import write
    from headrace.lake.query import ask, names

    if as_json and as_csv:
        raise UsageError("bad-usage", "Say --json or --csv, not both.")
    _, opened = _opened(path, env)
    called = names({declared.name: tables for declared, tables in opened})
    if not called:
        message, hint = "The lake is empty.", "The archive fills it: start it with `headrace up`."
        raise UsageError("bad-query", message, hint=hint)
    found, more = ask(called, query, limit or None)
    write(found, "json" if as_json else "csv" if as_csv else "table")
    if more:
        talk(f"There are more rows than {limit:,}; see --limit.")


@command.command("compact")
@click.argument("stream", required=False, metavar="[STREAM]")
@options.project_options
@options.as_json
def compact_tables(stream: str | None, path: Path | None, env: str | None, as_json: bool) -> None:
    """Merge the small files of each day. No row changes, and the archive may be running.

    The merged files stay on the disk until `vacuum` removes them.
    """
    from headrace.cli.progress_bar import bar
    from headrace.lake.maintenance import compact
    from headrace.lake.overview import content

    _, opened = _opened(path, env, stream)
    held = [(declared.name, name, each) for declared, tables in opened for name, each in tables.items()]
    told: list[dict[str, Any]] = []
    with (
        if_interrupted(lambda: f"Merged tables: {len(told)} of {len(held)}. No row of any has changed."),
        bar("merging", len(held)) as advance,
    ):
        for at, (declared_name, name, each) in enumerate(held):
            advance(at, None, f"{declared_name} {name}")
            before = content(each)
            compact(each)
            told.append({"stream": declared_name, "table": name, **_change(before, content(each))})
    if as_json:
        data_json({"tables": told})
    elif told:
        rows = [(each["stream"], each["table"], _pair(each, "files"), _pair(each, "bytes")) for each in told]
        table(("stream", "table", "files", "size"), rows)
    _say_what_is_empty(opened)


def _change(before: Any, after: Any) -> dict[str, dict[str, int]]:
    return {name: {"before": getattr(before, name), "after": getattr(after, name)} for name in ("files", "bytes")}


def _pair(told: dict[str, Any], what: str) -> str:
    show = show_size if what == "bytes" else "{:,}".format
    return f"{show(told[what]['before'])} -> {show(told[what]['after'])}"


def _say_what_is_empty(opened: list[tuple[Stream, dict[str, LakeTable]]]) -> None:
    for declared, tables in opened:
        if not tables:
            talk(f"{declared.name} is empty: nothing has been archived yet.")


@command.command("vacuum")
@click.argument("stream", required=False, metavar="[STREAM]")
@options.project_options
@click.option("--keep", default="7d", metavar="AGE", help="Keep what versions younger than this need; 7d, at least 1d.")
@click.option("--forget-before", "age", metavar="AGE", help="First forget whole days older than this, such as 90d.")
@click.option("--dry-run", "dry", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.as_json
def vacuum_tables(
    stream: str | None, path: Path | None, env: str | None, keep: str, age: str | None, as_json: bool, **how: bool
) -> int:
    """Remove files that no recent version of a table needs.

    --forget-before takes the rows of old days out of the tables for good. It is refused when a view can still ask for
    them. Their files go with the versions that had them: when those are older than --keep, to a later vacuum.
    """
    from headrace.cli.vacuum import VacuumOptions, told_of, vacuumed

    wish = VacuumOptions(_age("--keep", keep), None if age is None else _age("--forget-before", age), how["dry"])
    loaded, opened = _opened(path, env, stream)
    if wish.age is not None:
        wish.refuse_needed(opened, loaded.plan())
        wish.say_what_goes(opened)
    if not wish.dry and any(tables for _, tables in opened) and not how["yes"] and not _agreed(wish.age is not None):
        talk("Nothing was removed.")
        return LEFT
    told = [vacuumed(declared.name, name, each, wish) for declared, tables in opened for name, each in tables.items()]
    if as_json:
        data_json({"dry_run": wish.dry, "tables": told})
    elif told:
        table(*told_of(told))
    _say_what_is_empty(opened)
    return 0


def _age(option: str, text: str) -> int:
    from headrace.clock import duration

    try:
        return duration(text)
    except DefinitionError as error:
        raise UsageError("bad-usage", f"{option} cannot be read.", got=shown(text), hint=error.hint) from None


def _agreed(forgets: bool) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("bad-usage", "Removing cannot be undone: say --yes, or --dry-run to see what would go.")
    what = "Forget these days and remove old files" if forgets else "Remove files that no recent version needs"
    return click.confirm(f"{what} for good?", err=True)
