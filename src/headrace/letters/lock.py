"""One process at a time changes a project's dead letters: two replays side by side would append a record twice.

The lock is a file in the project's data folder, and the kernel gives it back however its holder ends. Projects on other
machines that share the topics do not see it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.config import Names
from headrace.errors import MachineError


def lock_file(named: Names) -> Path:
    """Where a project's lock is.

    >>> lock_file(Names("", "shop", Path("data"))).as_posix()
    'data/run/dead-letters.lock'
    """
    return named.path("run", "dead-letters.lock")


@contextmanager
def locked(named: Names) -> Iterator[None]:
    """Be the one that changes the letters; refused at once when another is."""
    file = lock_file(named)
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "Wait until it has ended. What it has done is told by `headrace dead-letters list`."
            message = "Another process replays or drops dead letters of this project."
            raise MachineError("letters-locked", message, got=str(file), hint=hint) from None
        yield
    finally:
        os.close(descriptor)
