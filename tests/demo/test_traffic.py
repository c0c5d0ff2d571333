"""Scores as they come out: each payment once, alarms counted, what is shown of them."""

from __future__ import annotations

import io
import json

import pytest

from headrace.clock import show_time
from headrace.config.config import parse
from headrace.define.model import predictions_of
from headrace.log import EmbeddedLog, Message
from headrace_demo.screen import line, picture
from headrace_demo.traffic import Predictions, Scored, Seen
from headrace_demo.world.stream import Sent

FEATURES = {"payments_10m": 4, "km_per_hour": 2_000.0}


def sent(name, *, is_fraud=False, kind="payment"):
    event = {"id": name, "card": "card-1", "amount": 12.5, "country": "DE"}
    return Sent(0, event, b"{}", b"card-1", is_fraud, kind, "velocity" if is_fraud else "ordinary")


def scored(score):
    return Scored(0, score, score > 0.5, 12.0, 900.0, FEATURES)


@pytest.fixture
def seen():
    return Seen([sent("a"), sent("b", is_fraud=True), sent("c", is_fraud=True), sent("a", kind="duplicate")])


def test_each_payment_counts_once_and_alarms_by_what_they_are_in_truth(seen):
    for name, score in (("a", 0.9), ("a", 0.1), ("b", 0.8), ("stranger", 0.9)):
        seen.add(name, scored(score))
    assert (seen.alarms, seen.caught, seen.frauds, seen.complete) == (2, 1, 1, False)
    assert seen.scored["a"].score == 0.9
    seen.add("c", scored(0.2))
    assert (seen.alarms, seen.caught, seen.frauds, seen.complete) == (2, 1, 2, True)


def test_predictions_are_read_as_they_are_written(tmp_path, seen):
    class Shop:
        config = parse('[project]\nname = "shop"', tmp_path, {})

    topic = predictions_of("risk").name
    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic(topic, partitions=2)
        predictions = Predictions(Shop(), log, "risk")
        predictions.read(seen)
        assert not seen.scored
        for name in ("a", "b"):
            told: dict[str, object] = {
                "event_id": name,
                "at": show_time(7),
                "score": 0.75,
                "decision": True,
                "latency_ms": 3.5,
            }
            told |= {"freshness_ms": None, "features": json.dumps(FEATURES)}
            log.append_batch(topic, [Message(json.dumps(told).encode(), name.encode())])
            predictions.read(seen)
            assert seen.scored[name] == Scored(7, 0.75, True, 3.5, None, FEATURES)


def test_what_is_shown_says_how_it_stands(seen):
    assert "0 scored" in line(seen)
    seen.done = 3
    seen.add("b", scored(0.8))
    shown = " ".join(line(seen).split())
    assert shown == "3 sent 1 scored 1 alarms, 1 of 1 frauds among them; scored 12 ms after arrival"

    from rich.console import Console

    console = Console(width=100, record=True, file=io.StringIO())
    console.print(picture(seen))
    shown = console.export_text()
    assert all(word in shown for word in ("card-1", "12.50", "DE", "0.80", "2,000", "velocity"))
