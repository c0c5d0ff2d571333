"""The voice of the command line: `data` goes to stdout, `talk` to stderr, and nothing else writes.

Colour is decoration only: the words carry the meaning, NO_COLOR is honoured, and a pipe gets plain text.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import click

from headrace.disk import is_full
from headrace.errors import HeadraceError
from headrace.safe_text import printable

NEW_LINE = "\n"


def data(text: str) -> None:
    """Write what was asked for to stdout."""
    click.echo(text, color=_coloured(sys.stdout))


def line(text: str) -> None:
    """Write a line that has words of others in it, such as keys and ids: nothing in it moves the cursor."""
    data(printable(text))


def data_json(value: Any) -> None:
    """Write what was asked for to stdout as one JSON object; structs may be in it."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=_builtins))


def _builtins(value: object) -> object:
    import msgspec

    return msgspec.to_builtins(value)


def talk(text: str) -> None:
    """Say something to the person at the keyboard, on stderr.

    Where stderr is a file on a full disk, it stays in the buffer until there is room: what is said must not end what
    is done.
    """
    try:
        click.echo(text, err=True, color=_coloured(sys.stderr))
    except OSError as error:
        if not is_full(error):
            raise


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write rows in columns to stdout. Nothing is cut off when it is no terminal; no cell moves a cursor."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(*header, box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for row in rows:
        # As Text, so that a "[1h]" in a description is not taken for markup.
        made.add_row(*(Text(printable(cell), overflow="fold") for cell in row))
    console = Console(width=None if sys.stdout.isatty() else 1_000, highlight=False)
    with console.capture() as captured:
        console.print(made)
    data("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show_status(told: Mapping[str, Any], *, as_json: bool) -> int:
    """Show how a service stands; the exit code is 1 when it does not answer."""
    if as_json:
        data_json(told)
    else:
        data(as_lines(told))
    return 0 if told["answers"] else 1


def as_lines(told: Mapping[str, Any]) -> str:
    """What a status tells, a line for each.

    >>> print(as_lines({"answers": True, "topics": None, "local": {"pid": 7}}))
    answers   yes
    topics    -
    local     pid 7
    """
    return "\n".join(f"{name.ljust(8)}  {_shown(value)}" for name, value in told.items())


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(held)}" for name, held in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def fail(error: HeadraceError, *, as_json: bool) -> int:
    """Say what went wrong on stderr, as text or as one JSON object, and return the exit code."""
    if as_json:
        talk(json.dumps({"error": error.as_json()}, ensure_ascii=False))
        return error.exit_code
    talk(f"{click.style('error:', fg='red', bold=True)} {printable(error.message, NEW_LINE)}")
    for line in error.lines("where", "got", "excerpt", "code"):
        talk(printable(line, NEW_LINE))
    if error.hint:
        talk(f"{click.style('hint:', fg='cyan', bold=True)} {printable(error.hint, NEW_LINE)}")
    return error.exit_code


def _coloured(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR")
