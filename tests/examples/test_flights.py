"""The flights example runs from one command, on a few days of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FLIGHTS = Path(__file__).parent.parent.parent / "examples" / "flights"
DAYS = ("--history", "2013-08-18", "--train", "2013-08-22", "--live", "2013-09-04", "--until", "2013-09-06")

pytestmark = [pytest.mark.prove, pytest.mark.spark, pytest.mark.xdist_group("live")]


def test_two_days_of_flights_are_scored_evaluated_and_audited(tmp_path):
    found = tmp_path / "found.json"
    command = [
        sys.executable,
        "run.py",
        *DAYS,
        "--rate",
        "2000",
        "--mode",
        "as_known",
        "--keep",
        str(tmp_path / "flights"),
        "--json",
        str(found),
    ]
    ran = subprocess.run(command, check=False, cwd=FLIGHTS, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stdout[-4_000:] + ran.stderr[-4_000:]
    told = json.loads(found.read_text())
    skew = told["skew"]
    assert skew["compared"] > 20_000
    assert skew["waiting"] == 0
    assert skew["causes"]["defect"] == 0
    assert skew["equal"] + skew["mismatched"] == skew["compared"]
    known = told["evaluated"]["1"]
    # The second day is not over before something is known of the third.
    assert 800 < known["states"]["labelled"] < told["landed"]
    assert known["count"] == sum(known["states"].values())
    assert [day for day, _, _ in told["auc_by_day"]] == ["2013-09-04"]
    assert told["offline_auc"]["as_known"] > 0.6
