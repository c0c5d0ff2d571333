"""`headrace demo`: what fresh features are worth, on a made-up world of card payments."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.init import FILES, create
from headrace.cli.output import data, data_json, table, talk
from headrace.errors import UsageError
from headrace.plural import show_count
from headrace_demo import drift as demo_drift
from headrace_demo.learning import learn
from headrace_demo.screen import screen

if TYPE_CHECKING:
    from headrace.project import Project
    from headrace_demo.world.stream import World


WORLD = files("headrace_demo.world")
DEMO_FILES: dict[str, Traversable] = {
    "headrace.toml": FILES["headrace.toml"],
    "features.py": WORLD / "features.py.txt",
    "train.py": WORLD / "train.py.txt",
    ".gitignore": FILES[".gitignore"],
}
"""Each file of the demo's project, and its template."""


@click.command("demo")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--drift", is_flag=True, help="Replay days in which thieves change their ways, and find that out.")
@click.option("--kafka", is_flag=True, help="On a local Kafka broker, event by event in Spark's real-time mode.")
@click.option("--seed", default=7, show_default=True, help="Decides every payment.")
@click.option(
    "--seconds",
    type=options.FiniteRange(1, 86_400),
    default=50.0,
    show_default=True,
    help="How long live payments are sent.",
)
@click.option(
    "--rate",
    type=options.FiniteRange(1, 10_000),
    help="How many are sent in a second: 80 if nothing is said, with --drift 250.",
)
@click.option(
    "--keep", type=click.Path(path_type=Path), metavar="DIR", help="Make the project here, and leave it there."
)
@click.option("--small", is_flag=True, help="With less history, for a quick look or a slow machine.")
def command(
    as_json: bool,
    drift: bool,
    kafka: bool,
    seed: int,
    seconds: float,
    rate: float | None,
    keep: Path | None,
    small: bool,
) -> int:
    """Show what fresh features are worth.

    Ten days of card payments are imported, a fraud model is trained on what was known of each, and live payments are
    scored as they come, thefts among them. Log, Spark, store, HTTP and scorer are real processes, started for it and
    ended after it. The report says how much fraud was caught, and how much would have been on features one hour old.
    The exit code is 1 when the verdicts do not add up, a payment has no score, a served value differs from the
    reference, or what the model was given differs from the lake without an excuse.

    With --drift, two weeks are replayed in accelerated time instead, in which thieves change their ways: the exit code
    is 1 unless exactly one incident names the cause.
    """
    from headrace import project
    from headrace.machine import short_lived
    from headrace.models.libraries import needed
    from headrace_demo import shop, turning

    for name in ("lightgbm", "sklearn"):
        needed(name)
    if drift and (kafka or small):
        raise UsageError("bad-usage", "--drift has one size, and runs on the embedded log.", hint="Say it alone.")
    began = time.perf_counter()
    with short_lived(), _folder(keep) as folder:
        create(folder, DEMO_FILES)
        if drift:
            turning.as_a_replay(folder)
            report = demo_drift.report(project.load(folder), turning.world_of(seed), rate or 250.0)
        else:
            if kafka:
                on_kafka(folder / "headrace.toml")
            report = _report(project.load(folder), shop.world_of(seed, small=small), seconds, rate or 80.0)
    report["total_s"] = round(time.perf_counter() - began, 1)
    if as_json:
        data_json(report)
    elif drift:
        demo_drift.show(report)
    else:
        _show(report, keep)
    wanted = ("found", "all_scored") if drift else ("verdicts_add_up", "equal", "all_scored", "no_defect")
    return 0 if all(report[name] for name in wanted) else 1


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as folder:
        yield Path(folder) / "shop"


def on_kafka(file: Path) -> None:
    """Have a project's settings name Kafka and real-time mode."""
    text = file.read_text().replace('mode = "micro-batch"', 'mode = "real-time"')
    file.write_text(f'{text}\n[log]\nkind = "kafka"\npartitions = 1\n')


def _report(shop: Project, world: World, seconds: float, rate: float) -> dict[str, Any]:
    from headrace.clock import SECOND, SystemClock
    from headrace.topics import open_log
    from headrace_demo import judging, stack, traffic
    from headrace_demo.shop import Past, live_of, write_past
    from headrace_demo.stale import FIELDS, HourOld

    began = time.perf_counter()
    root, up = shop.config.root, list[str]()

    def write() -> Past:
        made = write_past(root, world, SystemClock().now())
        talk(f"{made.payments:,} payments of the last {world.days} days and {made.labels:,} labels, all made up.")
        return made

    with contextlib.ExitStack() as running:
        hour_old = running.enter_context(contextlib.closing(HourOld(root)))
        past = learn(shop, talk, write, filled=lambda: up.append(running.enter_context(stack.started(shop, talk))))
        hour_old.learn()
        learnt, url = time.perf_counter() - began, up[0]
        stack.scoring(shop)
        ready = time.perf_counter() - began
        sent = live_of(past, SystemClock().now() + 2 * SECOND, seconds, rate)
        talk(f"Sending {len(sent):,} live payments; the page is at {url}/")
        with open_log(shop.config) as log, contextlib.closing(stack.Reader(url)) as reader:
            with screen() as show:
                seen = traffic.run(shop, log, sent, traffic.at_their_time(shop, log, sent), show)
            talk("Scoring the same payments on features one hour old.")
            stale = hour_old.score(
                [
                    {field: seen.payments[name].event[field] for field in FIELDS} | {"t": scored.at}
                    for name, scored in seen.scored.items()
                ]
            )
            found = judging.observed(shop, past, log, reader, seen)
            found["caught"] = judging.caught(seen, stale.result())
    found["history"] = {"payments": past.payments, "labels": past.labels, "days": world.days}
    return judging.judge(found) | {"seed": world.seed, "learnt_s": round(learnt, 1), "ready_s": round(ready, 1)}


def _show(report: dict[str, Any], keep: Path | None) -> None:
    table(("verdict", "records"), [(name, f"{count:,}") for name, count in report["verdicts"].items()])
    data(f"{report['sent']:,} sent, {'which adds up' if report['verdicts_add_up'] else 'which does NOT add up'}")
    data(f"{report['scored']:,} of {report['payments']:,} payments that can be read have a score\n")
    _show_caught(report["caught"])
    equal = "equal to the reference" if report["equal"] else "NOT equal to the reference"
    data(f"features of the {len(report['features'])} busiest cards: {equal}")
    data(f"{_skew(report['skew'])}\n")
    _show_speed(report)
    where = f"cd {keep} && headrace up" if keep else "headrace demo --keep shop"
    data(f"next: `{where}`, docs/guides/train-a-model.md, docs/guides/score-a-stream.md")


def _skew(skew: dict[str, Any]) -> str:
    """How what models were given compares with what was known."""
    causes = [f"{count:,} {cause}" for cause, count in skew["causes"].items() if count and cause != "defect"]
    excused = f" ({', '.join(causes)})" if causes else ""
    differ, defects = (
        show_count(skew["mismatched"], "differs", "differ"),
        show_count(skew["causes"]["defect"], "defect"),
    )
    told = f"{differ}{excused}, {defects}"
    return f"{skew['compared']:,} values of predictions beside the lake: {told}"


def _show_caught(caught: dict[str, Any]) -> None:
    """What each score catches, beside each other."""
    told = {
        "live, as scored": "fresh",
        "one hour old": "hour_old",
        "one hour old, model trained on such": "hour_old_own_model",
    }
    rows = []
    for name, key in told.items():
        one = caught[key]
        low, high = one["recall_interval"]
        share, between = f"{one['recall']:.0%}", f"{low:.0%} to {high:.0%}"
        rows.append((name, f"{one['caught']:,} of {caught['frauds']:,}", share, between, f"{one['auc']:.3f}"))
    data(f"fraud caught when {caught['false_alarm_rate']:.0%} of honest payments may raise an alarm:\n")
    table(("features", "caught", "share", "95 % interval", "AUC"), rows)
    data("")


def _show_speed(report: dict[str, Any]) -> None:
    named = {
        "arrival_to_score": "arrival to score",
        "feature_age": "age of the tiles when a payment was scored; what came since is folded in",
        "arrival_to_servable": "arrival to servable, once warm",
        "read": "read over HTTP",
    }
    for key, name in named.items():
        told = report[key]
        if told["p50_ms"] is not None:
            data(f"{name}: p50 {told['p50_ms']:,.2f} ms, p99 {told['p99_ms']:,.2f} ms")
    data(f"model trained after {report['learnt_s']} s, ready after {report['ready_s']} s, all in {report['total_s']} s")
