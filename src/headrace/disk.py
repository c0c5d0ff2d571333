"""Whether a disk is full: what an error says of it, and what the disk says itself.

A full disk is a state that passes, no damage and no defect: whoever meets it keeps what it has, waits and tries again.
Who waits how is decided by those who write.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

from headrace.errors import DiskFullError, HeadraceError
from headrace.plural import show_count

LEAST = 16 * 1024 * 1024
"""Free bytes below which a disk counts as full: less than this is gone before a process has started."""
HINT = "Free some space on that disk; what waits for it goes on by itself."

_NUMBERS = {errno.ENOSPC, errno.EDQUOT}
_TEXTS = ("No space left on device", "Disk quota exceeded", "code: log-full", "code: disk-full")
"""How libraries and Spark's JVM say it."""
_DEEPEST = 20
BESIDE = 60
"""Characters that are shown on both sides of such a text."""


def free_bytes(folder: Path) -> int:
    """What is left on the disk of a folder, or of the nearest one above it that is there."""
    while True:
        try:
            found = os.statvfs(folder)
        except FileNotFoundError:
            if folder == folder.parent:
                raise
            folder = folder.absolute().parent
        else:
            return found.f_bavail * found.f_frsize


def has_room(folder: Path) -> bool:
    """Whether the disk of a folder is not full. A quota that `statvfs` does not know shows only when something fails.

    >>> has_room(Path.cwd())
    True
    """
    try:
        return free_bytes(folder) >= LEAST
    except OSError:
        # A disk that cannot be asked is another trouble, which shows itself.
        return True


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, says that a disk is full or a quota used up.

    >>> is_full(OSError(errno.ENOSPC, "No space left on device")), is_full(OSError(errno.EACCES, "Permission denied"))
    (True, False)
    """
    return _first_full(error) is not None


def as_full(error: BaseException) -> DiskFullError:
    """An error that `is_full` as the one error that people and processes know it by.

    >>> as_full(OSError(errno.ENOSPC, "No space left on device", "data/x")).where
    'data/x'
    """
    found = _first_full(error)
    if isinstance(found, DiskFullError):
        return found
    where = getattr(found, "filename", None)
    got = found.brief if isinstance(found, HeadraceError) else _brief(found)
    message = "A disk is full or its quota used up."
    return DiskFullError("disk-full", message, got=got, hint=HINT, where=None if where is None else str(where))


def refuse_full(folder: Path) -> None:
    """Refuse to begin something that writes to a folder whose disk is full."""
    if not has_room(folder):
        message = "The disk of the data folder is full."
        got = f"{show_count(free_bytes(folder), 'byte is', 'bytes are')} left, {LEAST:,} are needed to start"
        raise DiskFullError("disk-full", message, got=got, hint="Free some space on that disk.", where=str(folder))


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Errors of a full disk as Headrace's; all others as they are."""
    try:
        yield
    except DiskFullError:
        raise
    except Exception as error:
        if not is_full(error):
            raise
        raise as_full(error) from error


def reserve(file: Path, size: int) -> None:
    """Give the first bytes of a file their place on the disk, and make the file if it is not there.

    A process that maps a file whose pages have no place is killed when it touches one while the disk is full.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if os.fstat(descriptor).st_blocks * 512 < size and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)


def _first_full(error: BaseException | None) -> BaseException | None:
    for _ in range(_DEEPEST):
        if error is None or _says_so(error):
            return error
        error = error.__cause__ or error.__context__
    return None


def _says_so(error: BaseException) -> bool:
    if isinstance(error, DiskFullError):
        return True
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _NUMBERS
    said = _text(error)
    return any(text in said for text in _TEXTS)


def _brief(error: BaseException | None) -> str:
    """What an error's text says of the disk, and not the traceback that a library may put around it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    said = _text(error)
    found = re.search(f"[^\n:]{{0,{BESIDE}}}(?:{'|'.join(map(re.escape, _TEXTS))})[^\n]{{0,{BESIDE}}}", said)
    return said if found is None else found[0].strip(" '\"")


def _text(error: BaseException | None) -> str:
    try:
        return str(error)
    except Exception:
        # An error of Spark's asks a JVM for its text, which may be gone.
        return type(error).__name__
