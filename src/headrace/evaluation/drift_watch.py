"""A model watched for drift: the windows that looks have found, in order, and what people have done in between.

Everything is worked out anew from the windows each time, so that a restart, a replay or another batching gives the same
incidents under the same ids. What people did stands in a topic, each with the window after which they did it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headrace.codec.json.rules import LATEST
from headrace.config.config import Config, names
from headrace.define.label import BINARY, REGRESSION, Label
from headrace.define.model import Model
from headrace.drift.incident import ACKNOWLEDGED, CLOSED, Incident
from headrace.drift.reference import Reference
from headrace.drift.settings import WatchSettings
from headrace.drift.statistics import reference_from
from headrace.drift.watcher import Watching
from headrace.drift.window import SCORE, DriftWindow, in_segment
from headrace.evaluation.cells import Cells, Restated
from headrace.evaluation.metrics import figures
from headrace.evaluation.spreads import SpreadTable, references
from headrace.log.protocol import Log
from headrace.log.range_read import between
from headrace.log.record import Message
from headrace.meaning.sums import Sums, total
from headrace.models.registry import ModelRegistry
from headrace.plan.model import Plan
from headrace.spark.evaluation.outcome_sums import CellKey
from headrace.spark.evaluation.spreads import TENTHS, merged
from headrace.topics import INCIDENTS

ERRORS = {BINARY: ("log_loss", "brier", "positive_rate"), REGRESSION: ("mae", "rmse")}
"""The figures of labelled predictions that are watched."""
KNOWN = 0.9
"""So much of a window must have closed before its error is judged."""


class IncidentAction(NamedTuple):
    """What somebody did about an incident, and after which window."""

    incident: str
    state: str
    who: str
    why: str
    when: int
    after: int


@dataclass(frozen=True)
class WatchedVersion:
    """A version of a model, as it stands.

    Parameters
    ----------
    windows
        All that have closed.
    watching
        What is known of them.
    """

    model: Model
    version: int
    windows: Sequence[DriftWindow]
    watching: Watching

    @property
    def incidents(self) -> list[Incident]:
        """Its incidents, in the order in which they began."""
        return self.watching.incidents


def watched_models(plan: Plan, config: Config) -> tuple[Model, ...]:
    """The models that are watched, as the settings say."""
    scoring = tuple(model for model in plan.models if model.stream is not None)
    labelled = {label.model.name for label in plan.labels}
    chosen = {"all": {model.name for model in scoring}, "labelled": labelled, "none": set[str]()}[config.drift.watch]
    return tuple(model for model in scoring if model.name in chosen)


def has_version(registry: ModelRegistry, model: Model) -> bool:
    """Whether a model that is declared has a version that can be read."""
    return bool(references(registry, model))


def spread_table(plan: Plan, config: Config, model: Model) -> SpreadTable:
    """What a model was given, told apart by the segments that its labels name."""
    named = dict.fromkeys(name for label in _labels_of(plan, model) for name in label.segments)
    return SpreadTable(config, model, tuple(named))


def _labels_of(plan: Plan, model: Model) -> list[Label]:
    return [label for label in plan.labels if label.model.name == model.name]


def find_versions(plan: Plan, config: Config, log: Log, registry: ModelRegistry, model: Model) -> list[WatchedVersion]:
    """Every version of a model that has made predictions."""
    table, cells = spread_table(plan, config, model), {each: Cells(config, each) for each in _labels_of(plan, model)}
    # What labels have not reached is left for later, and so are predictions that they were not joined with yet:
    # otherwise a window would first be judged without its error, or by the error of a part of it.
    seen = [said for each in cells.values() if (said := each.seen()) is not None]
    until = min((each.known_until for each in seen), default=LATEST)
    last = table.last_within([each.predictions for each in seen])
    labels = {label: each.newest() for label, each in cells.items()}
    done = what_was_done(config, log)
    found = []
    for version, known in references(registry, model).items():
        windows = [each for each in table.windows(version, last)[:-1] if each.end <= until]  # the newest is not over
        if windows:
            found.append(_watched(config, model, version, known, labels, windows, done))
    return found


def _watched(
    config: Config,
    model: Model,
    version: int,
    known: Mapping[str, Reference],
    labels: Mapping[Label, Mapping[CellKey, Restated]],
    windows: Sequence[DriftWindow],
    done: Sequence[IncidentAction],
) -> WatchedVersion:
    settings = settings_of(config, list(labels))
    count = settings.reference if isinstance(settings.reference, int) else len(windows)
    scores = merged(window.columns[SCORE] for window in windows[:count] if SCORE in window.columns)
    watching = Watching(model.name, version, {**known, SCORE: reference_from(scores, TENTHS)}, settings)
    errors = _errors(config, labels, version, windows)
    told = [DriftWindow(each.start, each.end, each.columns, errors.get(each.start, {})) for each in windows]
    waiting = sorted(done, key=lambda each: (each.after, each.when))
    for window in told:
        watching.feed([window])
        waiting = _apply(watching, waiting, window.end)
    return WatchedVersion(model, version, told, watching)


def _apply(watching: Watching, waiting: list[IncidentAction], upto: int) -> list[IncidentAction]:
    """What people did after windows that have been fed by now; the rest waits."""
    known = {incident.id for incident in watching.incidents}
    for each in [each for each in waiting if each.after <= upto and each.incident in known]:
        change = watching.acknowledge if each.state == ACKNOWLEDGED else watching.close
        change(each.incident, who=each.who, why=each.why, when=each.when)
        waiting.remove(each)
    return waiting


def settings_of(config: Config, labels: Sequence[Label]) -> WatchSettings:
    """How a project's models are watched."""
    held = config.drift
    after = min((min(held.labels_after, label.horizon) for label in labels), default=0)
    return WatchSettings(
        length=held.window,
        reference=max(1, held.reference // held.window),
        false_alarms_per_month=held.false_alarms_per_month,
        error_share=0.5 if labels else 0.0,
        detector=held.detector,
        zone=held.zone,
        holidays=held.holidays,
        labels_after=after,
        kept=held.keep,
    )


def _errors(
    config: Config, labels: Mapping[Label, Mapping[CellKey, Restated]], version: int, windows: Sequence[DriftWindow]
) -> dict[int, dict[str, tuple[float, float]]]:
    """By the start of each window, what labels say of the model's error, once most of it is known."""
    found: dict[int, dict[str, tuple[float, float]]] = {}
    for label, cells in labels.items():
        parts: dict[tuple[int, str, str], list[Sums]] = {}
        for cell, each in cells.items():
            if cell.version == version:
                start = cell.window - cell.window % config.drift.window
                parts.setdefault((start, cell.segment, cell.value), []).append(each.sums)
        starts = {window.start for window in windows}
        for (start, segment, value), sums in parts.items():
            if start not in starts:
                continue
            told = figures(total(sums), label.kind)
            if (told["closed"] or 0.0) >= KNOWN:
                named = {in_segment(name, segment, value): each for name, each in _named(label, told).items()}
                found.setdefault(start, {}).update(named)
    return found


def _named(label: Label, told: Mapping[str, object]) -> dict[str, tuple[float, float]]:
    values = {name: told[name] for name in ERRORS[label.kind]}
    return {
        name: (float(value), float(str(told["count"]))) for name, value in values.items() if isinstance(value, float)
    }


def under_way(incident: Incident) -> bool:
    """Whether nobody has closed it, and it is not over by itself."""
    return incident.state != CLOSED and incident.recovered is None


def what_was_done(config: Config, log: Log) -> list[IncidentAction]:
    """What people have done about incidents, in order."""
    topic = names(config).topic(INCIDENTS)
    if topic not in log.topics():
        return []
    records = between(log, topic, {}, log.end_offsets(topic))
    return [IncidentAction(**json.loads(record.value)) for record in records if record.value]


def do(config: Config, log: Log, done: IncidentAction) -> None:
    """Note what somebody does about an incident."""
    told = json.dumps(done._asdict()).encode()
    log.append_batch(names(config).topic(INCIDENTS), [Message(told, done.incident.encode())])
