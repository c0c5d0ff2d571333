"""One process at a time: a lock in a file, which the kernel gives back however its holder ends.

Processes on other machines do not see it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.errors import HeadraceError


@contextmanager
def alone(file: Path, refusal: HeadraceError) -> Iterator[None]:
    """Hold the lock; while another process holds it, the refusal is raised at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise refusal from None
        yield
    finally:
        os.close(descriptor)
