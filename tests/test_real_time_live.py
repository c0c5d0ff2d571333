"""Real-time mode live on Kafka: killed and changed to the other mode and back, what is served is the reference."""

from __future__ import annotations

import os
import random
import signal
import sys
from contextlib import closing

import pytest

from headrace import project, sample_payments
from headrace.cli.init import create
from headrace.clock import SECOND, SystemClock, micros
from headrace.meaning.equality import differences
from headrace.meaning.reference import Outcome
from headrace.topics import open_log
from headrace_demo import stack
from tests.processes.cluster import free_ports
from tests.test_end_to_end import headrace, pid_of, served, settled, until

pytestmark = [pytest.mark.prove, pytest.mark.spark, pytest.mark.kafka, pytest.mark.xdist_group("live")]

PER_SECOND, SECONDS, KILLS = 200, 20, 2
PATIENCE = 400.0
"""On a machine that is busy with other tests, three starts of Spark in a row take minutes."""
SETTINGS = """
[log]
kind = "kafka"
partitions = 1
"""


def test_killed_in_real_time_and_changed_to_micro_batches_and_back_every_value_is_the_reference(tmp_path, seed):
    folder = tmp_path / "shop"
    create(folder)
    file = folder / "headrace.toml"
    real_time = file.read_text().replace('mode = "micro-batch"', 'mode = "real-time"\nreal_time_batch = "5s"')
    file.write_text(real_time + SETTINGS)
    headrace(folder, "kafka", "up", "--port", str(free_ports(1)[0]))
    chance = random.Random(seed)
    try:
        shop = project.load(folder)
        (view,) = shop.views
        assert view.name in shop.plan().features[0].id
        assert [tiles.mode for tiles in shop.plan().tile_sets] == ["real-time"]
        with open_log(shop.config) as log:
            for mode, kills in (("real-time", KILLS), ("micro-batch", 0), ("real-time", 1)):
                headrace(folder, "up", "--detach", "--port", "0", "--mode", mode)
                moments = sorted(chance.uniform(0.2, 0.9) for _ in range(kills))
                send(shop, log, moments, seed=len(mode) + kills)
                with closing(stack.Reader(served(shop.config))) as reader:
                    compared(shop, log, view, reader, mode)
                headrace(folder, "down")
    finally:
        # Shown when the test fails.
        sys.stderr.write((folder / ".headrace" / "logs" / "spark.log").read_text()[-8_000:])
        headrace(folder, "down")
        headrace(folder, "kafka", "down")


def send(shop, log, moments, seed):
    """Send payments while the pipeline is killed at some shares of them."""
    start = SystemClock().now() + SECOND
    sent = sample_payments.payments(PER_SECOND * SECONDS, seed=seed, start=start, per_second=PER_SECOND, cards=50)
    left = list(moments)

    def strike(done):
        if left and done >= left[0] * len(sent):
            left.pop(0)
            os.kill(until(lambda: pid_of(shop.config, "spark"), "no Spark process"), signal.SIGKILL)

    stack.send(log, "payments", sent, strike)
    assert not left


def compared(shop, log, view, reader, mode):
    """Everything that was sent is in every answer."""
    stack.included(reader, view, "card-000", SystemClock().now(), PATIENCE)
    records = stack.everything(log, "payments", "payments")
    outcome = Outcome(shop.plan(), records)
    for (card,) in outcome.keys(view):
        answer = reader.features(view, card)
        assert answer["mode"] == mode
        assert differences(outcome, view, (card,), (micros(answer["at"]),), answer["features"]) == []
    told = until(lambda: settled(reader), "the counts did not settle")
    assert sum(told["verdicts"].values()) == told["read"] == len(records)
