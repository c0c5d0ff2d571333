"""The models of `headrace run score`, each in a process of its own: what one does, hang or crash, no other notices.

The process that was asked for starts one for each model, hears from each how it goes, starts again those that end or
are silent for too long, and tells the status topic of all. It loads no model and reads no stream. A project with one
model needs no second process.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from headrace.clock import SECOND
from headrace.config.config import Config
from headrace.processes.child import ChildProcess, name_exit
from headrace.status.records import ModelScoring

FIRST, LONGEST = 1.0, 30.0
"""Seconds until a process that ended is started again, the first time and at the most."""
HEALTHY = 60.0
"""Seconds after which an end is taken for the first one again."""
LOOK = 0.1
"""Seconds between two looks at the processes."""
DRAIN = 5.0
"""Seconds that a process has to note how far it is and to end."""
Command = Callable[[int], Sequence[str]]
"""The command line of a process, given the descriptor to which it reports."""
Publish = Callable[[dict[str, ModelScoring]], None]

_logger = logging.getLogger(__name__)


class ModelProcess:
    """The process of one model: started, heard, started again.

    Parameters
    ----------
    hung_after
        Seconds without a report after which it is killed.

    Attributes
    ----------
    report
        What it said last of how it goes.
    failure
        Why it is not scoring now; None while it is.
    """

    def __init__(self, name: str, command: Command, hung_after: float, first: float = FIRST) -> None:
        self.name, self._command, self._hung_after, self._first = name, command, hung_after, first
        self._process: ChildProcess | None = None
        self._delay, self._due, self._started, self._heard = first, 0.0, 0.0, 0.0
        self.report = ModelScoring()
        self.failure: str | None = "It has not started yet."

    def look(self) -> None:
        """Start it when it is time, and see whether it goes on."""
        now = time.monotonic()
        if self._process is None:
            if now >= self._due:
                self._start()
        elif (code := self._process.code()) is not None:
            self._ended(f"It ended with {name_exit(code)}.")
        elif now - self._heard > self._hung_after:
            self._ended(f"It did nothing for {self._hung_after:.0f} s and was ended.")

    def _start(self) -> None:
        reading, writing = os.pipe()
        try:
            self._process = ChildProcess(self._command(writing), descriptors=[writing])
        finally:
            os.close(writing)
        self._started = self._heard = time.monotonic()
        threading.Thread(target=self._hear, args=(reading,), name=f"model {self.name}", daemon=True).start()

    def _hear(self, reading: int) -> None:
        """Take in its reports until it ends."""
        with os.fdopen(reading, encoding="utf-8") as lines:
            for line in lines:
                report = msgspec.json.decode(line, type=ModelScoring)
                self.report, self.failure, self._heard = report, None, time.monotonic()

    def status(self) -> ModelScoring:
        """How the model is doing: its last report, which stands while it goes on, and why it does not score now."""
        return self.report if self.failure is None else replace(self.report, failing=self.failure)

    def _ended(self, why: str) -> None:
        self.kill()
        if time.monotonic() - self._started > HEALTHY:
            self._delay = self._first
        _logger.error("model %s: %s It is started again in %.0f s", self.name, why, self._delay)
        self.failure, self._due = why, time.monotonic() + self._delay
        self._delay = min(self._delay * 2, LONGEST)

    def ask_to_end(self) -> None:
        """Have it note how far it is and end."""
        if self._process is not None:
            self._process.ask_to_end()

    def wait(self, deadline: float) -> None:
        """Wait until it has ended, and end it when its time is over."""
        if self._process is not None:
            if self._process.wait(deadline - time.monotonic()) is None:
                _logger.error("model %s did not end within %.0f s", self.name, DRAIN)
            self.kill()

    def kill(self) -> None:
        """Leave no process behind."""
        if self._process is not None:
            self._process.end()
            self._process = None


class ModelProcesses:
    """The component that keeps the processes of some models going, and publishes the status of all now and then."""

    pause = LOOK

    def __init__(self, models: Sequence[ModelProcess], publish: Publish, every: float) -> None:
        self._models, self._publish, self._every, self._published = models, publish, every, 0.0

    def step(self) -> bool:
        """Look at every process."""
        for each in self._models:
            each.look()
        if time.monotonic() - self._published >= self._every:
            self._published = time.monotonic()
            self._publish({each.name: each.status() for each in self._models})
        return False

    def is_ready(self) -> bool:
        """Always: events wait in the log."""
        return True

    def stop(self) -> None:
        """Have every process end in order, and leave none behind."""
        for each in self._models:
            each.ask_to_end()
        deadline = time.monotonic() + DRAIN
        for each in self._models:
            each.wait(deadline)


def command_of(config: Config, model: str) -> Command:
    """The command that scores one model of a project."""
    env = [] if config.env is None else ["--env", config.env]

    def command(report: int) -> Sequence[str]:
        one = ["--model", model, "--report", str(report)]
        return [sys.executable, "-m", "headrace.cli.main", "run", "score", *one, "--project", str(config.root), *env]

    return command


def processes_of(config: Config, models: Sequence[str]) -> list[ModelProcess]:
    """A process for each of some models."""
    return [ModelProcess(name, command_of(config, name), config.processes.hung_after / SECOND) for name in models]
