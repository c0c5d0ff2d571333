"""`headrace incidents`: what has moved and who looks at it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import options
from headrace.cli.output import data, data_json, table, talk
from headrace.errors import UsageError, did_you_mean, shown
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.drift.incident import Incident
    from headrace.evaluation.drift_watch import WatchedVersion
    from headrace.project import Project

PAGE = 20
"""Incidents of one page."""
WHY = click.option("--why", required=True, metavar="TEXT", help="Kept with the incident.")
WHO = click.option("--who", metavar="NAME", help="Who does it; otherwise the user of this machine.")


@click.group("incidents")
def command() -> None:
    """List, show, acknowledge and close incidents.

    An incident is one cause: all series that moved with it are in it. It says what moved, since when and by how much.
    """


@command.command("list")
@options.project_options
@click.option("--all", "everything", is_flag=True, help="Those that are closed or over as well.")
@click.option("--limit", type=click.IntRange(min=1), default=PAGE, show_default=True, help="How many a page shows.")
@click.option("--after", metavar="INCIDENT", help="The page that follows this incident.")
@options.as_json
def listed(path: Path | None, env: str | None, everything: bool, limit: int, after: str | None, as_json: bool) -> None:
    """List incidents, the newest first, a page at a time; --json prints all of them, or what follows --after.

    An incident that is over is kept for as long as the setting drift.keep says.
    """
    from headrace.evaluation.alerts import as_json as told
    from headrace.evaluation.drift_watch import under_way

    every = sorted(
        (one for each in _find_incidents(path, env)[1] for one in each.incidents), key=lambda one: (-one.at, one.id)
    )
    chosen = [one for one in _following(every, after) if everything or under_way(one)]
    if as_json:
        data_json([told(one) for one in chosen])
        return
    rows = [
        (one.id, one.state, one.kind, f"{one.model} {one.version}", told(one)["since"], one.moved.series)
        for one in chosen[:limit]
    ]
    if rows:
        table(("incident", "state", "kind", "model", "since", "what moved"), rows)
    elif after is not None:
        talk("There is none after it.")
    else:
        talk("There is none." if everything else "None is open; --all lists those that are over.")
    if len(chosen) > limit:
        more = f"{' --all' if everything else ''}{'' if limit == PAGE else f' --limit {limit}'}"
        older = show_count(len(chosen) - limit, "older one")
        talk(f"{older}: `headrace incidents list{more} --after {chosen[limit - 1].id}`.")


def _following(every: list[Incident], after: str | None) -> list[Incident]:
    """The incidents behind one of them; all when none is named."""
    names = [one.id for one in every]
    if after is None:
        return every
    if after not in names:
        raise _unknown(after, names)
    return every[names.index(after) + 1 :]


@command.command("show")
@click.argument("incident")
@options.project_options
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Write the evidence as a picture.")
@options.as_json
def show(incident: str, path: Path | None, env: str | None, svg: Path | None, as_json: bool) -> None:
    """Show all that is known of an incident."""
    from headrace.drift.plot import plot
    from headrace.evaluation.alerts import as_json as told

    one, _ = _find_incident(_find_incidents(path, env)[1], incident)
    if svg is not None:
        svg.write_text(plot(one), encoding="utf-8")
        talk(f"Written to {svg}.")
    if as_json:
        data_json(told(one))
        return
    data(one.says)
    rows = [(each.series, f"{each.before:.4g}", f"{each.now:.4g}", f"{each.effect:+.4g}") for each in one.alarms]
    table(("series", "before", "now", "effect"), rows)
    for each in one.alarms:
        for name, effect in each.segments:
            data(f"{each.series}: {name} moved by {effect:+.4g}")
    for change in told(one)["changes"]:
        data(f"{change['state']} by {change['who']} at {change['when']}: {change['why']}")


@command.command("acknowledge")
@click.argument("incident")
@options.project_options
@WHY
@WHO
def acknowledge(incident: str, path: Path | None, env: str | None, why: str, who: str | None) -> None:
    """Say that somebody looks at an incident."""
    from headrace.drift.incident import ACKNOWLEDGED

    _do(incident, path, env, ACKNOWLEDGED, why, who)


@command.command("close")
@click.argument("incident")
@options.project_options
@WHY
@WHO
def close(incident: str, path: Path | None, env: str | None, why: str, who: str | None) -> None:
    """Say that an incident is over; what moved is watched from its new level on."""
    from headrace.drift.incident import CLOSED

    _do(incident, path, env, CLOSED, why, who)


def _find_incidents(path: Path | None, env: str | None) -> tuple[Project, list[WatchedVersion]]:
    from headrace import project
    from headrace.cli.drift import watched
    from headrace.evaluation.drift_watch import watched_models

    loaded = project.load(path, env)
    return loaded, watched(loaded, watched_models(loaded.plan(), loaded.config))


def _find_incident(found: list[WatchedVersion], name: str) -> tuple[Incident, WatchedVersion]:
    known = {one.id: (one, each) for each in found for one in each.incidents}
    if name in known:
        return known[name]
    raise _unknown(name, known)


def _unknown(name: str, known: Iterable[str]) -> UsageError:
    return UsageError("not-found", "There is no incident of that id.", got=shown(name), hint=did_you_mean(name, known))


def _do(name: str, path: Path | None, env: str | None, state: str, why: str, who: str | None) -> None:
    import getpass

    from headrace.clock import SystemClock
    from headrace.config.config import names
    from headrace.drift.incident import IncidentChange
    from headrace.evaluation.drift_watch import IncidentAction, do
    from headrace.topics import create, open_log, topics

    loaded, found = _find_incidents(path, env)
    one, each = _find_incident(found, name)
    done = IncidentAction(name, state, who or getpass.getuser(), why, SystemClock().now(), each.windows[-1].end)
    one.changed(IncidentChange(state, done.who, why, done.when))  # refuses what cannot be
    with open_log(loaded.config) as log:
        create(log, topics(loaded.plan(), names(loaded.config), loaded.config.log.partitions))
        do(loaded.config, log, done)
    talk(f"{name} is {state}.")
