"""A child process: how it is started, asked to end, waited for, and killed with everything it started.

A child leads a session and a process group of its own, unless it is told to stay in this one. Ctrl-C in a terminal
does not reach it then. A process that is not a child of this one is found and signalled by `process_identity`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import IO, Any, Self

from headrace.processes import process_identity
from headrace.processes.process_identity import Identity

BECOMES = 1.0
"""Seconds within which a started process has become its command."""
STDERR = 2
Stream = int | IO[Any]


class ChildProcess:
    """A child process; as a context manager it is killed at the end of the block if it still runs.

    Parameters
    ----------
    input, output, errors
        As `subprocess` has them: a file, a descriptor, `DEVNULL`, `PIPE`. Output goes to our stderr, because our
        stdout is data; errors go where output goes.
    environment
        Its whole environment; this process's own when left out.
    descriptors
        Open files that it inherits.
    prepare
        Called in the child before it becomes its command.
    own_session
        Whether it leads a session of its own.

    Examples
    --------
    >>> import sys
    >>> with ChildProcess([sys.executable, "-c", "raise SystemExit(3)"]) as child:
    ...     child.wait()
    3
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        input: Stream = subprocess.DEVNULL,
        output: Stream = STDERR,
        errors: Stream = subprocess.STDOUT,
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
        prepare: Callable[[], None] | None = None,
        own_session: bool = True,
    ) -> None:
        self._popen = subprocess.Popen(
            command,
            stdin=input,
            stdout=output,
            stderr=errors,
            env=environment,
            pass_fds=descriptors,
            preexec_fn=prepare,  # noqa: PLW1509 (it must call nothing that could wait for another thread)
            start_new_session=own_session,
        )
        self.pid, self.stdin, self.stdout = self._popen.pid, self._popen.stdin, self._popen.stdout
        self._collecting = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for pipe in (self.stdin, self.stdout):
            if pipe is not None:
                pipe.close()

    @cached_property
    def identity(self) -> Identity | None:
        """Its identity, as soon as it has become its command; None when it has exited before."""
        deadline = time.monotonic() + BECOMES
        while (found := process_identity.identify(self.pid)) is None and not self._has_exited():
            if time.monotonic() >= deadline:
                break
            time.sleep(process_identity.LOOK / 10)
        return found

    def _has_exited(self) -> bool:
        """Whether it has exited. Not collected yet, its pid cannot be anyone else's."""
        if self._popen.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs. What it left running in its group is killed."""
        with self._collecting:
            if self._popen.returncode is None:
                if not self._has_exited():
                    return None
                process_identity.kill_group(self.pid)
            return self._popen.wait()

    def wait(self, seconds: float = float("inf")) -> int | None:
        """The exit code; None if it still runs after so many seconds."""
        deadline, pause = time.monotonic() + seconds, 0.001
        while (code := self.code()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(pause, left))
            pause = min(2 * pause, process_identity.LOOK)
        return code

    def ask_to_end(self) -> None:
        """Send SIGTERM to the child alone."""
        self._signal(lambda: os.kill(self.pid, signal.SIGTERM))

    def kill(self) -> None:
        """Kill it and everything it started; `code` then tells when it is gone."""
        self._signal(lambda: process_identity.kill_tree(self.pid))

    def end(self, grace: float = 0.0) -> None:
        """Leave no process behind: ask it to end, wait, and kill it when its time is over."""
        if grace:
            self.ask_to_end()
            self.wait(grace)
        self.kill()
        self.wait()

    def leave_running(self) -> None:
        """Let it outlive this process."""
        # Python need not warn of it.
        self._popen.returncode = self._popen.returncode or 0

    def _signal(self, send: Callable[[], None]) -> None:
        with self._collecting:
            if self._popen.returncode is None and not self._has_exited():
                send()


def start_module(
    module: str,
    given: Sequence[str],
    *,
    variables: Mapping[str, str],
    descriptors: Sequence[int] = (),
    own_session: bool = True,
) -> ChildProcess:
    """Run a module with this interpreter and its search path, and with some variables more."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    command = [sys.executable, "-P", "-m", module, *given]
    return ChildProcess(command, environment=environment, descriptors=descriptors, own_session=own_session)


def name_exit(code: int) -> str:
    """An exit in one word.

    >>> name_exit(2), name_exit(-9), name_exit(-65)
    ('exit code 2', 'SIGKILL', 'signal 65')
    """
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def show_exit(code: int) -> str:
    """An exit as people read it.

    >>> show_exit(2), show_exit(-9)
    ('exited with code 2', 'was ended by SIGKILL')
    """
    return f"exited with code {code}" if code >= 0 else f"was ended by {name_exit(code)}"
