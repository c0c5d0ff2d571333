"""Where a project's running processes are recorded: a lock, a status file, and a log for each.

The lock says who supervises now; the status file what was last known. The file may outlive its supervisor, so whoever
reads it checks the identities in it.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.config.config import Config, names
from headrace.errors import HeadraceError, ProjectError
from headrace.files import FileLock, is_locked, write_or_overwrite
from headrace.processes import process_identity
from headrace.processes.process_identity import Identity

FORMAT = 1
MARK = "HEADRACE_SUPERVISOR"
ROOM = 16 * 1024
"""The size of a status file is a multiple of so many bytes."""
SETTLED = 1.0
"""Seconds within which whoever took the lock has written its name, and whoever only looked has let go."""


@dataclass(frozen=True)
class StateFolder:
    """The folders of one project that a supervisor writes to.

    >>> StateFolder(Path("data")).log("pipeline").as_posix()
    'data/logs/pipeline.log'
    """

    data: Path

    @property
    def lock(self) -> Path:
        """Held by the supervisor as long as it runs."""
        return self.data / "run" / "lock"

    @property
    def status(self) -> Path:
        """What runs, as last known."""
        return self.data / "run" / "status.json"

    @property
    def mark(self) -> str:
        """What the processes of this project carry in their environment."""
        return str(self.data.resolve())

    def ready(self, name: str) -> Path:
        """Where a child says how it can be reached."""
        return self.data / "run" / f"{name}.json"

    def plan(self, name: str) -> Path:
        """Where a child leaves the outline of the plan that it runs."""
        return self.data / "run" / f"{name}.plan.json"

    def log(self, name: str) -> Path:
        """What a child has said."""
        return self.data / "logs" / f"{name}.log"


def find_state_folder(config: Config) -> StateFolder:
    """Where a project's processes are recorded."""
    return StateFolder(names(config).path())


@contextmanager
def locked(where: StateFolder) -> Iterator[None]:
    """Be the only supervisor of a project. The lock goes with the process that holds it, however it ends."""
    with FileLock(where.lock) as lock:
        if not lock.try_acquire(SETTLED, lambda: _named(where.lock) is not None):
            held = _named(where.lock)
            hint = "See it with `headrace status`, or end it with `headrace down`."
            got = None if held is None else f"pid {held.pid}"
            raise ProjectError("already-running", "The project is already up.", got=got, hint=hint)
        me = process_identity.identify(os.getpid())
        with where.lock.open("r+", encoding="utf-8") as file:
            # Over what was there before it is cut off: a disk that fills up just now takes no room from it.
            file.write(json.dumps(None if me is None else me._asdict()))
            file.truncate()
        yield


def holder(where: StateFolder) -> Identity | None:
    """The supervisor that holds the lock now, or None."""
    return _named(where.lock) if is_locked(where.lock) else None


def _named(lock: Path) -> Identity | None:
    """The living process that a lock file names."""
    try:
        found = process_identity.read(json.loads(lock.read_text("utf-8")))
    except (OSError, ValueError):
        return None
    return found if found is not None and process_identity.alive(found) else None


def write_status(where: StateFolder, status: Mapping[str, Any]) -> None:
    """Replace the status file in one step: a reader sees the old one or the new one.

    Blanks at its end keep room for another status while the disk is full.
    """
    text = json.dumps({"format": FORMAT, **status}, indent=2) + "\n"
    write_or_overwrite(where.status, text.ljust(-(-len(text) // ROOM) * ROOM))


def read_status(where: StateFolder) -> dict[str, Any] | None:
    """The status file, or None when there is none that can be read."""
    try:
        found = json.loads(where.status.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


def recorded(where: StateFolder) -> list[Identity]:
    """The children in the status file that still run."""
    processes = (read_status(where) or {}).get("processes", {})
    found = [process_identity.read(stored) for stored in processes.values()] if isinstance(processes, dict) else []
    return [identity for identity in found if identity is not None and process_identity.alive(identity)]


def end_left(where: StateFolder, *, grace: float) -> int:
    """End what a supervisor that is no more has left running: its children, then all that they had started."""
    children = recorded(where)
    process_identity.end(children, grace=grace)
    others = process_identity.marked(MARK, where.mark)
    for identity in others:
        process_identity.send(identity, signal.SIGKILL)
    process_identity.gone(others, within=process_identity.KILLED)
    return len(children) + len(others)


def serve_url(where: StateFolder) -> str:
    """Where serving answers now, from the status file."""
    stored = ((read_status(where) or {}).get("processes") or {}).get("serve", {})
    identity = process_identity.read(stored)
    if identity is None or not process_identity.alive(identity) or not stored.get("url"):
        raise HeadraceError("not-running", "Serving does not run.", hint="Start it with `headrace up`.")
    return str(stored["url"])
