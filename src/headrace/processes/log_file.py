"""The log file of a child: what it prints, with a marked line where it starts and where it exits.

Children write to the file themselves, so nothing is lost when the supervisor dies. A file that has grown too large is
copied aside and emptied; the few bytes written between the two are the price of not standing in the way.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from headrace.disk import LEAST, free_bytes, is_full

LARGEST = 16 * 1024 * 1024
KEPT = 2
TAIL = 64 * 1024
"""Bytes at the end of a file that are looked at for its last lines."""


def mark(path: Path, text: str) -> None:
    """Add a marked line; on a full disk it is left out.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.log"
    >>> mark(file, "pipeline started")
    >>> file.read_text()
    '--- pipeline started ---\\n'
    """
    try:
        with opened(path) as file:
            file.write(f"--- {text} ---\n".encode())
    except OSError as error:
        if not is_full(error):
            raise


def opened(path: Path) -> BinaryIO:
    """A log file to add to. Keys and events may be in it, so nobody but its user reads it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return open(path, "ab", opener=_private)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def rotate(path: Path, largest: int = LARGEST) -> bool:
    """Copy a file that is too large to NAME.1, the one before to NAME.2, and empty it.

    Where there is no room for the copy everything stays as it is, and it is tried again.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return False
    if size <= largest or free_bytes(path.parent) < size + LEAST:
        return False
    copy = path.with_name(f"{path.name}.new")
    try:
        opened(copy).close()
        shutil.copyfile(path, copy)
    except OSError as error:
        copy.unlink(missing_ok=True)
        if not is_full(error):
            raise
        return False
    for number in range(KEPT, 1, -1):
        older = path.with_name(f"{path.name}.{number - 1}")
        if older.exists():
            older.replace(path.with_name(f"{path.name}.{number}"))
    copy.replace(path.with_name(f"{path.name}.1"))
    os.truncate(path, 0)
    return True


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a file; none when it is not there."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    return list(deque(text.splitlines(), maxlen=count)) if count else []


def follow(files: Mapping[str, Path], pause: Callable[[], bool]) -> Iterator[tuple[str, str]]:
    """Whole lines as they are added to files from now on, each with the name of its file, until `pause` says true.

    A file that is emptied meanwhile is read from its start again.
    """
    return _added(files, {name: _size(path) for name, path in files.items()}, pause)


def _added(files: Mapping[str, Path], at: dict[str, int], pause: Callable[[], bool]) -> Iterator[tuple[str, str]]:
    rest = dict.fromkeys(files, b"")
    over = False
    while True:
        for name, path in files.items():
            if _size(path) < at[name]:
                at[name], rest[name] = 0, b""
            added = _read(path, at[name])
            at[name] += len(added)
            *lines, rest[name] = (rest[name] + added).split(b"\n")
            yield from ((name, line.decode("utf-8", "replace")) for line in lines)
        # One more look after the end, for what was written while it came.
        if over:
            return
        over = pause()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _read(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read()
    except FileNotFoundError:
        return b""
