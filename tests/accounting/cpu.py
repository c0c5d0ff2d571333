"""CPU-seconds of this process and of all that it started, those included that no longer have a parent.

A process belongs to the tree when its parent does, or when its environment has the mark that this process sets: so the
processes of `headrace up --detach` count too. Children that were waited for count in their parent's times. Processes
without a parent are sampled twice a second, because what they used is lost when they end.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICK = os.sysconf("SC_CLK_TCK")
MARK = "TEST_RUN_TREE"
PAUSE = 0.5
YOUNG = 2.0
"""A process may still be on its way to its own program: for so many seconds it is looked at again."""


@dataclass(frozen=True)
class ProcessTimes:
    """A line of /proc/PID/stat: the parent, the start in seconds since boot, CPU-seconds with ended children."""

    parent: int
    start: float
    cpu: float


def read_times(pid: int) -> ProcessTimes | None:
    """The times of a process, none when it is gone."""
    try:
        fields = (PROC / str(pid) / "stat").read_text(encoding="latin-1").rpartition(")")[2].split()
    except OSError:
        return None
    return ProcessTimes(int(fields[1]), int(fields[19]) / TICK, sum(map(int, fields[11:15])) / TICK)


class ProcessTree:
    """Adds up the CPU-seconds of a process and its descendants; the sum never falls."""

    def __init__(self) -> None:
        self._me, self._mark = os.getpid(), f"{os.getpid()}.{time.time_ns()}"
        self._members: dict[int, ProcessTimes] = {}
        self._strangers: set[int] = set()
        self._ended = 0.0
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._sampler = threading.Thread(target=self._sample, name="accounting", daemon=True)
        os.environ[MARK] = self._mark

    def start(self) -> None:
        """Begin to sample."""
        self._sampler.start()

    def stop(self) -> None:
        """Sample no longer."""
        self._stop.set()
        self._sampler.join()

    def read_cpu(self) -> float:
        """CPU-seconds up to now."""
        with self._lock:
            self._look()
            own = os.times()
            return sum(own[:4]) + self._ended + sum(times.cpu for times in self._members.values())

    def _sample(self) -> None:
        while not self._stop.wait(PAUSE):
            with self._lock:
                self._look()

    def _look(self) -> None:
        pids = {int(name) for name in os.listdir(PROC) if name.isdigit()} - {self._me}
        self._strangers &= pids
        before, self._members = self._members, {}
        known = before.keys() | {self._me}
        for pid in sorted(pids - self._strangers):
            times = read_times(pid)
            if times is None:
                continue
            same = pid in before and before[pid].start == times.start
            if same or times.parent in known or times.parent in self._members or self._has_mark(pid):
                self._members[pid] = times
            elif time.clock_gettime(time.CLOCK_BOOTTIME) - times.start > YOUNG:
                self._strangers.add(pid)
        for pid, times in before.items():
            # What had a parent among us is in that parent's times now.
            if self._members.get(pid, times).start != times.start or pid not in self._members:
                self._ended += 0.0 if times.parent in known else times.cpu

    def _has_mark(self, pid: int) -> bool:
        try:
            return f"{MARK}={self._mark}".encode() in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            return False


def time_loop() -> float:
    """CPU-seconds of a fixed piece of work, the best of three: how fast this machine is.

    >>> time_loop() > 0
    True
    """
    return min(_time_loop() for _ in range(3))


def _time_loop() -> float:
    began, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number & 7
    return time.process_time() - began


def read_machine() -> float:
    """CPU-seconds that everything on this machine has used since it started."""
    fields = [int(field) for field in (PROC / "stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICK  # neither idle nor waiting for a disk
