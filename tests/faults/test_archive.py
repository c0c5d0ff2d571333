"""The archive after a crash: every record is in the lake once with its verdict, and refused ones once in their topics.

A checker that knows nothing of Headrace looks at the tables.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import headrace as hr
from headrace.clock import MINUTE, SECOND, micros
from headrace.faults import NO_FAULTS
from headrace.lake.files import remove
from headrace.lake.layout import bronze_shape, silver_shape
from headrace.lake.location import Lake
from headrace.lake.table import LakeTable
from headrace.log import EmbeddedLog
from headrace.meaning.verdict import DEAD
from headrace.spark.dead_letter import present, walk
from headrace.testing import FakeClock
from tests.faults.image import CrashImages, at_each_point, copy
from tests.flow import flow, message
from tests.lake_checker import check

pytestmark = pytest.mark.spark

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "amount": float, "country": str, "at": hr.Timestamp},
    event_time="at",
    event_id="id",
    key="card",
    allowed_lateness="5m",
    max_clock_skew="1m",
    late="side_output",
)
PARTITIONS, RECORDS, BATCH = 2, 150, 60
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class World:
    """A log and a lake in a folder, opened anew."""

    def __init__(self, folder):
        self.folder = folder
        self.log = EmbeddedLog(folder / "log", clock=FakeClock(micros(NOW)))

    def send(self):
        """Everything there is to archive, partition by partition in small pieces."""
        self.log.create_topic("payments", partitions=PARTITIONS)
        for kind in ("dead", "late"):
            self.log.create_topic(f"payments.{kind}", compacted=True)
        sent = list(flow(RECORDS, seed=3, partitions=PARTITIONS, now=NOW))
        for at in range(0, RECORDS, 10):
            for partition in range(PARTITIONS):
                mine = [message(each) for each in sent[at : at + 10] if each["partition"] == partition]
                self.log.append_batch("payments", mine, partition=partition)
        (self.folder / "sent.jsonl").write_text("".join(json.dumps(each) + "\n" for each in sent))

    def archive(self, spark, faults=NO_FAULTS):
        """An archive as its process begins it: what a batch that was cut off had staged is nobody's."""
        from headrace.spark.archive.archive import StreamArchive
        from headrace.spark.archive.refused_records import Refusals

        tables = self.folder / "lake" / "payments"
        lake = Lake(
            LakeTable(str(tables / "bronze"), bronze_shape()),
            LakeTable(str(tables / "silver"), silver_shape(payments)),
            str(tables / "staging"),
            faults,
        )
        remove(lake.staging)
        refusals = Refusals(payments, self.log, "payments.dead", "payments.late", faults)
        clock = FakeClock(micros(NOW) + 10 * SECOND)
        return StreamArchive(payments, "payments", self.log, lake, spark, clock, refusals=refusals)

    def findings(self):
        """What an independent look at the tables finds, and the records by verdict."""
        lake = self.folder / "lake" / "payments"
        found = check(str(self.folder / "sent.jsonl"), str(lake), 5 * MINUTE, MINUTE)
        return {name: count for name, count in found["findings"].items() if count}, found["verdicts"]


@pytest.fixture(scope="module")
def images(spark, tmp_path_factory):
    """The second batch of three, and the end of one that was cut off between its two commits."""
    folder = tmp_path_factory.mktemp("archive")
    made = CrashImages(folder / "world", folder / "images", "lake", "refused")
    world = World(folder / "world")
    world.send()
    world.archive(spark).step(BATCH)
    world.archive(spark, made).step(BATCH)

    cut_off = folder / "cut-off"
    copy(made.of("lake.bronze.after")[0].folder, cut_off)
    after = CrashImages(cut_off, folder / "again", "lake", turns=(0,))
    World(cut_off).archive(spark, after).mend()
    for name, found in after.taken.items():
        made.taken.setdefault(name, []).extend(found)
    return made


@at_each_point("lake", "refused")
def test_every_record_is_in_the_lake_once_and_every_refused_one_in_its_topic(images, spark, name, tmp_path):
    for taken in images.of(name):
        copy(taken.folder, tmp_path / taken.folder.name)  # other tests look at the image, too
        world = World(tmp_path / taken.folder.name)
        archive = world.archive(spark)
        while archive.step():
            pass
        findings, verdicts = world.findings()
        assert findings == {}, taken
        assert sum(verdicts.values()) == RECORDS, taken
        dead = present(walk(world.log, "payments.dead"))
        assert len(dead) == sum(verdicts.get(verdict, 0) for verdict in DEAD) > 0, taken
        late = world.log.read("payments.late", 0, 0)
        assert len({record.key for record in late}) == verdicts["late"] > 0, taken
        assert not any(Path(archive.lake.staging).glob("*")), taken


@pytest.mark.parametrize("table", ["bronze", "silver"])
def test_every_commit_that_adds_rows_moves_the_position_in_it(images, table):
    """There is no instant between the two, so no image can show one without the other."""
    (taken,) = images.of("lake.silver.after")[:1]
    commits = sorted((taken.folder / "lake" / "payments" / table / "_delta_log").glob("*.json"))
    told = [[json.loads(line) for line in commit.read_text().splitlines()] for commit in commits]
    adding = [actions for actions in told if any("add" in action for action in actions)]
    assert len(adding) == 2, "one for each batch"
    for actions in adding:
        moved = {action["txn"]["appId"] for action in actions if "txn" in action}
        assert {"headrace.turn", "headrace.batch", *(f"headrace.offset.{p}" for p in range(PARTITIONS))} <= moved
