"""How a project is doing, from the status file and from what its components told of themselves.

Nothing in the file is believed that the machine does not confirm: a process is shown as running when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.alarms.alarm import full_alarm
from headrace.clock import MILLISECOND, SECOND, micros
from headrace.config.config import Config, names
from headrace.disk import free_bytes, has_room
from headrace.errors import DiskFullError
from headrace.log.protocol import Log
from headrace.plan.model import Plan
from headrace.processes import process_identity, state_folder
from headrace.processes.state_folder import Place
from headrace.standing import alarms, streams
from headrace.supervisor import services
from headrace.supervisor.plan_record import compare_plans
from headrace.topics import STATUS, last_status

RECORDED = ("since", "restarts", "exit", "exited_at", "exit_reason", "log", "port", "url", "components")
"""What is shown of a process as it is recorded."""
COMPONENTS = ("pipeline", "serve", "archive", "score", "audit", "evaluate", "process.spark", "late")


def report(config: Config, where: Place, log: Log, now: int, load: Callable[[], Plan]) -> dict[str, Any]:
    """Everything `headrace status` tells; `load` gives the plan as it is written now.

    Returns
    -------
    dict
        `state` (ready, starting, degraded, failed, stopping or stopped), the processes by name, each with its last
        exit, after them the project's own services, what differs between the `definitions` that run and those that
        are written, and under `streams`,
        `lake`, `tile_sets`, `alarms`, `skew`, `labels`, `models` and `views` what the components last said, with
        its age in seconds.
    """
    supervisor = state_folder.holder(where)
    stored = state_folder.read_status(where) or {}
    processes = {
        name: _process(found, supervised=supervisor is not None)
        for name, found in (stored.get("processes") or {}).items()
    }
    full = stored.get("full_since") if supervisor else None
    full = None if full is None else micros(full)
    if full is None and not has_room(where.data):
        full = now
    told = _last_status(config, log)
    pipeline, serve, archive, score, audit, evaluation, spark, late = (
        told.get(component, (0, {})) for component in COMPONENTS
    )
    return {
        "project": config.name,
        "env": config.env,
        "state": _state(stored, supervised=supervisor is not None),
        "since": stored.get("since") if supervisor else None,
        "supervisor": None if supervisor is None else supervisor.pid,
        "url": (processes.get("serve") or {}).get("url"),
        "processes": processes | _services(config),
        "definitions": compare_plans(where, processes, load),
        "told_seconds_ago": {name: round((now - at) / SECOND, 1) for name, (at, _) in told.items()},
        "streams": streams(pipeline[1], archive[1]),
        "lake": archive[1].get("streams", {}),
        "tile_sets": pipeline[1].get("tile_sets", {}),
        "alarms": alarms(_disk(where, full), archive[1], pipeline[1], late[1], audit[1], evaluation[1], spark[1]),
        "skew": audit[1].get("skew", {}),
        "labels": evaluation[1].get("labels", {}),
        "models": score[1].get("models", {}),
        "views": {
            name: _aged(view, (now - serve[0]) / MILLISECOND) for name, view in serve[1].get("views", {}).items()
        },
    }


def _last_status(config: Config, log: Log) -> dict[str, tuple[int, Any]]:
    """What the components last said; nothing where the log cannot even be opened, because the disk is full."""
    try:
        return last_status(log, names(config).topic(STATUS), COMPONENTS)
    except DiskFullError:
        return {}


def _disk(where: Place, full: int | None) -> dict[str, Any]:
    """The alarm that the disk is full: nobody else could write it down."""
    return {"alarms": [] if full is None else [full_alarm(str(where.data), free_bytes(where.data), full).as_json()]}


def _aged(view: dict[str, Any], milliseconds: float) -> dict[str, Any]:
    """A view's freshness as it is now: what was told has aged since."""
    told = view.get("freshness_ms")
    return view if told is None else view | {"freshness_ms": round(told + max(0.0, milliseconds), 1)}


def _state(stored: dict[str, Any], *, supervised: bool) -> str:
    if supervised:
        return str(stored.get("state", "starting"))
    return "stopped"


def _process(found: dict[str, Any], *, supervised: bool) -> dict[str, Any]:
    """A process as recorded, corrected by what is: one nobody supervises is `orphaned` or `stopped`."""
    identity = process_identity.read(found)
    lives = identity is not None and process_identity.alive(identity)
    state = found.get("state")
    if not supervised and state != "failed":
        state = "orphaned" if lives else "stopped"
    shown = {name: found.get(name) for name in RECORDED}
    if not lives:
        shown |= {"port": None, "url": None, "components": None}
    return {"state": state, "pid": identity.pid if lives and identity else None} | shown


def _services(config: Config) -> dict[str, Any]:
    """The project's own Kafka broker and Redis, where it has them: no children of the supervisor, so without exits."""
    empty: dict[str, Any] = dict.fromkeys(RECORDED)
    return {
        name: {**empty, "state": found.state, "pid": found.pid, "port": found.port, "log": str(found.log)}
        for name, found in services.standing(config).items()
    }
