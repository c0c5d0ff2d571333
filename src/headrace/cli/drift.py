"""`headrace drift`: what has moved of what models are given, of what they answer, and of how wrong they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.interrupt import if_interrupted
from headrace.cli.output import data, data_json, table, talk
from headrace.errors import UsageError
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.define.model import Model
    from headrace.evaluation.drift_watch import WatchedVersion
    from headrace.models.registry import ModelRegistry
    from headrace.project import Project


NEWEST = 20
"""Incidents of a version that are shown; all are in JSON."""


@click.command("drift")
@click.argument("model", required=False, metavar="[MODEL]")
@options.project_options
@click.option("--no-look", is_flag=True, help="Tell what is known already; without Spark.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with pictures as well.")
@options.as_json
def command(
    model: str | None, path: Path | None, env: str | None, no_look: bool, html: Path | None, as_json: bool
) -> int:
    """Say what has moved of what models are given and answer.

    Predictions that have come to the lake since the last look are counted by window, in Spark. Each series is held
    against its own rhythm; a change that noise does not make more often than `drift.false_alarms_per_month` is an
    incident. The exit code is 1 when an incident is open.
    """
    from headrace import project
    from headrace.evaluation.drift_watch import watched_models

    loaded = project.load(path, env)
    plan = loaded.plan()
    chosen = watched_models(plan, loaded.config) if model is None else (plan.model(model),)
    if not chosen:
        hint = 'Declare a label of one with hr.label(...), or set drift.watch = "all".'
        raise UsageError("not-found", "No model is watched for drift.", hint=hint)
    if not no_look:
        _run_pass(loaded, chosen)
    found = watched(loaded, chosen)
    if html is not None:
        from headrace.evaluation.drift_page import page

        html.write_text(page(loaded.config.name, found), encoding="utf-8")
        talk(f"Written to {html}.")
    if as_json:
        data_json([version_json(each) for each in found])
    else:
        show(found)
    return 1 if any(incident.state == "open" for each in found for incident in each.incidents) else 0


def watched(loaded: Project, models: tuple[Model, ...]) -> list[WatchedVersion]:
    """Every version of some models, as it stands; a model without a version is left out with a word on stderr."""
    from headrace.evaluation.drift_watch import find_versions, has_version
    from headrace.topics import open_log

    plan, registry = loaded.plan(), _registry(loaded)
    for model in models:
        if not has_version(registry, model):
            talk(f"Model {model.name!r} has no version yet, and is left out: see `headrace model add`.")
    with open_log(loaded.config) as log:
        return [each for model in models for each in find_versions(plan, loaded.config, log, registry, model)]


def _registry(loaded: Project) -> ModelRegistry:
    from headrace.clock import SystemClock
    from headrace.config.config import models_folder
    from headrace.models.registry import ModelRegistry

    return ModelRegistry(models_folder(loaded.config), SystemClock())


def _run_pass(loaded: Project, chosen: tuple[Model, ...]) -> None:
    from headrace.batch import session_of
    from headrace.clock import SystemClock
    from headrace.evaluation.drift_watch import spread_table
    from headrace.evaluation.evaluation_pass import take_a_look
    from headrace.topics import open_log

    registry, wanted = _registry(loaded), {model.name for model in chosen}
    with (
        if_interrupted(lambda: "Windows that were committed stay; the next look brings the rest."),
        session_of(loaded, None, "evaluate") as session,
        open_log(loaded.config) as log,
    ):
        for model in chosen:
            count = spread_table(loaded.plan(), loaded.config, model).look(session, registry)
            talk(f"{model.name}: {show_count(count, 'window has', 'windows have')} something new.")
        for label in loaded.labels:
            if label.model.name in wanted:
                take_a_look(session, loaded.config, log, label, SystemClock())


def _show_incidents(incidents: list[dict[str, Any]]) -> None:
    """The newest incidents of a version, and how to see the others."""
    newest = incidents[-NEWEST:]
    rows = [(one["id"], one["state"], one["kind"], one["since"], one["moved"]["series"]) for one in newest]
    table(("incident", "state", "kind", "since", "what moved"), rows)
    for one in newest:
        data(f"\n{one['id']}: {one['says']}")
    if len(incidents) > NEWEST:
        older = show_count(len(incidents) - NEWEST, "older one is", "older ones are")
        talk(f"\n{older} not shown: `headrace incidents list --all` lists them, and --json has them.")


def version_json(each: WatchedVersion) -> dict[str, Any]:
    """A version as JSON has it."""
    from headrace.clock import show_time
    from headrace.evaluation.alerts import as_json

    return {
        "model": each.model.name,
        "version": each.version,
        "windows": len(each.windows),
        "from": show_time(each.windows[0].start),
        "to": show_time(each.windows[-1].end),
        "series": {
            name: {
                "watched": calibration.reason is None,
                "reason": calibration.reason,
                "usual": calibration.level,
                "least_effect": calibration.least,
                "false_alarms_per_month": calibration.expected,
            }
            for name, calibration in each.watching.calibrations.items()
        },
        "incidents": [as_json(incident) for incident in each.incidents],
    }


def show(found: list[WatchedVersion]) -> None:
    """What has moved, for eyes."""
    if not found:
        talk("No version has made predictions that are in the lake.")
    for each in found:
        said = version_json(each)
        data(f"{said['model']} version {said['version']}: {show_count(said['windows'], 'window')} to {said['to']}")
        watched = [name for name, series in said["series"].items() if series["watched"]]
        left = {series["reason"] for series in said["series"].values() if not series["watched"]}
        expected = sum(said["series"][name]["false_alarms_per_month"] or 0.0 for name in watched)
        if not said["series"]:
            talk("The reference period is not over: see drift.reference.")
        else:
            series = show_count(len(watched), "series is", "series are")
            data(f"{series} watched, {expected:.2f} false alarms a month are expected of all of them")
        for reason in sorted(filter(None, left)):
            names = [name for name, series in said["series"].items() if series["reason"] == reason]
            talk(f"not watched, {reason}: {', '.join(sorted(names))}")
        if said["incidents"]:
            _show_incidents(said["incidents"])
        elif watched:
            data("nothing has moved")
