"""A project in a folder over a generated stream, and what the reference says of its tiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.clock import DAY, HOUR, SECOND
from headrace.config.config import Config, names, parse
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.lake.location import Lake, open_lake
from headrace.log import EmbeddedLog, Message
from headrace.meaning.reference import ReferenceResult
from headrace.plan.build import build
from headrace.testing import FakeClock
from headrace.tiles.changelog import TileRow
from headrace.tiles.changelog_format import decode
from headrace.topics import create, topics
from tests.serve.shape import decoder
from tests.streams import BASE, payments, seeded

PARTITIONS = 3
CARDS = hr.view("cards", payments, by="card", features={"n": hr.count(over="10m"), "sum": hr.sum("cents", over="1h")})
PLAN = build([CARDS])
(TILES,) = PLAN.tile_sets
CHANGELOG = f"changelog.{TILES.id}"
RECORDS = seeded(seed=6, cases=6, size=30)
LATER = BASE + 2 * DAY
"""Long after the last record, so that history reaches all of them."""


def states(log: EmbeddedLog, run: str) -> dict[tuple[Any, int, str], dict[str, Any]]:
    """What the changelog holds of a run: the partial columns of every key, tile and lane."""
    newest: dict[tuple[Any, int, str], tuple[int, bytes]] = {}
    read = decoder((column.name, column.monoid) for column in TILES.partials)
    for record in log.read(CHANGELOG, 0, 0, limit=1_000_000, max_bytes=10**9):
        said = json.loads(record.key or b"{}")
        if said["run"] == run and "progress" not in said:
            row = decode(record.key, record.value)
            assert isinstance(row, TileRow)
            place = (row.key, row.tile, row.lane)
            if place not in newest or newest[place][0] <= row.version:
                newest[place] = (row.version, row.partials)
    return {place: read(partials) for place, (_, partials) in newest.items()}


def meant(*lanes: str) -> dict[tuple[Any, int, str], dict[str, Any]]:
    """The same from the records, of some lanes."""
    found = {place: held for place, held in ReferenceResult(PLAN, RECORDS).tiles(TILES).items() if place[2] in lanes}
    assert len(found) > 5, "the records must lead to tiles of these lanes"
    return found


class Replayed:
    """Log, lake and checkpoints of a project, opened; the clock stands long after the last record."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config: Config = parse('[project]\nname = "shop"', folder, {})
        self.clock = FakeClock(LATER)
        self.log = EmbeddedLog(names(self.config).path("log"), clock=self.clock)

    def send(self) -> None:
        """Every record, when it arrived."""
        clock = FakeClock(BASE - HOUR)
        with EmbeddedLog(names(self.config).path("log"), clock=clock) as log:
            create(log, topics(PLAN, names(self.config), PARTITIONS))
            for each in sorted(RECORDS, key=lambda one: (one.arrived_at, one.partition, one.offset)):
                if each.arrived_at > clock.now():
                    clock.advance(f"{each.arrived_at - clock.now()}us")
                log.append_batch("payments", [Message(each.value, each.key)], partition=each.partition)

    def lake(self, faults: FaultPoints = NO_FAULTS) -> Lake:
        """The stream's tables."""
        found = open_lake(self.config, payments)
        return Lake(found.bronze, found.silver, found.staging, faults)

    def archive(self, spark: Any, most: int = 10_000) -> None:
        """One batch of records into the lake."""
        from headrace.spark.archive.archive import StreamArchive

        self.clock.advance(f"{SECOND}us")
        assert StreamArchive(payments, "payments", self.log, self.lake(), spark, self.clock).step(most) is not None
