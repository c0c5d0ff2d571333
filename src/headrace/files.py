"""File locks, and small files that are replaced in one step.

The kernel releases a lock when the last process that holds its descriptor ends, however it ends. Other machines do not
see it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from headrace.disk import is_full
from headrace.faults import NO_FAULTS, FaultPoints

BLOCK = 512
"""Bytes in which `st_blocks` counts."""
PAUSE = 0.005
"""Seconds between two attempts to get a lock."""


class FileLock:
    """An exclusive lock on a file, which is made if it is missing; to close it releases the lock.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "lock"
    >>> with FileLock(file) as first, FileLock(file) as second:
    ...     first.try_acquire(), second.try_acquire(), is_locked(file)
    (True, False, True)
    >>> is_locked(file)
    False
    """

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self.descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        self._closed = False

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def try_acquire(self, patience: float = 0.0, give_up: Callable[[], bool] = lambda: False) -> bool:
        """Take the lock, if it is free within `patience` seconds and before `give_up` says true."""
        deadline = time.monotonic() + patience
        while not _flock(self.descriptor, fcntl.LOCK_EX):
            if give_up() or time.monotonic() >= deadline:
                return False
            time.sleep(PAUSE)
        return True

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for the lock, and hold it for the time of the block."""
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file; a child process that inherited the descriptor keeps the lock."""
        if not self._closed:
            self._closed = True
            os.close(self.descriptor)


@contextlib.contextmanager
def lock_file(file: Path, refusal: Exception, patience: float = 0.0) -> Iterator[None]:
    """Hold a lock for the time of the block; raise the refusal if it is not free within `patience` seconds."""
    with FileLock(file) as lock:
        if not lock.try_acquire(patience):
            raise refusal
        yield


def is_locked(file: Path) -> bool:
    """Whether somebody holds the lock of a file now; false where there is no such file."""
    try:
        with file.open("rb") as opened:
            # Shared: two that look at once must not take each other for a holder.
            return not _flock(opened.fileno(), fcntl.LOCK_SH)
    except OSError:
        return False


def _flock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_atomically(file: Path, text: str, faults: FaultPoints = NO_FAULTS) -> None:
    """Write a file so that whoever reads it sees all of the old one or all of the new one."""
    faults.reach("file.write.before")
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        beside.write_text(text, encoding="utf-8")
        faults.reach("file.rename.before")
        os.replace(beside, file)
    except OSError:
        # What did not fit on a full disk must not stay and take up the rest.
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    faults.reach("file.rename.after")


def write_or_overwrite(file: Path, text: str) -> None:
    """The same for JSON that says how things stand, which matters most when the disk is full.

    Then there is no room for a second file, and the text is written over the old one, into the room that it has.
    Whoever reads at that very moment may see half of it, and has to look again.
    """
    try:
        write_atomically(file, text)
    except OSError as error:
        if not is_full(error) or not _overwritten(file, text.encode()):
            raise


def _overwritten(file: Path, data: bytes) -> bool:
    """Whether the text fitted into the room that the file has; blanks cover what is left of the old one."""
    try:
        with file.open("r+b") as there:
            held = os.fstat(there.fileno())
            if held.st_blocks * BLOCK < len(data):
                return False
            there.write(data.ljust(held.st_size))
    except OSError:
        return False
    return True
