"""Scoring live, killed and given new versions: every event has its prediction, in the topic and once in the lake."""

from __future__ import annotations

import json
import os
import signal
from contextlib import closing

import pytest

from headrace import project, sample_payments
from headrace.cli.init import create
from headrace.clock import SECOND, SystemClock, micros
from headrace.meaning.reference import ReferenceResult
from headrace.topics import open_log
from headrace_demo import stack
from tests.test_end_to_end import headrace, pid_of, served, until

pytestmark = [pytest.mark.prove, pytest.mark.spark, pytest.mark.xdist_group("live")]

PAYMENTS, PER_SECOND, CARDS = 4_000, 250, 300
MODEL = """

scored = hr.model("risk", fraud, stream=payments.where("amount > 0"))
"""
FIRST = "def score(row):\n    return min(1.0, (row['payments_10m'] or 0) / 100)\n"
SECOND_ONE = "def score(row):\n    return 1 - min(1.0, (row['payments_10m'] or 0) / 100)\n"


def test_a_scorer_killed_twice_and_given_a_new_version_leaves_no_event_without_its_prediction(tmp_path):
    folder = tmp_path / "shop"
    create(folder)
    with (folder / "features.py").open("a") as file:
        file.write(MODEL)
    for name, text in (("first.py", FIRST), ("second.py", SECOND_ONE)):
        (folder / name).write_text(text)
    headrace(folder, "model", "add", "risk", "first.py", "--allow-code", "--threshold", "0.05", "--promote")
    headrace(folder, "model", "add", "risk", "second.py", "--allow-code")
    shop = project.load(folder)
    headrace(folder, "up", "--detach", "--port", "0")
    try:
        log = open_log(shop.config)
        start = SystemClock().now() + SECOND
        sent = sample_payments.payments(PAYMENTS, seed=5, start=start, per_second=PER_SECOND, cards=CARDS)
        quarter = len(sent) // 4
        done_at = {quarter: kill(shop.config), 2 * quarter: promote(folder, log), 3 * quarter: kill(shop.config)}

        def strike(done):
            for mark in [mark for mark in done_at if done >= mark]:
                done_at.pop(mark)()

        stack.send(log, "payments", sent, strike)
        assert not done_at
        records = stack.everything(log, "payments", "payments")
        outcome = ReferenceResult(shop.plan(), records)
        counted = {
            each.event.event_id: each
            for each in outcome.judged["payments"]
            if each.event is not None and each.contributes and each.event.row["amount"] > 0
        }
        told = until(lambda: all_scored(log, counted), "some events have no prediction")
        check(outcome, shop.views[0], counted, told)
        with closing(stack.Reader(served(shop.config))) as reader:
            count = len({each["id"] for each in told})
            until(lambda: archived(reader, count), "the lake does not hold the predictions")
        log.close()
    finally:
        headrace(folder, "down")


def kill(config):
    return lambda: os.kill(pid_of(config, "score"), signal.SIGKILL)


def promote(folder, log):
    """Promote the second version, once the first has scored something: on a busy machine that may take a while."""

    def done():
        until(lambda: any(log.end_offsets("predictions.risk").values()), "nothing was scored by the first version")
        headrace(folder, "model", "promote", "risk", "2")

    return done


def all_scored(log, counted):
    told = [json.loads(record.value) for record in stack.everything(log, "predictions.risk", "predictions.risk")]
    return told if counted.keys() <= {each["event_id"] for each in told} else None


def check(outcome, view, counted, told):
    """Predictions of nothing else, each the score of its version on its features, and no event lost or doubled in them.

    A scorer that is behind may find tiles that are ahead of the event it scores. So a count is at least what was known
    with the event, and at most what was known when it was scored.
    """
    assert {each["event_id"] for each in told} == counted.keys()
    assert {each["version"] for each in told} == {1, 2}
    for each in told:
        features = json.loads(each["features"])
        risk = min(1.0, features["payments_10m"] / 100)
        assert each["score"] == (risk if each["version"] == 1 else 1 - risk)
        arrived, partition, offset = counted[each["event_id"]].place
        key, scored_at = (json.loads(each["key"])["card"],), micros(each["scored_at"])
        least = outcome.values(view, key, (arrived, partition, offset + 1))["payments_10m"]
        most = outcome.values(view, key, (scored_at,))["payments_10m"]
        assert least <= features["payments_10m"] <= most


def archived(reader, count):
    told = reader.get("/status.json")["streams"].get("predictions.risk")
    return told is not None and told["verdicts"]["admitted"] == count and told["settled"]
