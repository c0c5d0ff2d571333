"""Scoring in the stream after a crash: every event has its prediction or the reason why not, with the same values.

Until the position is stored, events are scored again, under the same ids.
"""

from __future__ import annotations

import json

import pytest

from headrace.clock import SECOND, show_time
from headrace.config.config import Names
from headrace.faults import NO_FAULTS
from headrace.log import EmbeddedLog, Message
from headrace.meaning.equality import differences
from headrace.meaning.reference import ReferenceResult
from headrace.plan.model_inputs import FittingModels, inputs_of
from headrace.read.reader import Reader
from headrace.scoring.features import EventFeatures
from headrace.scoring.stream_scoring import StreamScoring
from headrace.serve.dimensions import Dimensions
from headrace.store import MemoryStore
from headrace.testing import FakeClock
from headrace.topics import create, topics
from tests.faults.image import CrashImages, at_each_point
from tests.scoring.test_stream_scoring import cards, fraud, habits, plan
from tests.streams import BASE

MODEL = "def score(row):\n    return (row['n'] or 0) / (0 if row['n'] == 3 else 100)\n"
"""It fails for the third event of a card."""
EVENTS = 12
AT_ONCE = 3


class World:
    """A folder with a log and models, opened; the store is filled by nobody."""

    def __init__(self, folder):
        self.named, self.clock = Names("", "shop", folder), FakeClock(BASE - SECOND)
        self.log = EmbeddedLog(folder / "log", clock=self.clock)
        self.models = FittingModels(folder / "models", self.clock).bind(plan)

    def begin(self, folder):
        """What is there before anything is scored."""
        create(self.log, topics(plan, self.named, 2))
        file = folder / "model.py"
        file.write_text(MODEL)
        self.models.add("fraud", file, features="habits", allow_code=True, columns=inputs_of(plan, habits))
        self.models.promote("fraud", 1)

    def pay(self, low, high):
        """Some payments, a second apart."""
        for number in range(low, high):
            self.clock.advance(f"{BASE + number * SECOND - self.clock.now()}us")
            card = "ab"[number % 2]
            row = {"id": f"p{number}", "card": card, "amount": 1.0, "at": show_time(self.clock.now())}
            self.log.append_batch("payments", [Message(json.dumps(row).encode(), card.encode())])

    def score(self, low, faults=NO_FAULTS):
        """Score what is there and what comes, a few events at a time."""
        features = EventFeatures(fraud, plan, Reader(plan, MemoryStore()), Dimensions())
        scoring = StreamScoring(fraud, features, self.log, self.named, self.models, self.clock, faults=faults)
        scoring.refresh()
        for first in range(low, EVENTS + 1, AT_ONCE):
            while scoring.step():
                scoring.note(now=True)
            self.pay(first, min(first + AT_ONCE, EVENTS))

    def read(self, topic):
        records = [record for p in self.log.end_offsets(topic) for record in self.log.read(topic, p, 0)]
        return [json.loads(record.value) for record in records]

    @property
    def payments(self):
        return [record for p in (0, 1) for record in self.log.read("payments", p, 0)]

    def outcomes(self):
        """Of every event what was said of it, each time: a score, or none."""
        found: dict[str, list[float | None]] = {}
        for each in self.read("predictions.fraud"):
            found.setdefault(each["event_id"], []).append(each["score"])
        for each in self.read("predictions.fraud.failed"):
            found.setdefault(each["event_id"], []).append(None)
        return found


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scoring")
    made = CrashImages(folder / "world", folder / "images", "scoring")
    world = World(folder / "world")
    world.begin(folder)
    world.score(0, made)
    return made


@at_each_point("scoring")
def test_every_event_is_scored_and_what_is_scored_again_is_the_same(images, name):
    for taken in images.of(name):
        world = World(taken.folder)
        payments = world.payments
        position = world.log.committed("shop.score.fraud", "payments")
        passed = [json.loads(each.value)["id"] for each in payments if each.offset < position.get(each.partition, 0)]
        assert set(passed) <= world.outcomes().keys(), "the position is behind an event that nothing is said of"
        world.score(len(payments))

        outcome, found = ReferenceResult(plan, world.payments), world.outcomes()
        assert found.keys() == {f"p{number}" for number in range(EVENTS)}, taken
        for each in outcome.judged["payments"]:
            (arrived, partition, offset), event = each.place, each.event
            n = outcome.values(cards, (event.row["card"],), (arrived, partition, offset + 1))["n"]
            assert set(found[event.event_id]) == {None if n == 3 else n / 100}, taken
        for each in world.read("predictions.fraud"):
            (judged,) = (one for one in outcome.judged["payments"] if one.event.event_id == each["event_id"])
            arrived, partition, offset = judged.place
            key = (json.loads(each["key"])["card"],)
            assert (
                differences(outcome, cards, key, (arrived, partition, offset + 1), json.loads(each["features"])) == []
            )
