"""The models of the scoring process: none of them stops another, and one of request values alone is scored too."""

from __future__ import annotations

import json
import sys
import threading

import pytest

import headrace as hr
from headrace.clock import SECOND, show_time
from headrace.config.config import models_folder, parse
from headrace.log import MemoryLog
from headrace.log.record import Message
from headrace.plan.build import build
from headrace.plan.model_inputs import FittingModels, inputs_of
from headrace.processes.component import run_component
from headrace.scoring.model_processes import ModelProcess, ModelProcesses, command_of
from headrace.scoring.process import StreamScorer
from headrace.serve.dimensions import Dimensions
from headrace.status.records import ModelScoring
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
        self.scoring = StreamScorer(
            plan, config, self.log, MemoryStore(), Dimensions(), self.clock, plan.model("large"), lambda _: None
        )
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
    assert world.scoring.status().counts == {"scored": 1, "failed": 0}


def process(text):
    """A model's process that does no more than it is told; `report` is where it says how it goes."""

    def command(report):
        return [sys.executable, "-c", f"import os, sys, time; report = {report}\n{text}"]

    return command


class CountedProcess(ModelProcess):
    """Counts how often it was started."""

    starts = 0

    def _start(self):
        self.starts += 1
        super()._start()


GOES_ON = "while True: os.write(report, b'{\"champion\": 1}\\n'); time.sleep(0.01)"
ONCE = "os.write(report, b'{\"champion\": 2}\\n'); "


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("os._exit(3)", "It ended with exit code 3."),
        ("os.kill(os.getpid(), 11)", "It ended with SIGSEGV."),
        ("time.sleep(600)", "It did nothing for 0 s and was ended."),
    ],
)
def test_the_process_of_a_model_that_fails_is_started_again_and_no_other_is_touched(what, why):
    failing = CountedProcess("fraud", process(ONCE + what), hung_after=0.3, first=0.0)
    sound = ModelProcess("large", process(GOES_ON), hung_after=60.0)
    heard, stop = [], threading.Event()

    def tell(models):
        heard.append(models)
        seen = [each["fraud"].failing for each in heard]
        if failing.starts > 1 and why in seen and heard[-1]["large"] == ModelScoring(champion=1):
            stop.set()

    deadline = threading.Timer(30.0, stop.set)
    deadline.start()
    run_component(ModelProcesses([failing, sound], tell, 0.0), stop)
    deadline.cancel()
    assert why in [each["fraud"].failing for each in heard]
    assert failing.starts > 1
    assert heard[-1]["large"] == ModelScoring(champion=1)


def test_each_model_has_a_command_of_its_own(tmp_path):
    config = parse('[project]\nname = "shop"\n[env.eu]', tmp_path, {}, env="eu")
    words = command_of(config, "fraud")(7)
    assert words[1:] == [
        *("-m", "headrace.cli.main", "run", "score", "--model", "fraud", "--report", "7"),
        *("--project", str(tmp_path), "--env", "eu"),
    ]
