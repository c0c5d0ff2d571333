"""A place on the disk for an import under way, which belongs to one import of a stream at a time.

What a killed import left lying is removed by the next. Imports of other machines are told apart by the lake's own
commits.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.config.config import Names
from headrace.errors import MachineError, shown
from headrace.files import lock_file


@contextmanager
def scratch(named: Names, stream: str) -> Iterator[Path]:
    """An empty folder for the time of an import; refused at once while another import of the stream runs."""
    folder = named.path("importing", stream)
    message = "Another process imports history into this stream."
    hint = "Wait until it has ended; imports of one stream come one after the other."
    refusal = MachineError("import-running", message, got=shown(stream), hint=hint)
    with lock_file(folder.with_suffix(".lock"), refusal):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
