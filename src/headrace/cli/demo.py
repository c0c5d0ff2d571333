"""`headrace demo`: the example project over a generated card-payment stream, ending in a report.

It runs on the reference interpreter and says so: plain Python, no Spark, the meaning every engine is held to.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click

from headrace.cli.init import create
from headrace.cli.output import data, data_json, table, talk
from headrace.clock import MINUTE, micros, show_time

PAYMENTS = 20_000
PER_SECOND = 10.0
START = "2026-01-01T12:00:00Z"


@click.command("demo")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--seed", default=7, show_default=True, help="Decides every generated payment.")
def command(as_json: bool, seed: int) -> None:
    """Run the example project over a generated stream and report."""
    found = report(seed)
    if as_json:
        data_json(found)
        return
    _show(found)


def report(seed: int) -> dict[str, Any]:
    """Make the example project, run it over the stream, and gather what there is to say."""
    from headrace import example, project
    from headrace.run.reference import Outcome

    with tempfile.TemporaryDirectory() as folder:
        create(Path(folder) / "shop")
        shop = project.load(Path(folder) / "shop")
    start = micros(START)
    sent = example.records(example.payments(PAYMENTS, seed=seed, start=start, per_second=PER_SECOND))
    talk(f"Reading {len(sent):,} records of {PAYMENTS:,} payments on the reference interpreter...")
    began = time.perf_counter()
    outcome = Outcome(shop.plan(), sent)
    (view,) = shop.views
    at = start + int(PAYMENTS / PER_SECOND) * 1_000_000 + MINUTE
    busiest = Counter(judged.event.row["card"] for judged in outcome.judged["payments"] if judged.event)
    cards = [card for card, _ in busiest.most_common(3)]
    values = {card: outcome.values(view, (card,), (at,)) for card in cards}
    seconds = time.perf_counter() - began
    verdicts = outcome.verdicts("payments")
    return {
        "engine": "reference interpreter (plain Python, no Spark)",
        "records": len(sent),
        "verdicts": verdicts,
        "verdicts_add_up": sum(verdicts.values()) == len(sent),
        "at": show_time(at),
        "features": values,
        "seconds": round(seconds, 3),
        "records_per_second": round(len(sent) / seconds),
    }


def _show(found: dict[str, Any]) -> None:
    data(f"Engine: {found['engine']}\n")
    table(("verdict", "records"), [(name, f"{count:,}") for name, count in found["verdicts"].items()])
    total = "which adds up" if found["verdicts_add_up"] else "which does NOT add up"
    data(f"read {found['records']:,} records, {total}\n")
    names = list(next(iter(found["features"].values())))
    rows = [(card, *(_number(values[name]) for name in names)) for card, values in found["features"].items()]
    table(("card", *names), rows)
    data(f"as known at {found['at']}\n")
    data(f"{found['seconds']:.1f} s, {found['records_per_second']:,} records/s")


def _number(value: Any) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else f"{value}"
