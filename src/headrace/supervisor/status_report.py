"""How a project is doing, from the status file and from what its components published.

Nothing in the file is believed that the machine does not confirm: a process is shown as running when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from headrace.alarms.alarm import AlarmStatus, StreamAlarm, full_alarm
from headrace.clock import MILLISECOND, SECOND, micros
from headrace.config.config import Config, names
from headrace.disk import free_bytes, has_room
from headrace.errors import DiskFullError
from headrace.log.protocol import Log
from headrace.plan.model import Plan
from headrace.processes import process_identity, state_folder
from headrace.processes.state_folder import StateFolder
from headrace.status.records import (
    ArchiveStatus,
    AuditStatus,
    ComponentStatus,
    EvaluationStatus,
    LateStatus,
    ModelScoring,
    PipelineStatus,
    ProcessStatus,
    ScoringStatus,
    ServeStatus,
)
from headrace.status.serving import ViewStatus
from headrace.status.streams import PublishedStatus, merge_alarms, merge_status
from headrace.status.topic import StatusRecords, read_status
from headrace.supervisor import services
from headrace.supervisor.plan_record import compare_plans
from headrace.topics import STATUS

KINDS = (
    PipelineStatus,
    ServeStatus,
    ArchiveStatus,
    ScoringStatus,
    AuditStatus,
    EvaluationStatus,
    ProcessStatus,
    LateStatus,
)


class ProcessReport(Struct, kw_only=True):
    """A process of the project, or one of its own services; how it last exited, whether or not it runs again."""

    state: str | None = None
    pid: int | None = None
    since: str | None = None
    restarts: int | None = None
    exit: int | None = None
    exited_at: str | None = None
    exit_reason: str | None = None
    log: str | None = None
    port: int | None = None
    url: str | None = None
    components: dict[str, ComponentStatus] | None = None


class ProjectReport(PublishedStatus, kw_only=True):
    """Everything that `headrace status` shows.

    Attributes
    ----------
    state
        "ready", "starting", "degraded", "failed", "stopping" or "stopped".
    supervisor
        The pid of the supervisor, if one runs.
    told_seconds_ago
        The age of the last record of each component, in seconds.
    """

    project: str = ""
    env: str | None = None
    state: str = "stopped"
    since: str | None = None
    supervisor: int | None = None
    url: str | None = None
    processes: dict[str, ProcessReport] = field(default_factory=dict)
    told_seconds_ago: dict[str, float] = field(default_factory=dict)
    alarms: list[AlarmStatus] = field(default_factory=list)
    models: dict[str, ModelScoring] = field(default_factory=dict)
    views: dict[str, ViewStatus] = field(default_factory=dict)


def report(config: Config, where: StateFolder, log: Log, now: int, load: Callable[[], Plan]) -> ProjectReport:
    """Report how a project is doing; `load` gives the plan as it is written now."""
    supervisor = state_folder.holder(where)
    stored = state_folder.read_status(where) or {}
    processes = {
        name: _process(found, supervised=supervisor is not None)
        for name, found in (stored.get("processes") or {}).items()
    }
    records = _last_status(config, log)
    scoring, serve = records.get(ScoringStatus) or ScoringStatus(), records.get(ServeStatus) or ServeStatus()
    age = (now - records.arrived_at(ServeStatus)) / MILLISECOND
    disk = _disk(where, stored.get("full_since") if supervisor else None, now)
    published = merge_status(records, records)
    published.definitions = compare_plans(where, {name: each.pid for name, each in processes.items()}, load)
    return ProjectReport(
        project=config.name,
        env=config.env,
        state=str(stored.get("state", "starting")) if supervisor else "stopped",
        since=stored.get("since") if supervisor else None,
        supervisor=None if supervisor is None else supervisor.pid,
        url=processes["serve"].url if "serve" in processes else None,
        processes=processes | _services(config),
        told_seconds_ago={key: round((now - at) / SECOND, 1) for key, at in records.arrivals.items()},
        alarms=merge_alarms(records, records, disk),
        models=scoring.models,
        views={name: _aged(view, age) for name, view in serve.views.items()},
        **asdict(published),
    )


def _last_status(config: Config, log: Log) -> StatusRecords:
    """What the components last published; nothing where the log cannot even be opened, because the disk is full."""
    try:
        return read_status(log, names(config).topic(STATUS), *KINDS)
    except DiskFullError:
        return StatusRecords()


def _disk(where: StateFolder, full_since: str | None, now: int) -> StreamAlarm | None:
    """The alarm that the disk is full: nobody else could write it down."""
    if full_since is None and has_room(where.data):
        return None
    return full_alarm(str(where.data), free_bytes(where.data), now if full_since is None else micros(full_since))


def _aged(view: ViewStatus, milliseconds: float) -> ViewStatus:
    """A view's freshness as it is now: what was published has aged since."""
    if view.freshness_ms is None:
        return view
    return replace(view, freshness_ms=round(view.freshness_ms + max(0.0, milliseconds), 1))


def _process(found: Mapping[str, Any], *, supervised: bool) -> ProcessReport:
    """A process as recorded, corrected by what is: one nobody supervises is `orphaned` or `stopped`."""
    identity = process_identity.read(found)
    lives = identity is not None and process_identity.alive(identity)
    state = found.get("state")
    if not supervised and state != "failed":
        state = "orphaned" if lives else "stopped"
    report = msgspec.convert({**found, "state": state, "pid": None}, ProcessReport)
    if not lives or identity is None:
        return replace(report, port=None, url=None, components=None)
    return replace(report, pid=identity.pid)


def _services(config: Config) -> dict[str, ProcessReport]:
    """The project's own Kafka broker and Redis, where it has them: no children of the supervisor, so without exits."""
    return {
        name: ProcessReport(state=found.state, pid=found.pid, port=found.port, log=str(found.log))
        for name, found in services.find_running(config).items()
    }
