"""A progress bar for long work: on stderr, and only when a person looks at it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

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
