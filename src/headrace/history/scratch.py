"""A place on the disk for an import under way, which belongs to one import of a stream at a time.

The lock is a file in the project's data folder, and the kernel gives it back however its holder ends; what a killed
import left lying is removed by the next. Imports of other machines are told apart by the lake's own commits.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.config import Names
from headrace.errors import MachineError, shown


@contextmanager
def scratch(named: Names, stream: str) -> Iterator[Path]:
    """An empty folder for the time of an import; refused at once while another import of the stream runs."""
    folder = named.path("importing", stream)
    folder.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = "Another process imports history into this stream."
            hint = "Wait until it has ended; imports of one stream come one after the other."
            raise MachineError("import-running", message, got=shown(stream), hint=hint) from None
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
