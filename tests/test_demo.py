"""`headrace demo`, in small and at full size: history, model, live payments, report; and its project on Kafka."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from headrace import project
from headrace.cli.init import create
from headrace_demo.command import DEMO_FILES, on_kafka

SMALL = ("--small", "--seconds", "15", "--rate", "50")


@pytest.mark.prove
@pytest.mark.spark
@pytest.mark.xdist_group("live")
@pytest.mark.parametrize("size", [SMALL, ()], ids=["small", "full"])
def test_the_demo_catches_fraud_and_everything_adds_up(tmp_path, size):
    command = [sys.executable, "-m", "headrace.cli.main", "demo", "--json", "--keep", str(tmp_path / "shop")]
    done = subprocess.run([*command, *size], capture_output=True, text=True, timeout=1_500, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    told = json.loads(done.stdout)
    assert (told["verdicts_add_up"], told["equal"], told["all_scored"]) == (True, True, True)
    assert told["scored"] == told["payments"] >= 700
    # So few frauds say little of how much more fresh features catch: tests/world/test_freshness.py says more.
    caught = told["caught"]
    assert caught["frauds"] >= 1
    for score in ("fresh", "hour_old", "hour_old_own_model"):
        assert 0 <= caught[score]["auc"] <= 1
        assert caught[score]["false_alarms"] <= caught["honest"] / 100
    assert all(told[part]["p50_ms"] > 0 for part in ("arrival_to_score", "read"))
    assert (tmp_path / "shop" / "train.py").exists()
    skew = told["skew"]
    assert told["no_defect"], skew["evidence"]
    # Reads are among them by chance.
    predictions = {name: count for name, count in skew["samples"].items() if not name.startswith("read ")}
    assert predictions == dict.fromkeys(("risk@1 card_activity", "risk@1 shop_activity"), told["scored"])
    assert skew["waiting"] == 0
    assert skew["compared"] == skew["equal"] + skew["mismatched"]
    for name in ("card_activity.payments_10m", "shop_activity.small_share_7d", "risk.km_per_hour", "risk.score"):
        assert skew["features"][name]["compared"] >= 0.9 * told["scored"] >= 600


def test_on_kafka_its_project_runs_event_by_event(tmp_path):
    create(tmp_path / "shop", DEMO_FILES)
    on_kafka(tmp_path / "shop" / "headrace.toml")
    shop = project.load(tmp_path / "shop")
    assert shop.config.log.kind == "kafka"
    assert {tiles.mode for tiles in shop.plan().tile_sets} == {"real-time"}
