"""The folder in which the workers of one serving process count together.

The counters are files that are mapped into memory. On a disk, a worker that touches a new page of one is killed while
the disk is full; so they lie where files are in memory, where the system has such a place. Each serving process has a
folder of its own there, with a lock that says that it lives. What a killed one has left is removed by the next.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from headrace.files import lock_file

MEMORY = Path("/dev/shm")
LOCK = "lock"
SETTLED = 60.0
"""Seconds after which a folder that nobody has locked is left over, and not just being made."""


@contextlib.contextmanager
def counts_folder(data: Path, memory: Path = MEMORY) -> Iterator[Path]:
    """A folder for the counters of one serving process, until the block ends; in the data folder where it must be."""
    with contextlib.ExitStack() as stack:
        folder = data / "run" / "metrics"
        with contextlib.suppress(OSError):
            made = Path(tempfile.mkdtemp(prefix=_prefix(), dir=memory))
            stack.callback(shutil.rmtree, made, ignore_errors=True)
            stack.enter_context(_locked(made))
            _remove_left_over(memory)
            folder = made
        yield folder


def _prefix() -> str:
    return f"headrace-{os.getuid()}-"


def _locked(folder: Path) -> AbstractContextManager[None]:
    """Hold the lock of a folder, which is an `OSError` while somebody else has it."""
    return lock_file(folder / LOCK, BlockingIOError(str(folder)))


def _remove_left_over(memory: Path) -> None:
    """Remove the folders of this user's processes that are no more."""
    for folder in memory.glob(f"{_prefix()}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
            if own and time.time() - found.st_mtime > SETTLED:
                with _locked(folder):
                    shutil.rmtree(folder, ignore_errors=True)
