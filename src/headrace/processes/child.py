"""A child process: how it is started, asked to end, and killed with everything it started.

Each child leads a session and a process group of its own, so Ctrl-C in a terminal reaches the supervisor alone. On
Linux the kernel ends a child whose supervisor dies.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.processes import process_identity
from headrace.processes.process_identity import Identity
from headrace.processes.state_folder import MARK, Place

PR_SET_PDEATHSIG = 1
DEADLINE = 120.0
SILENCE = 60.0
BECOMES = 1.0
"""Seconds within which a started process has become its command."""
ENVIRONMENT = {"PYTHONUNBUFFERED": "1", "HEADRACE_DEBUG": "1"}
"""What a child prints is in its log at once, and an unexpected failure is there with its traceback."""

Ready = Callable[[int, int], Mapping[str, Any] | None]
"""From a pid and its start in microseconds to what is to be known of a ready child, or None while it is not."""


@dataclass(frozen=True)
class Child:
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


class Process:
    """A child that was started. `code` is asked until it gives the exit code, negative for a signal."""

    def __init__(self, child: Child, place: Place) -> None:
        log = place.log(child.name)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                child.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **ENVIRONMENT, MARK: place.mark},
                start_new_session=True,
                preexec_fn=_end_with_parent(),  # noqa: PLW1509 (a supervisor has one thread)
            )
        if child.niceness:
            # Right away: the threads and processes that it starts inherit it.
            os.setpriority(os.PRIO_PROCESS, self._popen.pid, min(19, os.nice(0) + child.niceness))
        self.pid = self._popen.pid
        self.identity = self._identify()

    def _identify(self) -> Identity | None:
        """Its identity, as soon as it has become its command; None when it has exited before."""
        deadline = time.monotonic() + BECOMES
        while (
            (found := process_identity.identify(self.pid)) is None
            and not self._exited()
            and time.monotonic() < deadline
        ):
            time.sleep(process_identity.LOOK / 10)
        return found

    def _exited(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def code(self) -> int | None:
        """The exit code, or None while it runs. What it left running in its group is killed before it is collected."""
        if self._popen.returncode is None:
            # Not collected yet, the pid cannot be anyone else's, so its group may be killed.
            if not self._exited():
                return None
            process_identity.kill_group(self.pid)
        return self._popen.wait()

    def terminate(self) -> None:
        """Ask it to end."""
        if self.code() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill it and everything it started; `code` then tells when it is gone."""
        if self.code() is None:
            process_identity.kill_group(self.pid)


def _end_with_parent() -> Callable[[], None] | None:
    """What a child does before it becomes its command: have the kernel send SIGTERM when the supervisor dies."""
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def before() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        # It may have died in between.
        if os.getppid() != parent:
            os._exit(1)

    return before


def show_exit(code: int) -> str:
    """An exit as people read it.

    >>> show_exit(2), show_exit(-9)
    ('exited with code 2', 'was ended by SIGKILL')
    """
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
