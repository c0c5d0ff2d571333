"""Processes by their identity: a pid alone may by now be somebody else's.

An identity is a pid, when it started and its command line. A signal goes only to a process that still has all three.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

PROC = Path("/proc")
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


def identify(pid: int, proc: Path = PROC) -> Identity | None:
    """The identity of a process that runs, or None. One that has exited and was not yet collected runs no more."""
    if not (proc / "self" / "stat").exists():
        return _from_ps(pid)
    try:
        stat = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        command = (proc / str(pid) / "cmdline").read_bytes()
        boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    # The name, in parentheses, may hold anything; what follows the last one is plain.
    fields = stat.rpartition(")")[2].split()
    # A process that is just being replaced by its command has no command line for a moment.
    if fields[0] in ("Z", "X") or not command:
        return None
    return Identity(pid, f"{boot}/{fields[19]}", command.replace(b"\0", b" ").decode("utf-8", "replace").strip())


def _from_ps(pid: int) -> Identity | None:
    """The same on a system without /proc."""
    asked = ["ps", "-o", "stat=", "-o", "lstart=", "-o", "command=", "-p", str(pid)]
    told = subprocess.run(asked, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    parts = told.stdout.split(None, 6)
    if len(parts) < 7 or parts[0].startswith("Z"):
        return None
    return Identity(pid, " ".join(parts[1:6]), parts[6].strip())


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


def marked(variable: str, value: str, proc: Path = PROC) -> list[Identity]:
    """Every process that was started with a variable in its environment, however far down. Linux only."""
    wanted, found = f"{variable}={value}".encode(), []
    for folder in proc.glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and (identity := identify(int(folder.name), proc)) is not None:
            found.append(identity)
    return found


def kill_group(pid: int) -> None:
    """Kill what is left of the group that a child led. The child must not have been collected yet: its pid is ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
