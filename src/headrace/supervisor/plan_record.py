"""What each process of a project runs, held against what its files say now.

A process writes the outline of its plan when it starts (`record_plan`). `headrace status` loads the definitions and
compares; the supervisor asks it to whenever a file was edited (`supervisor.file_changes`), so that the page shows it
too.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping

from headrace.errors import HeadraceError
from headrace.files import write_atomically
from headrace.plan.model import Plan
from headrace.plan.outline import Outline, difference, outline
from headrace.processes.state_folder import StateFolder
from headrace.status.records import DefinitionStatus

RESTART = "`headrace down` and `headrace up` run what is written."
CURRENT = DefinitionStatus(older=[], changes=[], error=None, says="")
"""The status when every process runs what is written."""


def record_plan(where: StateFolder, name: str, plan: Plan) -> None:
    """Leave behind what this process runs. Without it the process works just as well, and is compared with nothing."""
    with contextlib.suppress(OSError):
        where.plan(name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(where.plan(name), json.dumps({"pid": os.getpid(), "outline": outline(plan)}))


def compare_plans(where: StateFolder, pids: Mapping[str, int | None], load: Callable[[], Plan]) -> DefinitionStatus:
    """What differs between the plans of running processes and the one that is written.

    Parameters
    ----------
    pids
        The pid of each process; None of those that do not run.
    load
        Loads the written plan; asked only when there is something to compare it with.
    """
    running = {name: found for name, pid in pids.items() if (found := _running(where, name, pid))}
    if not running:
        return CURRENT
    try:
        written = outline(load())
    except HeadraceError as error:
        says = f"The definitions cannot be loaded as they are written now: {error.brief}"
        return DefinitionStatus(older=[], changes=[], error=error.brief, says=says)
    changes = {name: difference(found, written) for name, found in running.items()}
    older = [name for name, found in changes.items() if found]
    every = sorted({change for found in changes.values() for change in found})
    if not older:
        return CURRENT
    listed = ", ".join(map(str, every))
    says = f"What runs ({', '.join(older)}) is older than what is written: {listed}. {RESTART}"
    return DefinitionStatus(older=older, changes=every, error=None, says=says)


def _running(where: StateFolder, name: str, pid: int | None) -> Outline | None:
    """The outline of a running process; None when it has left none."""
    try:
        found = json.loads(where.plan(name).read_text(encoding="utf-8"))
        written: Outline = found["outline"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return written if pid is not None and found.get("pid") == pid else None
