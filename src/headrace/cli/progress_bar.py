"""A progress bar for long work: on stderr, when a person looks at it. Elsewhere nothing, or a line now and then."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from headrace.cli.output import talk

LINES_EVERY = 10.0
"""Seconds between two lines of what goes on and on."""

Advance = Callable[[int, int | None, str], None]
"""Told how much is done, of how much (None: not known), and what to say of it."""


@contextlib.contextmanager
def bar(said: str, total: int | None = None) -> Iterator[Advance]:
    """A bar on a terminal; elsewhere nothing.

    With a total it shows the share done and the time left, without one how long it has gone on.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total, _said: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    last: ProgressColumn = TimeElapsedColumn() if total is None else TimeRemainingColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), last)
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(said, total=total)
        yield lambda done, of, text: shown.update(task, completed=done, total=of or total, description=text)


@contextlib.contextmanager
def bar_or_lines(said: str, total: int) -> Iterator[Advance]:
    """A bar on a terminal; elsewhere a line when what is said up to a colon changes, and one every ten seconds."""
    if sys.stderr.isatty():
        with bar(said, total) as advance:
            yield advance
        return
    last, since = "", 0.0

    def write(done: int, of: int | None, text: str) -> None:
        nonlocal last, since
        name, now = text.partition(":")[0], time.monotonic()
        if name != last or now - since >= LINES_EVERY:
            last, since = name, now
            talk(f"{100 * done // (of or total):>3} %  {text}")

    yield write
