"""A log with every case in it, and beside it the lake that an archive made of it.

A world is what engines work on: they read its log or its lake, and what they leave behind is held to what its records
mean (`compare.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.clock import DAY, MINUTE, Clock, SystemClock
from headrace.define.stream import Stream
from headrace.lake.layout import bronze_shape, silver_shape
from headrace.lake.location import Lake
from headrace.lake.table import LakeTable
from headrace.log.embedded.log import EmbeddedLog
from headrace.log.kafka.log import KafkaLog
from headrace.log.protocol import Log
from headrace.log.record import Record
from headrace.plan.model import Plan
from headrace.testing import FakeClock
from tests.conformance.cases import Appended, Case, messages_of
from tests.conformance.definitions import ARRIVED, PARTITIONS, clicks, orders, plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOGETHER = 5 * MINUTE
"""What is appended within so much time may reach Kafka in one millisecond, where partitions are read one by one."""
FEW_COLUMNS = ("windows", "clickers")
"""What is computed is the same everywhere, so these views will do where only the way of the records is another."""


@dataclass(frozen=True, eq=False)
class World:
    """Cases in a log, under a plan that reads their arrival from where this log has it.

    The archive's first batch takes `first_slice` records of each topic, the second the rest.
    """

    cases: Sequence[Case]
    plan: Plan
    log: Log
    clock: Clock
    folder: Path
    first_slice: int = 1_600

    @cached_property
    def records(self) -> list[Record]:
        """Every record as the log holds it."""
        return [
            record
            for topic in ("orders", "clicks")
            for partition, end in self.log.end_offsets(topic).items()
            for record in read_all(self.log, topic, partition, end)
        ]

    def stream(self, name: str) -> Stream:
        """A stream as the plan has it."""
        return next(stage.stream for stage in self.plan.admissions if stage.stream.name == name)

    def archived(self, session: SparkSession) -> Iterator[dict[str, Lake]]:
        """The lake of each stream, while it grows: after every batch of the archive, until nothing is left."""
        from headrace.spark.archive.archive import StreamArchive

        lakes = {stage.stream.name: self._lake(stage.stream.name) for stage in self.plan.admissions}
        archives = [StreamArchive(self.stream(n), n, self.log, lake, session, self.clock) for n, lake in lakes.items()]
        for most in (self.first_slice, len(self.records) + 1):
            for archive in archives:
                archive.step(most)
            yield lakes

    def _lake(self, name: str) -> Lake:
        place = self.folder / "lake" / name
        return Lake(
            LakeTable(str(place / "bronze"), bronze_shape()),
            LakeTable(str(place / "silver"), silver_shape(self.stream(name))),
            str(place / "staging"),
        )


def embedded_world(cases: Sequence[Case], folder: Path, only: Sequence[str] = ()) -> World:
    """The cases in an embedded log, whose clock is set to the arrival of every record."""
    appended = messages_of(cases)
    clock = FakeClock(appended[0].at)
    log = EmbeddedLog(folder / "log", clock=clock)
    _create(log)
    for (moment, topic, partition), together in groupby(appended, lambda each: each[:3]):
        if moment > clock.now():
            clock.advance(f"{moment - clock.now()}us")
        log.append_batch(topic, [each.message for each in together], partition=partition)
    clock.advance(f"{DAY}us")
    return World(cases, plan_of(only=only), log, clock, folder)


class _Later(SystemClock):
    """Ahead of the broker's, so that everything appended has arrived."""

    def now(self) -> int:
        return super().now() + MINUTE


def kafka_world(cases: Sequence[Case], folder: Path, brokers: str) -> World:
    """The cases in Kafka, whose own clock cannot be set: arrival is in a header, and appends keep its order."""
    log, clock = KafkaLog(brokers), SystemClock()
    _create(log)
    for _, together in groupby(messages_of(cases), lambda each: each.at // TOGETHER):
        after = _append(log, list(together))
        while clock.now() <= after:
            pass  # Less than a millisecond: the next append must be told from this one.
    return World(cases, plan_of(f"header:{ARRIVED}", FEW_COLUMNS), log, _Later(), folder)


def appended_at_once(cases: Sequence[Case], folder: Path, clock: FakeClock, arrival: str, only: Sequence[str]) -> World:
    """The cases in an embedded log that took all of them at one time, whatever they say of their arrival."""
    log = EmbeddedLog(folder / "log", clock=clock)
    _create(log)
    for each in messages_of(cases):
        log.append_batch(each.topic, [each.message], partition=each.partition)
    clock.advance(f"{DAY}us")
    return World(cases, plan_of(arrival, only), log, clock, folder, first_slice=1)


def _append(log: Log, appended: Sequence[Appended]) -> int:
    """Append messages, partition by partition; when all of that millisecond is over."""
    places = sorted(appended, key=lambda each: each[1:3])
    for (topic, partition), mine in groupby(places, lambda each: each[1:3]):
        log.append_batch(topic, [each.message for each in mine], partition=partition)
    return SystemClock().now() + 1_000


def _create(log: Log) -> None:
    for stream in (orders, clicks):
        log.create_topic(stream.name, partitions=PARTITIONS)


def read_all(log: Log, topic: str, partition: int, end: int) -> Iterator[Record]:
    """The records of a partition up to an offset."""
    at = 0
    while at < end and (found := log.read(topic, partition, at, limit=10_000)):
        yield from found
        at = found[-1].offset + 1
