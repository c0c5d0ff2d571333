"""Incidents with their evidence as a page that needs nothing beside itself."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from headrace.clock import show_time
from headrace.drift.incident import Incident
from headrace.drift.plot import plot
from headrace.evaluation.drift_watch import WatchedVersion
from headrace.evaluation.label_page import STYLE
from headrace.plural import show_count

DRAWN = 20
"""Incidents of a version, the newest, that are shown with pictures."""


def page(project: str, found: Sequence[WatchedVersion]) -> str:
    """A page of what `headrace drift` tells."""
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{escape(project)}: drift</title>
<style>{STYLE}</style>
<h1>{escape(project)}: what has moved</h1>
{"".join(map(_version, found))}
</html>
"""


def _version(each: WatchedVersion) -> str:
    upto = show_time(each.windows[-1].end)
    watched = [name for name, made in each.watching.calibrations.items() if made.reason is None]
    incidents = _older(each.incidents[:-DRAWN]) + "".join(map(_incident, each.incidents[-DRAWN:]))
    incidents = incidents or "<p>Nothing has moved.</p>"
    return (
        f"<h2>{escape(each.model.name)} version {each.version}</h2>"
        f"<p>{show_count(len(each.windows), 'window')} to {escape(upto)}; "
        f"{show_count(len(watched), 'series is', 'series are')} watched.</p>{incidents}"
    )


def _older(incidents: Sequence[Incident]) -> str:
    """Incidents without their pictures: a page of many would be too long to open."""
    lines = [f"<li>{escape(each.id)}, {escape(each.state)}: {escape(each.says)}</li>" for each in incidents]
    return (
        f"<details><summary>{show_count(len(lines), 'older one')}</summary><ul>{''.join(lines)}</ul></details>"
        if lines
        else ""
    )


def _incident(incident: Incident) -> str:
    pictures = "".join(f"<figure>{plot(incident, alarm.series)}</figure>" for alarm in incident.alarms)
    return (
        f"<section><h3>{escape(incident.id)}: {escape(incident.kind)}, {escape(incident.state)}</h3>"
        f"<p>{escape(incident.says)}</p>{pictures}</section>"
    )
