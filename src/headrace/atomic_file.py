"""Small files that are replaced in one step."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from headrace.disk import is_full
from headrace.faults import NO_FAULTS, FaultPoints

BLOCK = 512
"""Bytes in which `st_blocks` counts."""


def write_whole(file: Path, text: str, faults: FaultPoints = NO_FAULTS) -> None:
    """Write a file so that whoever reads it sees all of the old one or all of the new one."""
    faults.reach("whole.write.before")
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        beside.write_text(text, encoding="utf-8")
        faults.reach("whole.rename.before")
        os.replace(beside, file)
    except OSError:
        # What did not fit on a full disk must not stay and take up the rest.
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    faults.reach("whole.rename.after")


def write_or_overwrite(file: Path, text: str) -> None:
    """The same for JSON that says how things stand, which matters most when the disk is full.

    Then there is no room for a second file, and the text is written over the old one, into the room that it has.
    Whoever reads at that very moment may see half of it, and has to look again.
    """
    try:
        write_whole(file, text)
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
