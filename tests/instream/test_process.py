"""The models of the scoring process: none of them stops another, and one of request values alone is scored too."""

from __future__ import annotations

import json

import pytest

import headrace as hr
from headrace.clock import SECOND, show_time
from headrace.config import models_folder, names, parse
from headrace.instream import process
from headrace.instream.process import Scoring
from headrace.log import MemoryLog
from headrace.log.record import Message
from headrace.plan.build import build
from headrace.plan.inputs import FittingModels, inputs_of
from headrace.serve.dimensions import Dimensions
from headrace.store import MemoryStore
from headrace.testing import FakeClock

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "amount": float, "at": hr.Timestamp},
    event_id="id",
    event_time="at",
)
cards = hr.view("cards", payments, by="card", features={"n": hr.count(over="1h")})


@hr.on_demand(request={"amount": float})
def is_large(amount) -> bool:
    return bool(amount > 100)


activity, size = hr.feature_set("activity", [cards]), hr.feature_set("size", [is_large])
plan = build([hr.model("fraud", activity, stream=payments), hr.model("large", size, stream=payments)])
BASE = 1_767_225_600 * SECOND


class World:
    """A log, a store that nothing fills, and two models with a champion each."""

    def __init__(self, tmp_path):
        self.clock, self.log = FakeClock(BASE), MemoryLog(clock=FakeClock(BASE))
        config = parse('[project]\nname = "shop"', tmp_path, {})
        models = FittingModels(models_folder(config), self.clock).bind(plan)
        for name, features in (("fraud", activity), ("large", size)):
            file = tmp_path / f"{name}.py"
            file.write_text("score = lambda row: 0.25 + 0.5 * bool(row.get('is_large'))\n")
            made = models.add(name, file, features=features.name, allow_code=True, columns=inputs_of(plan, features))
            models.promote(name, made.version)
        self.named = names(config)
        self.scoring = Scoring(plan, config, self.log, MemoryStore(), Dimensions(), self.clock)
        self.scoring.step()

    def pay(self, id, amount):
        row = {"id": id, "card": "a", "amount": amount, "at": show_time(BASE)}
        self.log.append_batch("payments", [Message(json.dumps(row).encode(), b"a")])

    def predictions(self, model):
        topic = f"predictions.{model}"
        found = [self.log.read(topic, partition, 0) for partition in self.log.end_offsets(topic)]
        return [json.loads(record.value) for records in found for record in records]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_a_model_of_request_values_alone_scores_the_events_of_its_stream(world):
    world.pay("p1", 250.0)
    world.scoring.step()
    (told,) = world.predictions("large")
    assert (told["score"], told["features"], told["request"]) == (0.75, '{"is_large":true}', '{"amount":250.0}')
    assert (told["key"], told["positions"], told["as_of"], told["freshness_ms"]) == ("{}", "{}", None, None)
    assert told["stale"] is False


def test_a_model_that_fails_stops_no_other_and_goes_on_where_it_was(world, monkeypatch):
    fraud, large = world.scoring.models
    monkeypatch.setattr(process, "FIRST", 0.0)

    def fail(_come):
        raise ValueError("min() arg is an empty sequence")

    fraud._delay = 0.0
    monkeypatch.setattr(fraud.scoring, "step", fail)
    world.pay("p1", 250.0)
    world.scoring.step()
    assert [told["event_id"] for told in world.predictions("large")] == ["p1"]
    assert world.predictions("fraud") == []
    world.scoring.tell()
    (status,) = [json.loads(each.value) for each in world.log.read(world.named.topic("headrace.status"), 0, 0)][-1:]
    assert status["models"]["fraud"]["failing"] == "ValueError: min() arg is an empty sequence"
    assert status["models"]["large"]["failing"] is None
    world.scoring.step()
    assert [told["event_id"] for told in world.predictions("fraud")] == ["p1"]
    assert (fraud.failure, large.failure) == (None, None)


def test_what_fails_for_every_model_ends_the_process(world, monkeypatch):
    def fail(_come):
        raise OSError("the log is away")

    for each in world.scoring.models:
        monkeypatch.setattr(each.scoring, "step", fail)
    with pytest.raises(OSError, match="the log is away"):
        world.scoring.step()
