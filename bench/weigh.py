"""What a process and all its descendants hold of memory, shared pages counted once (PSS), and have spent on cores."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def weight(root: int) -> float:
    """MiB held now."""
    return sum(_proportional(pid) for pid in family(root)) / 1024


def cpu_seconds(root: int) -> float:
    """The time spent on cores so far.

    >>> cpu_seconds(os.getpid()) > 0
    True
    """
    return sum(_spent(pid) for pid in family(root))


def _spent(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def family(root: int) -> set[int]:
    """A process and all its descendants."""
    wanted, parents = {root}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in wanted} - wanted
        wanted, grown = wanted | more, bool(more)
    return wanted


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


class Scales(threading.Thread):
    """Weighs a process tree every second while the block runs; `peak` is the most it ever held."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root, self.peak, self._over = root, 0.0, threading.Event()

    def run(self) -> None:
        """Weigh until told to stop."""
        while not self._over.wait(1.0):
            self.peak = max(self.peak, weight(self.root))

    def __enter__(self) -> Scales:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
