"""Alarms become incidents: one for each cause, with an id that a replay gives again.

An alarm joins the incident whose change began near its own. The series that moved furthest, measured in the least
effects that matter, names it; the others explain it. Incidents are plain data. Where they are kept is not said here;
`drift.plot` draws them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from headrace.clock import show_time
from headrace.drift.series_watch import Moved, Point
from headrace.drift.window import MEAN, NEW, NOT_ERRORS, NULLS, PSI, SCORE, parts
from headrace.errors import DataError, shown

OPEN, ACKNOWLEDGED, CLOSED = "open", "acknowledged", "closed"
QUALITY, INPUTS, SCORES, CONCEPT = "data quality", "inputs", "scores", "concept"
UNEXPLAINED = 3.0
"""An error that moved so many times as far as any input has more behind it than the inputs (a rule of thumb)."""
EVIDENCE = 200
"""Windows that an alarm brings as its evidence."""
_UNITS = {MEAN: " standard deviations", PSI: "", NULLS: "", NEW: ""}


class DriftAlarm(msgspec.Struct, frozen=True):
    """A series has moved.

    Parameters
    ----------
    series
        Its name.
    since, at
        When the change began, and at the end of which window it was seen; microseconds.
    effect, before, now
        By how much it moved, and its level before and since, in its own units.
    times_least
        The effect in multiples of the least that matters.
    segments
        The segments that moved furthest, each by how much.
    evidence
        The windows before and since.
    incident
        The id of the incident it is part of.
    """

    series: str
    since: int
    at: int
    effect: float
    before: float
    now: float
    times_least: float
    segments: tuple[tuple[str, float], ...] = ()
    evidence: tuple[Point, ...] = ()
    incident: str = ""

    @property
    def says(self) -> str:
        """All of it in a sentence.

        >>> DriftAlarm("mean of amount", 0, 1, effect=0.5, before=0.1, now=0.6, times_least=2.5).says
        'mean of amount went from 0.1 to 0.6 (+0.5 standard deviations) since 1970-01-01T00:00:00Z'
        """
        unit = _UNITS.get(parts(self.series)[0], "")
        return (
            f"{self.series} went from {self.before:.3g} to {self.now:.3g} ({self.effect:+.3g}{unit}) "
            f"since {show_time(self.since)}"
        )


class IncidentChange(msgspec.Struct, frozen=True):
    """Somebody has changed the state of an incident: to what, who, why, and when (microseconds)."""

    state: str
    who: str
    why: str
    when: int


class Incident(msgspec.Struct, frozen=True):
    """One cause, and all that moved with it.

    Parameters
    ----------
    id
        The same for the same windows, whoever feeds them and how often.
    model, version
        Whose inputs, scores or errors moved.
    since, at
        When the first of its series began to move, and when that was seen; microseconds.
    alarms
        All that moved, in the order in which it was seen.
    error_moved
        Whether the model's error moved too; None as long as labels have not come.
    recovered
        When all of it was back where it belongs; None while it is not.
    changes
        What people have done about it, the newest last.

    Examples
    --------
    >>> nulls = DriftAlarm("null rate of card", 0, 1, effect=0.2, before=0.0, now=0.2, times_least=20.0)
    >>> incident = opened("fraud", 3, nulls)
    >>> incident.kind, incident.moved.series, incident.state
    ('data quality', 'null rate of card', 'open')
    >>> incident.changed(IncidentChange("acknowledged", "kim", "looking at it", 5)).state
    'acknowledged'
    """

    id: str
    model: str
    version: int
    since: int
    at: int
    alarms: tuple[DriftAlarm, ...]
    error_moved: bool | None = None
    recovered: int | None = None
    changes: tuple[IncidentChange, ...] = ()

    @property
    def state(self) -> str:
        """Open, acknowledged or closed."""
        return self.changes[-1].state if self.changes else OPEN

    @property
    def moved(self) -> DriftAlarm:
        """What moved furthest."""
        return min(self.alarms, key=lambda alarm: (-alarm.times_least, alarm.series))

    @property
    def explaining(self) -> tuple[DriftAlarm, ...]:
        """What else moved, furthest first."""
        others = sorted(self.alarms, key=lambda alarm: (-alarm.times_least, alarm.series))
        return tuple(alarm for alarm in others if alarm is not self.moved)

    @property
    def kind(self) -> str:
        """Data quality, inputs, scores or concept."""
        return kind_of(self.alarms)

    @property
    def says(self) -> str:
        """The incident in a few sentences."""
        error = {True: "The model's error moved too.", False: "The model's error did not move.", None: "No labels yet."}
        told = [f"{self.model} version {self.version}, {self.kind}: {self.moved.says}."]
        told += [f"With it moved {', '.join(each.series for each in self.explaining)}."] if self.explaining else []
        told += [] if self.kind == CONCEPT else [error[self.error_moved]]
        told += [f"Recovered at {show_time(self.recovered)}."] if self.recovered is not None else []
        return " ".join(told)

    def with_alarm(self, alarm: DriftAlarm) -> Incident:
        """The incident with one more alarm."""
        since = min(self.since, alarm.since)
        moved = True if is_error(alarm.series) else self.error_moved
        alarms = (*self.alarms, alarm)
        return msgspec.structs.replace(self, alarms=alarms, since=since, error_moved=moved, recovered=None)

    def changed(self, change: IncidentChange) -> Incident:
        """The incident in another state. A closed one stays closed."""
        if change.state not in (ACKNOWLEDGED, CLOSED) or self.state == CLOSED:
            message = f"An incident that is {self.state} cannot become {change.state}."
            raise DataError("bad-argument", message, got=shown(self.id), hint="Acknowledge or close one that is open.")
        return msgspec.structs.replace(self, changes=(*self.changes, change))

    def takes(self, alarm: DriftAlarm) -> bool:
        """Whether an alarm may belong to it: it is not closed, and had not recovered when the change began."""
        return self.state != CLOSED and (self.recovered is None or alarm.since < self.recovered)


def opened(model: str, version: int, alarm: DriftAlarm) -> Incident:
    """An incident that begins with an alarm."""
    told = f"{model}\n{version}\n{alarm.series}\n{alarm.since}"
    name = hashlib.sha256(told.encode()).hexdigest()[:12]
    first = msgspec.structs.replace(alarm, incident=name)
    moved = True if is_error(alarm.series) else None
    return Incident(name, model, version, alarm.since, alarm.at, (first,), error_moved=moved)


def joined(incidents: Iterable[Incident], alarm: DriftAlarm, near: int) -> Incident | None:
    """The incident that an alarm belongs to: the one that began nearest to it, if one began near."""

    def far(incident: Incident) -> int:
        # A change that began while the incident built up is of the same cause: slow ones begin at no clear moment.
        return max(incident.since - alarm.since, alarm.since - incident.at, 0)

    close = [each for each in incidents if each.takes(alarm) and far(each) <= near]
    return min(close, key=lambda each: (abs(each.since - alarm.since), each.id), default=None)


def kind_of(alarms: Sequence[DriftAlarm]) -> str:
    """What kind of cause moves these series.

    Nulls and new categories come first: they also move what is computed from them. The error counts as the concept's
    when no input moved, or when it moved far more than they did.

    >>> error = DriftAlarm("log_loss", 0, 1, effect=0.8, before=0.4, now=1.2, times_least=20.0)
    >>> drift = DriftAlarm("mean of amount", 0, 1, effect=0.3, before=0.0, now=0.3, times_least=1.5)
    >>> kind_of([error, drift]), kind_of([drift])
    ('concept', 'inputs')
    """
    furthest: dict[str, float] = {}
    for alarm in alarms:
        measure, column = parts(alarm.series)
        of = _chain(measure, column)
        furthest[of] = max(furthest.get(of, 0.0), alarm.times_least)
    if QUALITY in furthest:
        return QUALITY
    if INPUTS in furthest:
        return CONCEPT if furthest.get(CONCEPT, 0.0) >= UNEXPLAINED * furthest[INPUTS] else INPUTS
    return CONCEPT if CONCEPT in furthest else SCORES


def _chain(measure: str, column: str | None) -> str:
    if column is None:
        return CONCEPT
    if measure in (NULLS, NEW):
        return QUALITY
    return SCORES if column == SCORE else INPUTS


def is_error(series: str) -> bool:
    """Whether a series says how wrong the model is.

    >>> is_error("brier"), is_error("positive_rate"), is_error("mean of amount")
    (True, False, False)
    """
    measure, column = parts(series)
    return column is None and measure not in NOT_ERRORS


def alarm_of(moved: Moved, at: int, recent: Sequence[Point], segments: Sequence[tuple[str, float]]) -> DriftAlarm:
    """The alarm of a series that moved, with its evidence."""
    return DriftAlarm(
        series=moved.name,
        since=moved.since,
        at=at,
        effect=moved.effect,
        before=moved.before,
        now=moved.now,
        times_least=moved.times_least,
        segments=tuple(segments),
        evidence=tuple(recent[-EVIDENCE:]),
    )
