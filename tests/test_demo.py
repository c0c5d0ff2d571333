"""`headrace demo`, in small: history, model, live payments and the report, on both logs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.xdist_group("live")]

SIZE = ("--small", "--seconds", "20", "--rate", "50")


@pytest.mark.parametrize("options", [(), ("--kafka",)], ids=["embedded", "kafka"])
def test_the_demo_catches_fraud_and_everything_adds_up(options, tmp_path):
    command = [sys.executable, "-m", "headrace.cli.main", "demo", "--json", "--keep", str(tmp_path / "shop")]
    done = subprocess.run([*command, *SIZE, *options], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    told = json.loads(done.stdout)
    assert (told["verdicts_add_up"], told["equal"], told["all_scored"]) == (True, True, True)
    assert told["scored"] == told["payments"] >= 900
    # Five frauds say little of how much more fresh features catch: tests/world/test_freshness.py says more.
    caught = told["caught"]
    assert caught["frauds"] >= 3
    for score in ("fresh", "hour_old", "hour_old_own_model"):
        assert 0 < caught[score]["auc"] <= 1
        assert caught[score]["false_alarms"] <= caught["honest"] / 100
    assert all(told[part]["p50_ms"] > 0 for part in ("arrival_to_score", "read"))
    assert (tmp_path / "shop" / "train.py").exists()
