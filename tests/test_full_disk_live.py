"""The whole stack on a disk that fills up while payments come: reads go on, the rest waits, nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing
from http.client import HTTPException
from pathlib import Path

import pytest

from headrace import project, sample_payments
from headrace.cli.init import create
from headrace.clock import SystemClock, micros
from headrace.errors import DiskFullError
from headrace.log.record import Message
from headrace.meaning.equality import differences
from headrace.meaning.reference import ReferenceResult
from headrace.processes import process_identity, state_folder
from headrace.topics import open_log
from headrace_demo import stack
from tests.small_disk import is_mountable, small_disk

pytestmark = [
    pytest.mark.spark,
    pytest.mark.prove,
    pytest.mark.xdist_group("live"),
    pytest.mark.skipif(not is_mountable(), reason="a disk can be mounted by root alone"),
]

MEGABYTES, PAYMENTS, CARDS, BATCH = 400, 6_000, 100, 50
DEADLINE, FULL = 240.0, 45.0
"""Seconds that anything may take, and that the disk stays full."""
DISTRESS = {"disk_full", "component_restarting", "component_hung", "dropped_by_watermark"}
SCORE = "def score(row):\n    return min(1.0, (row['payments_10m'] or 0) / 100)\n"
MODEL = '\n\nrisk = hr.model("risk", fraud, stream=payments.where("amount > 0"))\n'


def headrace(folder: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headrace.cli.main", *arguments]
    # Spark's scratch space is on the small disk as well.
    settings = {"HEADRACE_SERVE_MIN_FREE_DISK": "0", "SPARK_LOCAL_DIRS": str(folder / ".headrace" / "scratch")}
    environment = {**os.environ, **settings}
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE, env=environment
    )
    assert ran.returncode == code, ran.stderr
    return ran


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


def posted(url: str, value: bytes) -> tuple[int, str | None]:
    """Status and Retry-After of a posted payment."""
    asked = urllib.request.Request(f"{url}/v1/events/payments?unchecked=1", value, method="POST")
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.status, None
    except urllib.error.HTTPError as error:
        return error.code, error.headers["retry-after"]


class Producer(threading.Thread):
    """Sends payments batch by batch; one that the full disk refuses is sent again."""

    def __init__(self, log, payments) -> None:
        super().__init__(daemon=True)
        self.log, self.payments = log, payments
        self.done = self.refused = 0

    def run(self) -> None:
        while self.done < len(self.payments):
            batch = self.payments[self.done : self.done + BATCH]
            try:
                self.log.append_batch("payments", [Message(each.value, each.key) for each in batch])
                self.done += len(batch)
            except DiskFullError:
                self.refused += 1
            time.sleep(0.5)


def test_a_disk_that_fills_up_stops_everything_but_reads_and_all_comes_back_when_it_is_freed(tmp_path, seed):
    shop_folder = tmp_path / "shop"
    create(shop_folder)
    with (shop_folder / "features.py").open("a") as features:
        features.write(MODEL)
    (shop_folder / "risk.py").write_text(SCORE)
    with small_disk(shop_folder / ".headrace", MEGABYTES) as disk:
        headrace(shop_folder, "model", "add", "risk", "risk.py", "--allow-code", "--promote")
        shop = project.load(shop_folder)
        (view,) = shop.views
        headrace(shop_folder, "up", "--detach", "--port", "0")
        where = state_folder.find_state_folder(shop.config)
        supervisor = state_folder.holder(where)
        try:
            log = open_log(shop.config)
            start = SystemClock().now()
            sent = sample_payments.payments(PAYMENTS, seed=seed, start=start, per_second=100, cards=CARDS)
            producer = Producer(log, sent)
            producer.start()
            until(lambda: producer.done > len(sent) // 6, "nothing was sent")
            url = state_folder.serve_url(where)
            with closing(stack.Reader(url)) as reader:
                stack.included(reader, view, "card-000", start)
                assert disk.fill() > 0
                posts, alarmed, full_until = 0, 0, time.monotonic() + FULL
                while time.monotonic() < full_until:
                    disk.fill()
                    assert "features" in reader.features(view, "card-000")
                    status, after = posted(url, b"{}")
                    assert (status, after) in ((202, None), (507, "5"))
                    posts += status == 202
                    alarmed += any(alarm["kind"] == "disk_full" for alarm in reader.get("/status.json")["alarms"])
                    time.sleep(0.5)
                assert alarmed > 10
                assert producer.refused
                assert state_folder.holder(where) == supervisor
                said = json.loads(headrace(shop_folder, "status", "--json", code=1).stdout)
                assert said["state"] == "degraded"
                assert "disk_full" in [alarm["kind"] for alarm in said["alarms"]]
                disk.free()

                producer.join(DEADLINE)
                assert producer.done == len(sent)
                until(lambda: (state_folder.read_status(where) or {})["state"] == "ready", "it did not come back")
                stack.included(reader, view, "card-000", SystemClock().now(), DEADLINE)
                records = stack.everything(log, "payments", "payments")
                assert len(records) == len(sent) + posts
                told = until(lambda: settled(reader), "the counts did not settle")
                assert sum(told["verdicts"].values()) == told["read"] == len(records)
                outcome = ReferenceResult(shop.plan(), records)
                until(lambda: scored(log) == counted(outcome), "some events have no prediction, or others have one")
                for card in sorted({payment.card for payment in sent}):
                    until(
                        lambda card=card: equal(reader, outcome, view, card), f"{card} is not what the reference says"
                    )
                said = json.loads(headrace(shop_folder, "status", "--json").stdout)
                assert DISTRESS.isdisjoint(alarm["kind"] for alarm in said["alarms"])
            log.close()
        finally:
            headrace(shop_folder, "down")
            assert process_identity.marked(state_folder.MARK, where.mark) == []


def equal(reader, outcome, view, card):
    answer = reader.features(view, card)
    return not differences(outcome, view, (card,), (micros(answer["at"]),), answer["features"])


def counted(outcome):
    """The ids of the events that count and are scored."""
    judged = (each.event for each in outcome.judged["payments"] if each.event is not None and each.contributes)
    return {event.event_id for event in judged if event.row["amount"] > 0}


def scored(log):
    return {json.loads(record.value)["event_id"] for record in stack.everything(log, "predictions.risk", "risk")}


def settled(reader):
    told = reader.get("/status.json")["streams"]["payments"]
    return told if told["settled"] else None
