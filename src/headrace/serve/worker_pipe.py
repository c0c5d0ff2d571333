"""What a worker hears of how things stand from the process that fills the store, and tells it of its own work.

They talk over one pipe: the worker says something and waits for the answer. When the pipe ends, so does the worker:
nobody fills the store any more.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from headrace.errors import MachineError
from headrace.serve.limits import Behind
from headrace.serve.status_view import ANSWERED, READS, ProjectStatus

BEAT = 0.25
"""Seconds between two words of a worker."""
SILENCE = 5.0
"""Seconds after which the other side is not ready, or an answer is not waited for any longer."""


@dataclass(frozen=True)
class WorkerReport:
    """What a worker says now and then: what it has counted since its start, and how long its newest reads took."""

    answered: Mapping[str, int]
    reads: list[float]


@dataclass(frozen=True)
class StatusMessage:
    """What it is told."""

    readiness: Mapping[str, bool]
    behind: Mapping[str, Behind] = field(default_factory=dict)
    free_disk: int | None = None


class WorkerStatusView:
    """How things stand, in a worker: see `Watch`.

    Parameters
    ----------
    keeper
        The pipe to the process that fills the store.

    Attributes
    ----------
    before
        Is called before every word, to bring what is told up to date.
    """

    def __init__(self, keeper: Connection) -> None:
        self._keeper = keeper
        self.before: Callable[[], None] = lambda: None
        self._talking = threading.Lock()
        self._word, self._heard_at = StatusMessage({"filling": False}), time.monotonic()
        self.reads: deque[float] = deque(maxlen=READS)
        self.answered = dict.fromkeys(ANSWERED, 0)

    @property
    def behind(self) -> Mapping[str, Behind]:
        """See `Watch`."""
        return self._word.behind

    @property
    def free_disk(self) -> int | None:
        """See `Watch`."""
        return self._word.free_disk

    def run(self, stop: threading.Event) -> None:
        """Talk until told to stop."""
        while not stop.wait(BEAT):
            self.beat()

    def beat(self) -> None:
        """Say what was done, and hear how things stand."""
        self.before()
        newest = [self.reads.popleft() for _ in range(len(self.reads))]
        self._word, self._heard_at = self._exchange(WorkerReport(dict(self.answered), newest)), time.monotonic()

    def readiness(self) -> Mapping[str, bool]:
        """See `Watch`; who has heard nothing for a while does not know."""
        if time.monotonic() - self._heard_at > SILENCE:
            return {**self._word.readiness, "filling": False}
        return self._word.readiness

    def status(self) -> ProjectStatus:
        """See `Watch`."""
        found: ProjectStatus = self._exchange(None)
        return found

    def _exchange(self, what: WorkerReport | None) -> Any:
        with self._talking:
            try:
                self._keeper.send(what)
                if self._keeper.poll(SILENCE):
                    return self._keeper.recv()
            except (EOFError, OSError) as error:
                raise MachineError("no-answer", "The process that fills the store has gone.") from error
            # Whatever comes later would be taken for the answer to something else.
            self._keeper.close()
            raise MachineError("no-answer", "The process that fills the store does not answer.")
