"""The incidents of a model, and which of their series are still away."""

from __future__ import annotations

import msgspec

from headrace.drift.incident import CLOSED, DriftAlarm, Incident, IncidentChange, joined, opened
from headrace.drift.settings import WatchSettings
from headrace.errors import DataError, shown


class Ledger(msgspec.Struct):
    """Incidents by id, in the order in which they were opened.

    Parameters
    ----------
    model, version
        Whose they are.
    incidents
        Those under way, and those that were over not too long ago (`WatchSettings.kept`).
    away
        Of each incident that is under way, the series that have not come back.

    Examples
    --------
    >>> ledger = Ledger("fraud", 3)
    >>> mean = DriftAlarm("mean of amount", 0, 10, effect=0.5, before=0.0, now=0.5, times_least=2.5)
    >>> error = DriftAlarm("log_loss", 2, 20, effect=0.1, before=0.4, now=0.5, times_least=2.5)
    >>> ledger.add(mean, near=5).incident == ledger.add(error, near=5).incident
    True
    >>> [incident.error_moved for incident in ledger.incidents.values()]
    [True]
    """

    model: str
    version: int
    incidents: dict[str, Incident] = {}
    away: dict[str, list[str]] = {}

    def add(self, alarm: DriftAlarm, near: int) -> DriftAlarm:
        """Put an alarm into its incident, a new one if it has none."""
        found = joined(self.incidents.values(), alarm, near)
        if found is None:
            made = opened(self.model, self.version, alarm)
        else:
            made = found.with_alarm(msgspec.structs.replace(alarm, incident=found.id))
        self.incidents[made.id] = made
        self.away.setdefault(made.id, []).append(alarm.series)
        return made.alarms[-1]

    def returned(self, incident: str, series: str, at: int) -> None:
        """A series is back; with the last one, the incident has recovered."""
        away = [each for each in self.away.get(incident, ()) if each != series]
        self.away[incident] = away
        if not away:
            del self.away[incident]
            self.incidents[incident] = msgspec.structs.replace(self.incidents[incident], recovered=at)

    def labels_through(self, moment: int, settings: WatchSettings) -> None:
        """The errors of all windows up to a moment are known: where none moved, say so."""
        for name, incident in self.incidents.items():
            enough = max(incident.at, incident.since + settings.back_after * settings.length)
            if incident.error_moved is None and moment >= enough:
                self.incidents[name] = msgspec.structs.replace(incident, error_moved=False)

    def change(self, incident: str, change: IncidentChange) -> Incident:
        """Acknowledge or close."""
        if incident not in self.incidents:
            raise DataError("not-found", "There is no incident of that id.", got=shown(incident))
        changed = self.incidents[incident] = self.incidents[incident].changed(change)
        if changed.state == CLOSED:
            self.away.pop(incident, None)
        return changed

    def forget(self, before: int) -> None:
        """Let go of incidents that were over before a moment."""
        for name in [name for name, each in self.incidents.items() if name not in self.away and _ended(each) < before]:
            del self.incidents[name]


def _ended(incident: Incident) -> int:
    """When an incident that is not under way was over: by itself, or because somebody closed it after it was seen."""
    closed = max([incident.at, *(change.when for change in incident.changes)])
    return closed if incident.recovered is None else incident.recovered
