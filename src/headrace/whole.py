"""Small files that are replaced in one step."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from headrace.faults import NO_FAULTS, FaultPoints


def write_whole(file: Path, text: str, faults: FaultPoints = NO_FAULTS) -> None:
    """Write a file so that whoever reads it sees all of the old one or all of the new one."""
    faults.reach("whole.write.before")
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    beside.write_text(text, encoding="utf-8")
    faults.reach("whole.rename.before")
    os.replace(beside, file)
    faults.reach("whole.rename.after")
