"""What models were given, counted in Spark, is what is counted one by one."""

from __future__ import annotations

import json
import random

import pytest

from headrace.clock import HOUR
from headrace.drift.reference import Reference
from headrace.drift.statistics import Statistics, counted
from headrace.drift.window import SCORE
from headrace.evaluation import spreads as module
from headrace.evaluation.spreads import SpreadTable
from headrace.spark.evaluation.spreads import score_reference
from tests.evaluation.shop import Shop, risk

pytestmark = pytest.mark.spark

AMOUNT = Reference(
    rows=10, null_rate=0.0, mean=2.0, stddev=1.0, edges=(0.0, 0.1, 0.2, 0.3, 0.7), counts=(0, 1, 2, 3, 4, 0)
)
EVEN = Reference(
    rows=10, null_rate=0.0, mean=0.5, stddev=0.3, edges=tuple(at * 0.3 / 3 for at in range(4)), counts=(0, 1, 1, 1, 0)
)
COUNTRY = Reference(rows=10, null_rate=0.1, texts={"DE": 5, "O'Neil\\": 3}, other=2)
VIP = Reference(rows=10, null_rate=0.0, texts={"true": 5, "false": 5})
REFERENCES = {"amount": AMOUNT, "even": EVEN, "country": COUNTRY, "vip": VIP, SCORE: score_reference()}


def given(chance):
    even = chance.choice([0.0, 0.1, 0.2, 0.3, 0.30000000000000004, 0.1 * 3, -1.0, 5.0, None])
    return {
        "amount": chance.choice([None, -1.0, 0.0, 0.05, 0.1, 0.3, 0.5, 0.7, 0.8]),
        "even": even,
        "country": chance.choice([None, "DE", "O'Neil\\", "FR"]),
        "vip": chance.choice([None, True, False]),
    }


def same(found: Statistics, wanted: Statistics):
    assert (found.count, found.nulls, found.counts, found.texts, found.other, found.against) == (
        wanted.count,
        wanted.nulls,
        wanted.counts,
        wanted.texts,
        wanted.other,
        wanted.against,
    )
    assert found.mean == pytest.approx(wanted.mean)
    assert found.m2 == pytest.approx(wanted.m2, abs=1e-9)


def test_looks_count_what_came_since_and_together_everything(tmp_path, spark, monkeypatch):
    monkeypatch.setattr(module, "references", lambda *_: {1: REFERENCES})
    shop, chance = Shop(tmp_path, spark), random.Random(3)
    held: dict[int, dict[str, list[object]]] = {}
    table = SpreadTable(shop.config, risk)
    for number in range(120):
        features, score, at = given(chance), chance.random(), shop.clock.now()
        shop.predict(f"p{number}", score, features=features)
        for name, value in {**features, SCORE: score}.items():
            held.setdefault(at - at % HOUR, {}).setdefault(name, []).append(value)
        shop.clock.advance("90s")
        if number in (20, 90, 119):
            shop.archive()
            assert table.look(spark, None) > 0
    assert table.look(spark, None) == 0
    windows = {window.start: window for window in table.windows(1)}
    assert windows.keys() == held.keys()
    for start, columns in held.items():
        for name, values in columns.items():
            same(windows[start].columns[name], counted(values, REFERENCES[name]))


def test_what_is_written_is_read_as_it_was(tmp_path, spark, monkeypatch):
    monkeypatch.setattr(module, "references", lambda *_: {1: {SCORE: score_reference()}})
    shop = Shop(tmp_path, spark)
    shop.predict("p", 0.25, features={"payments_1h": 1})
    shop.archive()
    SpreadTable(shop.config, risk).look(spark, None)
    (window,) = SpreadTable(shop.config, risk).windows(1)
    assert json.dumps(window.columns[SCORE].counts).count("1") == 1


def test_segments_are_counted_beside_everything(tmp_path, spark, monkeypatch):
    monkeypatch.setattr(module, "references", lambda *_: {1: {"amount": AMOUNT, SCORE: score_reference()}})
    shop = Shop(tmp_path, spark)
    for number in range(6):
        card = "a" if number < 4 else "Bank of [X]"
        shop.predict(f"p{number}", 0.1, card=card, features={"amount": 0.05 if number < 4 else None})
    shop.archive()
    table = SpreadTable(shop.config, risk, ("card",))
    table.look(spark, None)
    (window,) = table.windows(1)
    counts = {name: (held.count, held.nulls) for name, held in window.columns.items() if not name.startswith(SCORE)}
    assert counts == {"amount": (6, 2), "amount[card=a]": (4, 0), "amount[card=Bank of [X]]": (2, 2)}
