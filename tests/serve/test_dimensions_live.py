"""Several processes that answer, each with its own copy of a dimension's table."""

from __future__ import annotations

import urllib.request

import pytest

from tests.lake.dimensions import written
from tests.serve.process import PROJECT, served, until

pytestmark = pytest.mark.xdist_group("live")

FEATURES = f"""{PROJECT}
merchants = hr.dimension(
    "merchants",
    "merchants.parquet",
    by="merchant",
    fields={{"merchant": str, "category": str, "risk": float | None}},
    valid_from="since",
    valid_to="until",
)
fraud = hr.feature_set("fraud", [users, merchants.only("risk")])
"""
SETTINGS = 'workers = 2\ndimensions_every = "100ms"\ndrain = "2s"\n'
READS = 20
"""With so many connections nearly certainly both workers are asked."""


def metrics(shop):
    with urllib.request.urlopen(f"http://127.0.0.1:{shop.port}/metrics", timeout=30) as answer:
        return answer.read().decode()


def test_every_worker_follows_the_table(tmp_path):
    written(tmp_path, ("m", "food", 0.25, 1))
    with served(tmp_path, SETTINGS, features=FEATURES) as shop:

        def risks():
            answers = [shop.ask("/v1/features/fraud?user=ann&merchant=m") for _ in range(READS)]
            return {answer["features"]["risk"] if status == 200 else None for status, answer in answers}

        until(lambda: risks() == {0.25})
        written(tmp_path, ("m", "food", 0.75, 1))
        until(lambda: risks() == {0.75})
        (tmp_path / "merchants.parquet").unlink()
        until(lambda: shop.ask("/ready")[1].get("failing_dimensions") == ["merchants"])
        assert shop.ask("/ready")[0] == 200
        assert risks() == {0.75}
        until(lambda: 'headrace_dimension_failing{dimension="merchants"} 1.0\n' in metrics(shop))
        written(tmp_path, ("m", "food", None, 1))
        until(lambda: risks() == {None} and shop.ask("/v1/features/merchants/m")[1]["missing"] is False)
