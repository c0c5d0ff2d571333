"""`headrace evaluate`: how good predictions were, as far as labels have come."""

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
    from headrace.define.label import Label
    from headrace.project import Project


@click.command("evaluate")
@click.argument("label", required=False, metavar="[LABEL]")
@options.project_options
@click.option("--since", metavar="WHEN", help="Windows from here on: a time, or an age such as 30d; all when left out.")
@click.option("--no-look", is_flag=True, help="Tell what is known already; without Spark.")
@click.option("--strays", is_flag=True, help="Count labels that name no prediction, and show some; reads everything.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page as well.")
@options.as_json
def command(
    label: str | None,
    path: Path | None,
    env: str | None,
    since: str | None,
    no_look: bool,
    strays: bool,
    html: Path | None,
    as_json: bool,
) -> None:
    """Say how good predictions were.

    Predictions are joined with the labels that have come since, in Spark, over the lake; what changed since the last
    look is added to what is known. Every prediction is labelled, corrected, defaulted at the horizon, or open.
    """
    from headrace import project
    from headrace.evaluation.cells import Cells
    from headrace.evaluation.report import report

    loaded = project.load(path, env)
    chosen = _chosen_labels(loaded, label)
    if strays and no_look:
        raise UsageError("bad-usage", "--strays reads the lake, and --no-look does not.", hint="Leave one of them out.")
    found = {} if no_look else _update_figures(loaded, chosen, strays=strays)
    begin = None if since is None else options.since_when(since)
    told = [report(each, Cells(loaded.config, each), begin) | found.get(each.name, {}) for each in chosen]
    if html is not None:
        from headrace.evaluation.label_page import page

        html.write_text(page(loaded.config.name, told), encoding="utf-8")
        talk(f"Written to {html}.")
    if as_json:
        data_json(told)
        return
    for each in told:
        show(each)


def _chosen_labels(loaded: Project, name: str | None) -> tuple[Label, ...]:
    if not loaded.labels:
        hint = "Declare one with hr.label(...)."
        raise UsageError("not-found", "The project declares no label.", hint=hint)
    return loaded.labels if name is None else (loaded.plan().label(name),)


def _update_figures(loaded: Project, chosen: tuple[Label, ...], *, strays: bool) -> dict[str, dict[str, Any]]:
    """Bring figures up to what the lake knows; if that is asked for, the labels of each that name no prediction."""
    from headrace.batch import session_of
    from headrace.clock import SystemClock
    from headrace.evaluation import evaluation_pass
    from headrace.topics import open_log

    clock, stray = SystemClock(), {}
    with (
        if_interrupted(lambda: "Figures that were committed stay; the next look brings the rest."),
        session_of(loaded, None, "evaluate") as session,
        open_log(loaded.config) as log,
    ):
        for each in chosen:
            found = evaluation_pass.take_a_look(session, loaded.config, log, each, clock)
            talk(f"{each.name}: {show_count(len(found.restated), 'cell')} changed.")
            if strays:
                count, some = evaluation_pass.strays(session, loaded.config, each)
                stray[each.name] = {"strays": {"count": count, "some": some}}
    return stray


def show(told: dict[str, Any]) -> None:
    """What is known of a label, for eyes."""
    if told["known_until"] is None:
        data(f"{told['label']}: nothing yet")
        talk("Predictions and labels come to the lake through the archive: `headrace up`.")
        return
    data(f"{told['label']} of {told['model']}, as known at {told['known_until']}, horizon {told['horizon']}\n")
    binary = told["kind"] == "binary"
    names = BINARY_COLUMNS if binary else REGRESSION_COLUMNS
    rows = [("version " + str(each["version"]), *_cells(each, names)) for each in told["versions"]]
    rows += [(f"  {each['segment']} {each['value']}", *_cells(each, names)) for each in told["segments"]]
    rows += [(f"  {each['start']}", *_cells(each, names)) for each in told["windows"][-WINDOWS:]]
    table(("", *names.values()), rows)
    if "strays" in told:
        named = ", ".join(told["strays"]["some"])
        labels = show_count(told["strays"]["count"], "label names", "labels name")
        data(f"\n{labels} no prediction{f', as in {named}' if named else ''}")
    for each in told["versions"]:
        _show_states(each)
        if binary:
            _show_estimate(each, told["assumes"])


WINDOWS = 24
BINARY_COLUMNS = {
    "count": "predictions",
    "closed": "closed",
    "positive_rate": "positive",
    "precision": "precision",
    "recall": "recall",
    "auc": "AUC",
    "log_loss": "log loss",
    "brier": "Brier",
}
REGRESSION_COLUMNS = {"count": "predictions", "closed": "closed", "mae": "MAE", "rmse": "RMSE", "bias": "bias"}


def _cells(each: dict[str, Any], names: dict[str, str]) -> list[str]:
    from headrace.evaluation.report import written

    return [written(each[name]) for name in names]


def _show_states(each: dict[str, Any]) -> None:
    told = ", ".join(f"{count:,} {state}" for state, count in each["states"].items())
    data(f"\nversion {each['version']}: {show_count(each['count'], 'prediction')}: {told}")
    delay = each["label_delay_s"]
    if delay["p50"] is not None:
        data(f"labels came after {delay['p50']:,.0f} s in the median, {delay['p99']:,.0f} s at the 99th of a hundred")
    for name, what in (
        ("contradicted", "have labels of one moment that contradict"),
        ("unusable", "are no probability"),
    ):
        if each[name]:
            data(f"{each[name]:,} {what}")


def _show_estimate(each: dict[str, Any], assumes: str) -> None:
    from headrace.evaluation.report import written

    parts = [
        f"{name} {written(value['estimated'])} (realised {written(value['realised'])})"
        for name, value in each["estimate"].items()
        if value["estimated"] is not None
    ]
    data(f"expected of all, if {assumes}:\n  {', '.join(parts)}")
