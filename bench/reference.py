"""How many records a second the reference interpreter judges, folds into tiles and reads a five-feature view of."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from bench.harness import Result, measured, run
from headrace import project, sample_payments
from headrace.cli.init import create
from headrace.log.record import Record
from headrace.meaning.reference import ReferenceResult
from headrace.project import Project

START = 1_767_268_800_000_000


def once(shop: Project, records: list[Record]) -> float:
    """Records per second: verdicts, tiles, and all features of every card at the end."""
    (view,), (tile_set,) = shop.views, shop.plan().tile_sets
    began = time.perf_counter()
    outcome = ReferenceResult(shop.plan(), records)
    outcome.tiles(tile_set)
    at = records[-1].arrived_at + 1
    for key in outcome.keys(view):
        outcome.values(view, key, (at,))
    return len(records) / (time.perf_counter() - began)


def measure(quick: bool) -> list[Result]:
    """The example project over an hour or so of generated payments."""
    with tempfile.TemporaryDirectory() as folder:
        create(Path(folder) / "shop")
        shop = project.load(Path(folder) / "shop")
    sent = sample_payments.payments(20_000 if quick else 100_000, seed=7, start=START, per_second=20)
    records = sample_payments.records(sent)
    once(shop, records[:2_000])
    return [measured("records_per_s", [once(shop, records) for _ in range(5)], "higher", target=20_000)]


if __name__ == "__main__":
    sys.exit(run("reference", measure))
