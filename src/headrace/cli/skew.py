"""`headrace skew`: what was served beside what was known then, feature by feature, and why they differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.output import data, data_json, line, table, talk
from headrace.errors import UsageError, did_you_mean, shown
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.plan.model import Plan
    from headrace.project import Project
    from headrace.skew.audit import Audit


@click.command("skew")
@options.project_options
@click.option("--since", default="1h", show_default=True, metavar="WHEN", help="A time, or an age such as 2h.")
@click.option("--features", "views", multiple=True, metavar="VIEW", help="This view alone; may be given again.")
@click.option(
    "--training-set",
    "trained",
    type=click.Path(exists=True, path_type=Path),
    metavar="DIR",
    help="Compare how old values are with the rows of this set.",
)
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page as well.")
@options.as_json
def command(
    path: Path | None,
    env: str | None,
    since: str,
    views: tuple[str, ...],
    trained: Path | None,
    html: Path | None,
    as_json: bool,
) -> int:
    """Compare what was served with what was known then.

    Samples of reads (`serve.sample`) and all predictions are computed anew from the lake, as it was known at their
    moment. A difference is freshness (the value is what the log held a little earlier), late lane (a late event was on
    its way), version (the features were defined otherwise), or a defect. The exit code is 1 when there is a defect.
    """
    from headrace import project
    from headrace.clock import SystemClock
    from headrace.skew.audit import audit
    from headrace.topics import open_log

    loaded = project.load(path, env)
    plan = loaded.plan()
    begin, end = options.since_when(since), SystemClock().now()
    with open_log(loaded.config) as log:
        found = audit(plan, loaded.config, log, begin, end, views=_views(plan, views))
    told = found.as_json()
    if trained is not None:
        told["trained"] = _compare_freshness(loaded, found, trained)
    if html is not None:
        from headrace.skew.page import page

        html.write_text(page(loaded.config.name, told), encoding="utf-8")
        talk(f"Written to {html}.")
    if as_json:
        data_json(told)
    else:
        show(told)
    return 1 if told["causes"]["defect"] else 0


def _compare_freshness(loaded: Project, found: Audit, folder: Path) -> dict[str, Any]:
    """How old values were in a training set, and what is to be said of it."""
    from headrace.skew.freshness import Profile, warning
    from headrace.training.freshness import trained_ages

    told: dict[str, Any] = {}
    for view, ages in trained_ages(loaded, folder).items():
        profile, served = Profile(), found.counts.profiles.get(view)
        profile.ages.extend(ages)
        told[view] = profile.as_json() | {"warning": None if served is None else warning(view, served.ages, ages)}
    return told


def _views(plan: Plan, given: tuple[str, ...]) -> set[str] | None:
    known = set(plan.versions)
    for name in given:
        if name not in known:
            raise UsageError("not-found", "There is no such view.", got=shown(name), hint=did_you_mean(name, known))
    return set(given) or None


def show(told: dict[str, Any]) -> None:
    """What an audit has found, for eyes."""
    samples = sum(told["samples"].values())
    compared = f"{show_count(told['compared'], 'value')} of {show_count(samples, 'sample')}"
    data(f"{compared} since {told['since']} compared with the lake")
    if told["waiting"]:
        talk(f"{show_count(told['waiting'], 'sample waits', 'samples wait')} until the lake has come so far.")
    for view, why in told["skipped"].items():
        talk(f"{view} is not compared: {why}")
    if not told["compared"]:
        talk("Reads are sampled with serve.sample, and predictions when a model scores a stream.")
        return
    causes = list(told["causes"])
    table(
        ("feature", "compared", "equal", "rate", "95 % interval", *causes),
        [_row(name, each, causes) for name, each in told["features"].items()],
    )
    delays = [each["delay_s"] for each in told["features"].values() if each["delay_s"]]
    if delays:
        middle, most = max(each["p50"] for each in delays), max(each["max"] for each in delays)
        data(f"behind by {middle:.2f} s in the median of the worst feature, {most:.2f} s at most")
    _show_freshness(told)
    if not told["causes"]["defect"]:
        data("no defect")
        return
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in told["defects"].items())
    data(f"\nDEFECTS: {kinds}")
    for each in told["evidence"]:
        _show_defect(each)


def _row(name: str, each: dict[str, Any], causes: list[str]) -> list[str]:
    low, high = each["rate_interval"]
    rates = f"{each['rate']:.3%}", f"{low:.3%} to {high:.3%}"
    return [name, f"{each['compared']:,}", f"{each['equal']:,}", *rates, *(f"{each['causes'][c]:,}" for c in causes)]


def _show_freshness(told: dict[str, Any]) -> None:
    """How old the newest event was, when it was served and in a training set."""
    trained = told.get("trained", {})
    rows = [_ages("served", view, each) for view, each in told["freshness"].items()]
    rows += [_ages("training set", view, each) for view, each in trained.items()]
    table(("newest event", "view", "values", "p50 since it happened", "p99", "p50 since it arrived", "p99"), rows)
    for each in trained.values():
        if each["warning"]:
            talk(f"warning: {each['warning']}")


def _ages(where: str, view: str, each: dict[str, Any]) -> list[str]:
    spread = [each[part][share] for part in ("since_it_happened_s", "since_it_arrived_s") for share in ("p50", "p99")]
    return [where, view, f"{each['count']:,}", *("-" if value is None else f"{value:,.1f} s" for value in spread)]


def _show_defect(each: dict[str, Any]) -> None:
    says = f": {each['says']}" if each["says"] else ""
    line(f"{each['kind']}{says}")
    line(f"  {each['view']} of {', '.join(map(str, each['key']))} at {each['at']} ({each['source']}, {each['record']})")
    for name, values in each["features"].items():
        line(f"  {name}: served {values['served']!r}, known {values['known']!r}")
    for event in each["events"][:5]:
        place = f"{event['partition']}/{event['offset']}"
        line(f"  event {event['id']} at {event['event_time']}, arrived {event['arrived_at']} ({place})")
