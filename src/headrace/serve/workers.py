"""The processes that answer, where there are several: started, kept alive, told how things stand, and ended in order.

The process that has them fills the store and listens to nobody else. Each worker has a listening socket of its own on
the same port, among which the system spreads connections, and reads the same store. What one does is in `worker`.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path

from headrace.errors import MachineError
from headrace.processes.child import ChildProcess, start_module
from headrace.serve import metrics
from headrace.serve.monitor import Monitor
from headrace.serve.status_view import ANSWERED
from headrace.serve.worker_pipe import StatusMessage, WorkerReport

WORKER = "headrace.serve.worker"
SHORT = 10.0
"""Seconds of life that are too few."""
TRIES = 5
"""How many workers in a row may live so short."""
PATIENCE = 0.2
GRACE = 10.0
"""Seconds beyond the time to drain that a worker may take to end."""

_logger = logging.getLogger(__name__)
Target = Callable[[socket.socket, Connection, Path], None]
"""What a worker does, with its socket, its pipe and the folder in which all count."""


@dataclass
class Worker:
    """One process, on one socket."""

    listener: socket.socket
    process: ChildProcess
    pipe: Connection
    began: float = field(default_factory=time.monotonic)
    counted: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ANSWERED, 0))
    heard: bool = False


class Workers:
    """Workers on some sockets.

    Parameters
    ----------
    work
        What each does; it is pickled.
    folder
        Where they count together; emptied at the start.
    drain
        Seconds that requests under way have to end.

    Attributes
    ----------
    patience
        Seconds that all of them have to end.
    """

    def __init__(
        self, listeners: Sequence[socket.socket], work: Target, monitor: Monitor, folder: Path, drain: float
    ) -> None:
        self._listeners, self._work, self._monitor, self._folder = listeners, work, monitor, folder
        self.patience, self._short = drain + GRACE, 0
        self._all: list[Worker] = []
        self.up = threading.Event()

    def run(self, stop: threading.Event) -> None:
        """Keep them alive until told to stop, then end them in order."""
        _emptied(self._folder)
        try:
            self._all += [self._started(listener) for listener in self._listeners]
            while not stop.is_set():
                self._talk()
                # A signal to all of a process group ends workers too, perhaps before it is heard here.
                if any(worker.process.code() is not None for worker in self._all) and not stop.wait(PATIENCE):
                    self._replace()
            self._end()
        finally:
            for worker in self._all:
                worker.process.end()

    def _started(self, listener: socket.socket) -> Worker:
        mine, its = Pipe()
        inherited = [listener.fileno(), its.fileno()]
        with its:
            process = start_module(
                WORKER,
                [*map(str, inherited), str(self._folder)],
                variables={metrics.FOLDER: str(self._folder)},
                descriptors=inherited,
                # A signal that kills this one's group, as the supervisor sends it, frees the port at once.
                own_session=False,
            )
        # One that has ended already is replaced later.
        with contextlib.suppress(OSError):
            mine.send(self._work)
        return Worker(listener, process, mine)

    def _talk(self) -> None:
        """Answer those who have said something."""
        pipes = {worker.pipe: worker for worker in self._all if not worker.pipe.closed}
        for pipe in wait(list(pipes), PATIENCE) if pipes else ():
            worker = pipes[pipe]  # type: ignore[index]
            try:
                said = worker.pipe.recv()
                worker.pipe.send(self._monitor.status() if said is None else self._reply_to(worker, said))
            except (EOFError, OSError):
                worker.pipe.close()
        if not pipes:
            time.sleep(PATIENCE)

    def _reply_to(self, worker: Worker, said: WorkerReport) -> StatusMessage:
        for what, count in said.answered.items():
            self._monitor.answered[what] += count - worker.counted[what]
        worker.counted = dict(said.answered)
        self._monitor.reads.extend(said.reads)
        worker.heard = True
        if all(each.heard for each in self._all):
            self.up.set()
        return StatusMessage(self._monitor.readiness(), dict(self._monitor.behind), self._monitor.free_disk)

    def _replace(self) -> None:
        """Start another where one has ended."""
        for place, worker in enumerate(self._all):
            if (code := worker.process.code()) is None:
                continue
            metrics.forget(worker.process.pid, self._folder)
            worker.pipe.close()
            self._short = self._short + 1 if time.monotonic() - worker.began < SHORT else 0
            if self._short >= TRIES:
                message = f"{TRIES} workers in a row have ended as soon as they had started."
                hint = "What they said is above, or in `headrace logs serve`."
                raise MachineError("start-failed", message, got=f"exit code {code}", hint=hint)
            _logger.error("a worker has ended with exit code %s: starting another", code)
            self._all[place] = self._started(worker.listener)

    def _end(self) -> None:
        # While one is open here, whoever connects would wait for an answer that nobody gives.
        for listener in self._listeners:
            listener.close()
        for worker in self._all:
            worker.process.ask_to_end()
        deadline = time.monotonic() + self.patience
        while any(worker.process.code() is None for worker in self._all) and time.monotonic() < deadline:
            self._talk()


def _emptied(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*.db"):
        file.unlink()
