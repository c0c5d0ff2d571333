"""Incidents become alerts: one record in the topic `alerts` when one opens, recovers or is closed, and none twice.

A record's key is the incident with what became of it. What is there already is not told again, so that whoever works
incidents out anew, after a restart or over a replay, tells nobody twice. `evaluation.webhook` carries alerts further.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from headrace.clock import show_time
from headrace.config.config import Config, names
from headrace.drift.incident import CLOSED, DriftAlarm, Incident
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.log.protocol import Log
from headrace.log.range_read import between
from headrace.log.record import Message, Record
from headrace.topics import ALERTS


def publish_alerts(config: Config, log: Log, incidents: Iterable[Incident], faults: FaultPoints = NO_FAULTS) -> int:
    """Write what is new of incidents; how many alerts that were."""
    there = {record.key for record in _records(config, log)}
    new = [
        Message(json.dumps(alert(incident, what), separators=(",", ":")).encode(), key)
        for incident in incidents
        for what in _alert_content(incident)
        if (key := f"{incident.id}/{what}".encode()) not in there
    ]
    if new:
        faults.reach("alerts.append.before")
        log.append_batch(names(config).topic(ALERTS), new)
        faults.reach("alerts.append.after")
    return len(new)


def read_alerts(config: Config, log: Log) -> list[dict[str, Any]]:
    """All alerts that were written, in order."""
    return [json.loads(record.value) for record in _records(config, log) if record.value]


def _records(config: Config, log: Log) -> Iterator[Record]:
    topic = names(config).topic(ALERTS)
    return between(log, topic, {}, log.end_offsets(topic))


def _alert_content(incident: Incident) -> list[str]:
    """What there is to tell of an incident."""
    found = ["opened"]
    found += ["recovered"] if incident.recovered is not None else []
    return found + (["closed"] if incident.state == CLOSED else [])


def alert(incident: Incident, what: str) -> dict[str, Any]:
    """An alert as JSON has it."""
    return {"what": what} | as_json(incident)


def as_json(incident: Incident) -> dict[str, Any]:
    """All that is known of an incident, but for the pictures."""
    return {
        "id": incident.id,
        "model": incident.model,
        "version": incident.version,
        "kind": incident.kind,
        "state": incident.state,
        "since": show_time(incident.since),
        "seen_at": show_time(incident.at),
        "recovered": None if incident.recovered is None else show_time(incident.recovered),
        "error_moved": incident.error_moved,
        "says": incident.says,
        "moved": _moved(incident.moved),
        "explaining": [_moved(each) for each in incident.explaining],
        "changes": [
            {"state": each.state, "who": each.who, "why": each.why, "when": show_time(each.when)}
            for each in incident.changes
        ],
    }


def _moved(alarm: DriftAlarm) -> dict[str, Any]:
    return {
        "series": alarm.series,
        "since": show_time(alarm.since),
        "before": alarm.before,
        "now": alarm.now,
        "effect": alarm.effect,
        "segments": dict(alarm.segments),
        "says": alarm.says,
    }
