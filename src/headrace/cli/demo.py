"""`headrace demo`: a fraud stream end to end in about a minute, ending in a report."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import click

from headrace.cli.init import create
from headrace.cli.output import data, data_json, table, talk


@click.command("demo")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--seed", default=7, show_default=True, help="Decides every generated payment.")
@click.option("--seconds", default=30.0, show_default=True, help="How long payments are sent.")
@click.option("--rate", default=200.0, show_default=True, help="How many are sent in a second.")
def command(as_json: bool, seed: int, seconds: float, rate: float) -> int:
    """Run a fraud stream end to end and report.

    Log, Spark, store and HTTP are real; what is served is compared with the reference interpreter. Everything is
    started for it and ended after it, and no service is needed. The exit code is 1 when a served value differs or the
    verdicts do not add up.
    """
    from headrace import demo, project

    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as folder:
        create(Path(folder) / "shop")
        shop = project.load(Path(folder) / "shop")
        talk("A project with one stream, one view of five features, made by `headrace init shop`.")
        with demo.started(shop, talk) as url:
            ready = time.perf_counter() - began
            talk(f"Sending {seconds * rate:,.0f} payments; the page is at {url}/")
            found = demo.run(shop, url, seconds=seconds, per_second=rate, seed=seed, say=talk)
    report = judge(found) | {"ready_s": round(ready, 1), "total_s": round(time.perf_counter() - began, 1)}
    if as_json:
        data_json(report)
    else:
        _show(report)
    return 0 if report["equal"] and report["verdicts_add_up"] else 1


def judge(found: dict[str, Any]) -> dict[str, Any]:
    """The report with its verdict on itself: do the counts add up, are the values equal?"""
    adds_up = sum(found["verdicts"].values()) == found["sent"] and found["verdicts"] == found["reference_verdicts"]
    equal = not any(card["differences"] for card in found["features"].values())
    return found | {"verdicts_add_up": adds_up, "equal": equal}


def _show(report: dict[str, Any]) -> None:
    from headrace.demo import short

    table(("verdict", "records"), [(name, f"{count:,}") for name, count in report["verdicts"].items()])
    data(f"{report['sent']:,} sent, {'which adds up' if report['verdicts_add_up'] else 'which does NOT add up'}\n")
    names = list(next(iter(report["features"].values()))["served"])
    rows = [
        (card, who, *(short(values[who][name]) for name in names))
        for card, values in report["features"].items()
        for who in ("served", "reference")
    ]
    table(("card", "", *names), rows)
    data("equal, sketches within their declared error\n" if report["equal"] else "NOT equal\n")
    servable, read = report["arrival_to_servable"], report["read"]
    if servable["p50_ms"] is not None:
        data(f"arrival to servable, once warm: p50 {servable['p50_ms']:,.0f} ms, p99 {servable['p99_ms']:,.0f} ms")
    data(f"read over HTTP: p50 {read['p50_ms']:.2f} ms, p99 {read['p99_ms']:.2f} ms")
    data(f"ready after {report['ready_s']} s, everything in {report['total_s']} s")
