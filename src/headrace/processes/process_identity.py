"""Processes by their identity: a pid alone may by now be somebody else's.

An identity is a pid, when it started and its command line. A signal goes only to a process that still has all three.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import psutil

KILLED = 1.5
"""Seconds within which a killed process is gone, unless the machine itself hangs."""
LOOK = 0.02
"""Seconds between two looks at processes that are asked to end."""


class Identity(NamedTuple):
    """One process, never to be mistaken for a later one with its pid.

    >>> import os
    >>> identify(os.getpid()).pid == os.getpid()
    True
    """

    pid: int
    start: str
    command: str


def identify(pid: int) -> Identity | None:
    """The identity of a process that runs, or None. One that has exited and was not yet collected runs no more."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            # A process that is just being replaced by its command has no command line for a moment.
            if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD) or not (words := process.cmdline()):
                return None
            # Counted from the machine's start: its clock may be set meanwhile.
            start = process.create_time() - psutil.boot_time()
    except psutil.Error:
        return None
    return Identity(pid, f"{start:.2f}", " ".join(words))


def alive(identity: Identity) -> bool:
    """Whether this very process still runs."""
    return identify(identity.pid) == identity


def read(stored: Any) -> Identity | None:
    """An identity from a status file, or None for anything else."""
    match stored:
        case {"pid": int(pid), "start": str(start), "command": str(command)}:
            return Identity(pid, start, command)
    return None


def send(identity: Identity, number: int, *, group: bool = False) -> bool:
    """Send a signal to this very process, or to its group when it leads one; false when it is gone."""
    if not alive(identity):
        return False
    try:
        if group and os.getpgid(identity.pid) == identity.pid:
            os.killpg(identity.pid, number)
        else:
            os.kill(identity.pid, number)
    except ProcessLookupError:
        return False
    return True


def end(identities: Iterable[Identity], *, grace: float) -> int:
    """Ask processes to end, wait up to `grace` seconds, then kill their groups. Says how many there were."""
    found = [identity for identity in identities if send(identity, signal.SIGTERM)]
    if not gone(found, within=grace):
        for identity in found:
            send(identity, signal.SIGKILL, group=True)
        gone(found, within=KILLED)
    return len(found)


def gone(identities: Iterable[Identity], *, within: float) -> bool:
    """Wait until none of the processes runs, at most `within` seconds."""
    waiting, deadline = list(identities), time.monotonic() + within
    while waiting := [identity for identity in waiting if alive(identity)]:
        if time.monotonic() >= deadline:
            return False
        time.sleep(LOOK)
    return True


def marked(variable: str, value: str) -> list[Identity]:
    """Every process that was started with a variable in its environment, however far down."""
    found = [identify(process.pid) for process in psutil.process_iter() if _environment(process).get(variable) == value]
    return [identity for identity in found if identity is not None]


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


def kill_tree(pid: int) -> None:
    """Kill a child, its group, and whatever else descends from it. The child must not have been collected yet."""
    descendants: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        descendants = psutil.Process(pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    kill_group(pid)
    for process in descendants:
        with contextlib.suppress(psutil.Error):
            process.kill()


def kill_group(pid: int) -> None:
    """Kill what is left of the group that a child led. The child must not have been collected yet: its pid is ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
