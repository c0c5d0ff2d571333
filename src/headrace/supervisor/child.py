"""What a supervisor runs: a command, how one knows that it is ready and well, and how it is started.

On Linux the kernel ends a child whose supervisor dies.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headrace.machine import end_with
from headrace.processes import log_file
from headrace.processes.child import ChildProcess
from headrace.processes.state_folder import MARK, StateFolder

DEADLINE = 120.0
SILENCE = 60.0
ENVIRONMENT = {"PYTHONUNBUFFERED": "1", "HEADRACE_DEBUG": "1"}
"""What a child prints is in its log at once, and an unexpected failure is there with its traceback."""

Ready = Callable[[int, int], Mapping[str, Any] | None]
"""From a pid and its start in microseconds to what is to be known of a ready child, or None while it is not."""


@dataclass(frozen=True)
class ChildCommand:
    """What is to run.

    Parameters
    ----------
    name
        What people call it.
    command
        What starts it.
    ready
        Asked again and again until it gives something.
    deadline
        Seconds within which it must be ready.
    after
        The child that must be ready before this one is started; the whole is ready without it.
    niceness
        By how much it gives way to others when the processor is scarce.
    health
        Asked from time to time while it is ready: what is to be known of it now, or None when it cannot say.
    sign
        A file that it touches every second. One that stays untouched for `silence` seconds belongs to a process that
        hangs, which is killed and started again.
    needs_room
        Whether it is not started while the disk is full.
    """

    name: str
    command: Sequence[str]
    ready: Ready
    deadline: float = DEADLINE
    after: str | None = None
    niceness: int = 0
    health: Ready | None = None
    sign: Path | None = None
    silence: float = SILENCE
    needs_room: bool = True


def start_child(child: ChildCommand, place: StateFolder) -> ChildProcess:
    """Start a child. It adds what it prints to its log."""
    log = place.log(child.name)
    environment = {**os.environ, **ENVIRONMENT, MARK: place.mark}
    with log_file.opened(log) as output:
        prepare = partial(_prepare, child.niceness, os.getpid())
        return ChildProcess(child.command, output=output, environment=environment, prepare=prepare)


def _prepare(niceness: int, parent: int) -> None:
    """What a child does before it becomes its command."""
    os.nice(niceness)
    end_with(parent, signal.SIGTERM)
