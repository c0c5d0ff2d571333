"""A project whose log and lake have payments: what an audit and a backfill work on."""

from __future__ import annotations

from msgspec.structs import replace

from headrace import project
from headrace.cli.init import create
from headrace.config.config import names
from headrace.lake.location import open_lake
from headrace.log.embedded.log import EmbeddedLog
from headrace.log.record import Message
from headrace.serve.served_samples import Samples
from headrace.skew.audit import audit
from headrace.spark.archive.archive import StreamArchive
from headrace.testing import FakeClock
from headrace.topics import create as create_topics
from headrace.topics import topics
from tests.skew.world import World, cards, payments, plan
from tests.streams import BASE


class Shop:
    """A project whose log and lake have payments, and whose reads are kept."""

    def __init__(self, folder, spark):
        create(folder)
        (folder / "features.py").write_text("from tests.skew.world import cards, payments\n")
        self.config = project.load(folder).config
        self.clock, self.spark = FakeClock(BASE), spark
        self.log = EmbeddedLog(names(self.config).path("log"), clock=self.clock)
        create_topics(self.log, topics(plan, names(self.config), 1))
        self.world = World()

    def send(self):
        """The records of the world, each at its time."""
        for each in self.world.records:
            self.clock.advance(f"{each.arrived_at - self.clock.now()}us")
            self.log.append_batch("payments", [Message(each.value, each.key)])
        self.clock.advance("1s")

    def archive(self):
        """All of it in the lake."""
        StreamArchive(payments, "payments", self.log, open_lake(self.config, payments), self.spark, self.clock).step(
            1_000_000
        )

    def serve(self, rows, change=lambda values: values):
        """A read of card "a" now, kept."""
        samples = Samples(plan, self.log, names(self.config), 1.0)
        answer = self.world.read(rows, t=self.clock.now())
        samples.offer(cards, replace(answer, values=change(dict(answer.values))), self.world.said())
        samples.step()
        self.clock.advance("1s")

    def audit(self):
        return audit(plan, self.config, self.log, BASE, self.clock.now())
