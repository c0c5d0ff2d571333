"""How a project is doing, from the status file and from what its components published.

Nothing in the file is believed that the machine does not confirm: a process is shown as running when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from headrace.alarms.alarm import AlarmStatus, full_alarm
from headrace.clock import MILLISECOND, SECOND, micros
from headrace.config.config import Config, names
from headrace.disk import free_bytes, has_room
from headrace.errors import DiskFullError
from headrace.log.protocol import Log
from headrace.plan.model import Plan
from headrace.processes import process_identity, state_folder
from headrace.processes.state_folder import Place
from headrace.status.records import (
    ArchiveProgress,
    ArchiveStatus,
    AuditStatus,
    ComponentStatus,
    DefinitionStatus,
    EvaluationStatus,
    LabelStatus,
    LateStatus,
    ModelScoring,
    PipelineStatus,
    ProcessStatus,
    ScoringStatus,
    ServeStatus,
    SkewStatus,
    TileSetStatus,
)
from headrace.status.serving import ViewStatus
from headrace.status.streams import StreamStatus, collect_alarms, merge_streams
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


class ProjectReport(Struct, kw_only=True):
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
    processes: dict[str, ProcessReport] = {}
    definitions: DefinitionStatus = field(default_factory=DefinitionStatus)
    told_seconds_ago: dict[str, float] = {}
    streams: dict[str, StreamStatus] = {}
    lake: dict[str, ArchiveProgress] = {}
    tile_sets: dict[str, TileSetStatus] = {}
    alarms: list[AlarmStatus] = []
    skew: SkewStatus = field(default_factory=SkewStatus)
    labels: dict[str, LabelStatus] = {}
    models: dict[str, ModelScoring] = {}
    views: dict[str, ViewStatus] = {}


def report(config: Config, where: Place, log: Log, now: int, load: Callable[[], Plan]) -> ProjectReport:
    """Report how a project is doing; `load` gives the plan as it is written now."""
    supervisor = state_folder.holder(where)
    stored = state_folder.read_status(where) or {}
    processes = {
        name: _process(found, supervised=supervisor is not None)
        for name, found in (stored.get("processes") or {}).items()
    }
    found = ProjectReport(
        project=config.name,
        env=config.env,
        url=processes["serve"].url if "serve" in processes else None,
        processes=processes | _services(config),
        definitions=compare_plans(where, {name: each.pid for name, each in processes.items()}, load),
        alarms=_disk(where, stored.get("full_since") if supervisor else None, now),
    )
    if supervisor is not None:
        found.state, found.since = str(stored.get("state", "starting")), stored.get("since")
        found.supervisor = supervisor.pid
    _add_published(found, _last_status(config, log), now)
    return found


def _add_published(found: ProjectReport, records: StatusRecords, now: int) -> None:
    """Add what the components published to a report."""
    pipeline, archive = records.get(PipelineStatus), records.get(ArchiveStatus)
    audit, evaluation = records.get(AuditStatus), records.get(EvaluationStatus)
    scoring, serve = records.get(ScoringStatus), records.get(ServeStatus)
    found.told_seconds_ago = {key: round((now - at) / SECOND, 1) for key, at in records.arrivals.items()}
    found.streams = merge_streams(pipeline, archive)
    spark, late = records.get(ProcessStatus), records.get(LateStatus)
    found.alarms += collect_alarms(archive, pipeline, late, audit, evaluation, spark)
    if archive is not None:
        found.lake = archive.streams
    if pipeline is not None:
        found.tile_sets = pipeline.tile_sets
    if audit is not None:
        found.skew = audit.skew
    if evaluation is not None:
        found.labels = evaluation.labels
    if scoring is not None:
        found.models = scoring.models
    if serve is not None:
        age = (now - records.arrived_at(ServeStatus)) / MILLISECOND
        found.views = {name: _aged(view, age) for name, view in serve.views.items()}


def _last_status(config: Config, log: Log) -> StatusRecords:
    """What the components last published; nothing where the log cannot even be opened, because the disk is full."""
    try:
        return read_status(log, names(config).topic(STATUS), *KINDS)
    except DiskFullError:
        return StatusRecords({})


def _disk(where: Place, full_since: str | None, now: int) -> list[AlarmStatus]:
    """The alarm that the disk is full: nobody else could write it down."""
    if full_since is None and has_room(where.data):
        return []
    since = now if full_since is None else micros(full_since)
    return [full_alarm(str(where.data), free_bytes(where.data), since).status()]


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
        for name, found in services.standing(config).items()
    }
