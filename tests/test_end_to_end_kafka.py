"""Kafka, real-time mode and Redis, started by one verb and killed in turn: no answer over HTTP is ever wrong."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from contextlib import closing
from http.client import HTTPException
from typing import Any

import pytest

from headrace import project, sample_payments
from headrace.cli.init import create
from headrace.clock import SECOND, SystemClock, micros
from headrace.meaning.equality import differences
from headrace.meaning.exact import ViewEvents
from headrace.meaning.reference import ReferenceResult
from headrace.processes import redis
from headrace.supervisor import services
from headrace.topics import open_log
from headrace_demo import stack
from tests.processes.cluster import free_ports
from tests.test_end_to_end import headrace, pid_of, served, until
from tests.test_real_time_live import compared

pytestmark = [pytest.mark.prove, pytest.mark.spark, pytest.mark.kafka, pytest.mark.xdist_group("live")]

PER_SECOND, SECONDS, CARDS = 200, 20, 40
APART = 0.15
"""At least this share of the payments lies between two kills."""
FOR_ONCE = {"HEADRACE_LOG_KIND": "kafka", "HEADRACE_STORE_KIND": "redis", "HEADRACE_PIPELINE_MODE": "real-time"}
SETTINGS = """
[log]
partitions = 1

[archive]
every = "2s"
"""


def test_spark_serve_and_redis_are_killed_and_no_answer_is_ever_wrong(tmp_path, monkeypatch, seed):
    folder, (port,) = tmp_path / "shop", free_ports(1)
    create(folder)
    file = folder / "headrace.toml"
    file.write_text(file.read_text().replace("[pipeline]", '[pipeline]\nreal_time_batch = "5s"') + SETTINGS)
    with monkeypatch.context() as chosen:
        for name, value in FOR_ONCE.items():
            chosen.setenv(name, value)
        shop = project.load(folder)
    (view,) = shop.views
    if redis.answers(redis.USUAL):
        # This machine has a Redis of its own, which would be used, and is not ours to kill.
        headrace(folder, "redis", "up")
    try:
        headrace(folder, "up", "--detach", "--kafka", "--redis", "--mode", "real-time", "--port", str(port))
        assert services.running(shop.config).keys() == {"kafka", "redis"}
        first = redis.running(redis.redis_folder(shop.config))
        asked = Asked(f"http://127.0.0.1:{port}", view)
        with open_log(shop.config) as log:
            send(shop.config, log, asked, seed)
            with closing(stack.Reader(served(shop.config))) as reader:
                compared(shop, log, view, reader, "real-time")
            outcome = ReferenceResult(shop.plan(), stack.everything(log, "payments", "payments"))
        again = redis.running(redis.redis_folder(shop.config))
        assert (again.address, again.pid != first.pid) == (first.address, True)
        for answer in asked.answers:
            right_or_flagged(outcome, view, answer)
        # Both kinds of moment were met: values while all was well or something was on its way back, and none at all.
        assert sum(answer["as_of"] is not None for answer in asked.answers) > 10
        assert asked.failures.total() > 0
    finally:
        headrace(folder, "down", "--all")
    assert services.running(shop.config) == {}


def send(config, log, asked, seed):
    """Send payments while each process is killed once, at moments left to chance, and answers are collected."""
    chance = random.Random(seed)
    start = SystemClock().now() + SECOND
    made = sample_payments.payments(PER_SECOND * SECONDS, seed=21, start=start, per_second=PER_SECOND, cards=CARDS)
    sent = [payment for payment in made if payment.sent_at < start + SECONDS * SECOND]
    victims = ["spark", "serve", "redis"]
    chance.shuffle(victims)
    free = 1 - APART * len(victims)
    moments = [APART * number + share for number, share in enumerate(sorted(chance.uniform(0, free) for _ in victims))]
    left = list(zip(moments, victims, strict=True))

    def tick(done):
        if left and done >= left[0][0] * len(sent):
            name = left.pop(0)[1]
            os.kill(until(lambda: pid(config, name), f"{name} does not run"), signal.SIGKILL)
        asked.once(f"card-{int(CARDS * chance.random() ** 3):03}")

    stack.send(log, "payments", sent, tick)
    assert not left


def pid(config, name):
    if name == "redis":
        found = redis.running(redis.redis_folder(config))
        return None if found is None else found.pid
    return pid_of(config, name)


class Asked:
    """Whoever asks for features all the time, and notes what comes."""

    def __init__(self, url, view):
        self._url, self._view = url, view
        self.answers: list[dict[str, Any]] = []
        self.failures: Counter[str] = Counter()

    def once(self, card):
        try:
            with closing(stack.Reader(self._url)) as reader:
                answer = reader.features(self._view, card)
        except (OSError, HTTPException) as error:
            self.failures[type(error).__name__] += 1
            return
        if "error" in answer:
            self.failures[answer["error"]["code"]] += 1
        else:
            self.answers.append(answer)


class First:
    """The first events of a card, in the order in which they came, as an outcome of their own."""

    def __init__(self, view, events):
        self._held = ViewEvents(view, events)

    def values(self, view, key, moment, mode):
        return self._held.values(key, moment, mode)

    def events(self, view, key):
        return self._held.by_key.get(key, [])


def right_or_flagged(outcome, view, answer):
    """An answer holds a card's first events up to one that came between its `as_of` and its `at`, and them exactly.

    With one partition the events of a card are taken in the order in which they came, and all payments that count are
    in the window of ten minutes: so their count says which they are.
    """
    key, at, as_of = (answer["key"]["card"],), micros(answer["at"]), answer["as_of"]
    events = sorted(outcome.events(view, key), key=lambda event: event.place)
    held = answer["features"]["payments_10m"]
    assert held <= sum(event.place < (at,) for event in events), answer
    if as_of is None:
        assert answer["stale"], answer
        return
    assert held >= sum(event.place < (micros(as_of),) for event in events), answer
    assert differences(First(view, events[:held]), view, key, (at,), answer["features"]) == [], answer
