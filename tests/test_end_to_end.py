"""Everything live, and everything killed: what is read over HTTP is what the reference says."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import pytest

from headrace import project, sample_payments
from headrace.cli.init import create
from headrace.clock import SECOND, SystemClock, micros
from headrace.config.config import names
from headrace.meaning.equality import differences
from headrace.meaning.reference import ReferenceResult
from headrace.processes import state_folder
from headrace.status.records import EvaluationStatus
from headrace.status.topic import read_status
from headrace.topics import STATUS, open_log
from headrace_demo import stack

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("live")]

VICTIMS = ("spark", "score", "serve", "audit", "supervisor")
"""In the order in which they are killed, at equal distances while payments are sent."""


@dataclass(frozen=True)
class Traffic:
    """How many payments are sent, how fast, of how many cards, and the values of how many are compared."""

    payments: int
    per_second: int
    cards: int
    sampled: int


MODEL = """

risk = hr.model("risk", fraud, stream=payments.where("amount > 0"))
"""
SCORE = "def score(row):\n    return min(1.0, (row['payments_10m'] or 0) / 100)\n"
SEPARATED = ("archive", "late", "evaluate")
SEPARATE = {"HEADRACE_PROCESSES_SEPARATE": ",".join(SEPARATED), "HEADRACE_DRIFT_WATCH": "all"}
"""Settings of the second start: components of Spark have processes of their own, and there is something to evaluate."""

SMALL, LARGE = Traffic(5_000, 500, 200, 50), Traffic(50_000, 2_500, 1_000, 200)
DEADLINE = 180.0


def headrace(folder: Path, *arguments: str, code: int = 0, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a verb that must end with this exit code; gives what it said."""
    command = [sys.executable, "-m", "headrace.cli.main", *arguments]
    environment = {**os.environ, **settings}
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE, env=environment
    )
    assert ran.returncode == code, ran.stderr
    return ran


def pid_of(config, name):
    told = state_folder.read_status(state_folder.find_state_folder(config)) or {}
    return (told["supervisor"] if name == "supervisor" else told["processes"][name])["pid"]


def has_evaluated(config, log):
    status = read_status(log, names(config).topic(STATUS), EvaluationStatus).get(EvaluationStatus)
    return status is not None and status.looks


def state_of(config, name):
    told = (state_folder.read_status(state_folder.find_state_folder(config)) or {})["processes"][name]
    return told["state"], told["restarts"]


def until(what, say):
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            found = what()
        except (OSError, HTTPException, KeyError, TypeError):
            found = None
        if found:
            return found
        assert time.monotonic() < deadline, say
        time.sleep(0.1)


def served(config):
    """The address of serving, whatever port it has now, once it is ready."""

    def ready():
        told = state_folder.read_status(state_folder.find_state_folder(config)) or {}
        url = told["processes"]["serve"]["url"]
        with closing(stack.Reader(url)) as reader:
            return url if reader.get("/ready")["ready"] else None

    return until(ready, "serving did not come back")


def kill(config, name):
    os.kill(until(lambda: pid_of(config, name), f"{name} does not run"), signal.SIGKILL)


@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.prove)], ids=["small", "large"])
def test_every_process_is_killed_once_and_every_served_feature_equals_the_reference(tmp_path, size, seed):
    chance, shop_folder = random.Random(seed), tmp_path / "shop"
    create(shop_folder)
    with (shop_folder / "features.py").open("a") as features:
        features.write(MODEL)
    (shop_folder / "risk.py").write_text(SCORE)
    headrace(shop_folder, "model", "add", "risk", "risk.py", "--allow-code", "--promote")
    shop = project.load(shop_folder)
    (view,) = shop.views
    headrace(shop_folder, "up", "--detach", "--port", "0")
    try:
        log = open_log(shop.config)
        sent = sample_payments.payments(
            size.payments, seed=seed, start=SystemClock().now() + SECOND, per_second=size.per_second, cards=size.cards
        )
        left = [(number * len(sent) // (len(VICTIMS) + 1), name) for number, name in enumerate(VICTIMS, 1)]

        def strike(done):
            while left and done >= left[0][0]:
                kill(shop.config, left.pop(0)[1])

        stack.send(log, "payments", sent, strike)
        assert not left
        until(
            lambda: state_folder.holder(state_folder.find_state_folder(shop.config)) is None,
            "the killed supervisor still holds the lock",
        )
        left = json.loads(headrace(shop_folder, "status", "--json", code=1).stdout)
        assert (left["state"], left["supervisor"]) == ("stopped", None)
        assert {each["state"] for each in left["processes"].values()} <= {"stopped", "orphaned"}
        said = headrace(shop_folder, "up", "--detach", "--port", "0", **SEPARATE).stderr.splitlines()
        told = json.loads(headrace(shop_folder, "status", "--json").stdout)
        assert set(told["processes"]) == {"spark", "serve", "score", "audit", *SEPARATED}
        assert list(told["processes"]["spark"]["components"]) == ["pipeline"]
        # Ready is said when values are served and the pipeline takes events; before that, what is still starting.
        assert told["state"] == told["processes"]["serve"]["state"] == told["processes"]["spark"]["state"] == "ready"
        assert told["processes"]["spark"]["components"]["pipeline"]["ready"]
        (ready,) = (number for number, line in enumerate(said) if line.startswith("ready in "))
        assert said[ready].endswith(f" at {told['url']}")
        assert any(line.startswith("waiting for: spark (starting") for line in said[:ready])

        with closing(stack.Reader(served(shop.config))) as reader:
            last = SystemClock().now()
            stack.included(reader, view, "card-000", last)
            records = stack.everything(log, "payments", "payments")
            assert len(records) == len(sent)
            outcome = ReferenceResult(shop.plan(), records)
            for card in chance.sample(sorted({payment.card for payment in sent}), size.sampled):
                answer = reader.features(view, card)
                assert differences(outcome, view, (card,), (micros(answer["at"]),), answer["features"]) == []
            victim = chance.choice(SEPARATED)
            until(lambda: state_of(shop.config, victim) == ("ready", 0), f"{victim} is not ready")
            kill(shop.config, victim)
            told = until(lambda: settled(reader), "the counts did not settle")
            assert sum(told["verdicts"].values()) == told["read"] == len(sent)
            until(lambda: scored(log) == counted(outcome), "some events have no prediction, or others have one")

            headrace(shop_folder, "backfill", "--wait", "120")
            until(lambda: reader.get("/status.json")["views"][view.name]["run"] == "2", "the new run is not read")
            stack.included(reader, view, "card-000", SystemClock().now())
            for card in chance.sample(sorted({payment.card for payment in sent}), size.sampled):
                answer = reader.features(view, card)
                assert differences(outcome, view, (card,), (micros(answer["at"]),), answer["features"]) == []
            again = until(lambda: settled(reader), "the counts did not settle after the new run took over")
            assert again["verdicts"] == told["verdicts"]
            back = {name: ("ready", int(name == victim)) for name in SEPARATED}
            until(lambda: {name: state_of(shop.config, name) for name in SEPARATED} == back, f"not all run: {back}")
            until(lambda: has_evaluated(shop.config, log), "nothing was evaluated")
        log.close()
    finally:
        headrace(shop_folder, "down")


def counted(outcome):
    """The ids of the events that count and are scored."""
    judged = (each.event for each in outcome.judged["payments"] if each.event is not None and each.contributes)
    return {event.event_id for event in judged if event.row["amount"] > 0}


def scored(log):
    return {json.loads(record.value)["event_id"] for record in stack.everything(log, "predictions.risk", "risk")}


def settled(reader):
    told = reader.get("/status.json")["streams"]["payments"]
    return told if told["settled"] else None
