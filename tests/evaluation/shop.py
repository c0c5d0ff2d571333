"""A project with a model and labels: predictions and labels in its log, archived and looked at as time goes by."""

from __future__ import annotations

import json
import random

import headrace as hr
from headrace import project
from headrace.cli.init import create
from headrace.clock import HOUR, MINUTE, SECOND, show_time
from headrace.config.config import names
from headrace.define.label import BINARY
from headrace.evaluation.cells import Cells
from headrace.evaluation.evaluation_pass import take_a_look
from headrace.lake.location import open_lake
from headrace.log.embedded.log import EmbeddedLog
from headrace.log.record import Message
from headrace.meaning.outcome import LabelEvent, outcome
from headrace.meaning.sums import Sums, of_prediction, total
from headrace.plan.build import build
from headrace.spark.archive.archive import StreamArchive
from headrace.spark.evaluation.outcome_sums import CellKey
from headrace.testing import FakeClock
from headrace.topics import create as create_topics
from headrace.topics import topics
from tests.evaluation.predicted import predicted
from tests.streams import BASE

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "amount": float, "at": hr.Timestamp},
    event_id="id",
    event_time="at",
)
cards = hr.view("cards", payments, by="card", features={"payments_1h": hr.count(over="1h")})
risk = hr.model("risk", hr.feature_set("habits", [cards]), stream=payments)
disputes = hr.stream(
    "disputes",
    fields={
        "id": str,
        "payment": str,
        "card": str,
        "paid_at": hr.Timestamp,
        "fraud": bool,
        "loss": float,
        "at": hr.Timestamp,
    },
    event_id="id",
    event_time="at",
    allowed_lateness="1h",
)
HORIZON = 6 * HOUR
by_id = hr.label(
    "chargeback", disputes, of=risk, on="payment", value="fraud", horizon="6h", default=False, segments=["card"]
)
by_key = hr.label("disputed", disputes, of=risk, on={"card": "card"}, at="paid_at", value="fraud", horizon="6h")
lost = hr.label("lost", disputes, of=risk, on="payment", value="loss", horizon="6h", default=0.0)
plan = build([payments, cards, risk, disputes, by_id, by_key, lost])
PREDICTIONS = risk.predictions


class Shop:
    """Predictions and labels as they come, and what a plain reading of all of them says."""

    def __init__(self, folder, spark, partitions=1):
        create(folder)
        (folder / "features.py").write_text("from tests.evaluation.shop import *\n")
        self.config, self.spark, self.partitions = project.load(folder).config, spark, partitions
        self.clock = FakeClock(BASE)
        self.log = EmbeddedLog(names(self.config).path("log"), clock=self.clock)
        create_topics(self.log, topics(plan, names(self.config), partitions))
        self.predictions, self.labels = {}, []
        self.archives = [
            StreamArchive(stream, stream.name, self.log, open_lake(self.config, stream), spark, self.clock)
            for stream in (PREDICTIONS, disputes)
        ]

    def predict(self, payment, score, version=1, card="a", features=None):
        """A prediction, made now."""
        at = self.clock.now()
        message = predicted(
            payment,
            score,
            at,
            event_time=at - SECOND,
            version=version,
            card=card,
            features=features or {"payments_1h": 1},
        )
        self.log.append_batch(PREDICTIONS.name, [message])
        self.predictions[f"{payment}@{version}"] = (payment, at, score, version, card)

    def label(self, number, payment, fraud, *, card="a", happened=None, paid_at=None, loss=None):
        """A label, sent now."""
        happened = self.clock.now() if happened is None else happened
        told = {
            "id": f"d{number}",
            "payment": payment,
            "card": card,
            "paid_at": show_time(paid_at or 0),
            "fraud": fraud,
            "loss": float(10 * fraud) if loss is None else loss,
            "at": show_time(happened),
        }
        ((partition, offset),) = [
            (place.partition, place.offset)
            for place in self.log.append_batch("disputes", [Message(json.dumps(told).encode(), payment.encode())])
        ]
        place = (self.clock.now(), partition, offset)
        self.labels.append((f"d{number}", LabelEvent(payment, happened, place, fraud), told["loss"]))

    def archive(self):
        """All of it in the lake; an append may take a moment to be seen."""
        self.clock.advance("10s")
        for each in self.archives:
            each.step(1_000_000)

    def look(self, label=by_id):
        return take_a_look(self.spark, self.config, self.log, label, self.clock)

    def cells(self, label=by_id):
        return {cell: each.sums for cell, each in Cells(self.config, label).newest().items()}

    def meant(self, label=by_id, until=None):
        """The sums that a plain reading of everything gives."""
        until = self.clock.now() if until is None else until
        found: dict[CellKey, list[Sums]] = {}
        first: dict[str, LabelEvent] = {}
        for name, told, loss in self.labels:
            first.setdefault(name, told if label.kind == BINARY else told._replace(value=loss))
        for payment, at, score, version, card in self.predictions.values():
            mine = [told for told in first.values() if told.of == payment]
            known = outcome(at, mine, until, HORIZON, label.default)
            part = of_prediction(score, score >= 0.5, known, binary=label.kind == BINARY)
            window = at - at % label.window
            for segment in (("", ""), *((name, card) for name in label.segments)):
                found.setdefault(CellKey(window, version, *segment), []).append(part)
        return {cell: total(found[cell]) for cell in sorted(found)}


def busy(shop, seed, minutes=600, every=7):
    """Some hours of predictions and of all kinds of labels; yields now and then, for whoever looks."""
    chance, number = random.Random(seed), 0
    waiting = []
    for minute in range(0, minutes, every):
        now = shop.clock.now()
        payment, card = f"p{minute}", chance.choice("ab")
        for version in (1, 2):
            shop.predict(payment, round(chance.random(), 3), version, card)
        waiting += [
            (now + chance.randrange(0, 500) * MINUTE, payment, chance.random() < 0.5)
            for _ in range(chance.choice([0, 0, 1, 1, 2]))
        ]
        if chance.random() < 0.1:
            waiting.append((now, f"unknown{minute}", True))
        shop.clock.advance(f"{every}m")
        for due, of, fraud in [each for each in waiting if each[0] <= shop.clock.now()]:
            number += 1
            # Some are told at once, some long after they happened, some twice.
            happened = due if chance.random() < 0.7 else due - chance.randrange(0, 50) * MINUTE
            shop.label(number, of, fraud, happened=happened)
            if chance.random() < 0.2:
                shop.label(number, of, fraud, happened=happened)
            if chance.random() < 0.1:
                number += 1
                shop.label(number, of, not fraud, happened=happened)
        waiting = [each for each in waiting if each[0] > shop.clock.now()]
        if chance.random() < 0.08:
            yield
    shop.clock.advance("8h")
    yield
