"""Payments, the tiles that a pipeline has made of them so far, and reads of those, as an audit meets them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import headrace as hr
from headrace.asof.lake import PastEvents
from headrace.clock import MINUTE, SECOND
from headrace.config.config import Names
from headrace.define.view import View
from headrace.log import MemoryLog, Record
from headrace.meaning.reference import ReferenceResult, contributing
from headrace.plan.build import build
from headrace.plan.model import Plan
from headrace.read.reader import Reader, ViewValues
from headrace.serve.served_samples import Samples
from headrace.skew.cause import Mismatch
from headrace.skew.compare import Against, judged
from headrace.skew.sample import Sample, read_sample
from headrace.store import MemoryStore
from headrace.testing import FakeClock, record
from headrace.tiles.changelog import ProgressRow, TileRow
from tests.serve.shape import rows_of
from tests.streams import BASE

PATIENCE = 5 * MINUTE
NAMES = Names("", "shop", Path("data"))

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "amount": float, "country": str, "at": hr.Timestamp},
    event_id="id",
    event_time="at",
    allowed_lateness="2m",
)


def cards_view(short: str = "10m") -> View:
    """Five features of a card; the shortest window is to be chosen."""
    return hr.view(
        "cards",
        payments,
        by="card",
        features={
            "payments_10m": hr.count(over=hr.trailing(short, resolution="10s")),
            "spend_1h": hr.sum("amount", over="1h"),
            "largest_1h": hr.max("amount", over="1h"),
            "countries_1d": hr.count_distinct("country", over="1d"),
            "last_country": hr.last("country", over="1d"),
        },
    )


cards = cards_view()
plan = build([cards])
(tile_set,) = plan.tile_sets


def history(count: int = 120, seed: int = 5, late: Iterable[int] = (30, 100)) -> list[Record]:
    """Payments of card "a" within two hours, of which some arrived ten minutes later."""
    chance, at, made = random.Random(seed), BASE, []
    for number in range(count):
        at += chance.choice([2, 3, 40, 70, 100]) * SECOND
        arrived = at + (10 * MINUTE if number in late else chance.randrange(1, 3 * SECOND))
        country = chance.choice(["DE", "FR", "PL", "US"])
        told = {"id": f"p{number}", "card": "a", "amount": round(chance.uniform(1, 900), 2), "country": country}
        made.append((arrived, told | {"at": at}))
    made.sort(key=lambda each: each[0])
    records = [record(payments, **told, arrived_at=arrived) for arrived, told in made]
    return [replace(each, offset=offset) for offset, each in enumerate(records)]


class World:
    """Records in one partition, in the order of their offsets."""

    def __init__(self, records: list[Record] | None = None) -> None:
        self.records = history() if records is None else records
        self.outcome = ReferenceResult(plan, self.records)
        self.now = max(each.arrived_at for each in self.records) + SECOND

    def rows(self, before: int | None = None) -> list[TileRow]:
        """The tiles of what had arrived before a moment."""
        return rows_of(self.outcome, tile_set, ((self.now if before is None else before),))

    def positions(self, before: int) -> dict[int, int]:
        """The offset behind what had arrived before a moment."""
        return {0: sum(each.arrived_at < before for each in self.records)}

    def said(self, before: int | None = None) -> ProgressRow:
        """That everything is included that had arrived before a moment."""
        moment = self.now if before is None else before
        return ProgressRow(tile_set.fingerprint, "1", self.positions(moment), moment)

    def read(
        self, rows: Iterable[TileRow], said: ProgressRow | None = None, key: str = "a", of: Plan = plan, t: int = 0
    ) -> ViewValues:
        """What serving answers that has these rows."""
        store = MemoryStore()
        reader = Reader(of, store)
        store.apply([*rows, said or self.said()], "changelog", {0: 1})
        return reader.read("cards", (key,), t or self.now)

    def kept(
        self,
        answer: ViewValues,
        said: ProgressRow | None = None,
        change: Callable[[dict[str, Any]], dict[str, Any]] = lambda values: values,
        of: Plan = plan,
    ) -> Sample:
        """The sample of an answer, as it stands in the log."""
        log = MemoryLog(clock=FakeClock(self.now + SECOND))
        log.create_topic("served.cards")
        samples = Samples(of, log, NAMES, 1.0)
        samples.offer(cards, replace(answer, values=change(dict(answer.values))), said or self.said())
        samples.step()
        (found,) = log.read("served.cards", 0, 0)
        return read_sample(cards, found)

    def past(self) -> PastEvents:
        """What the lake has, by the reference."""
        counted = contributing(payments.late, self.outcome.judged["payments"])
        return PastEvents(cards, [(event, lane == "late") for lane, event in counted])

    def wrong(self, sample: Sample) -> Mismatch | None:
        """What the audit says of a sample."""
        against = Against(cards, tile_set.grain, plan.versions["cards"], PATIENCE)
        return judged(against, self.past(), [sample])[0].mismatch
