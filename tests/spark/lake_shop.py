"""A project of two streams with a lake whose late lanes are published, so that a look at them needs no Spark."""

from __future__ import annotations

import json
from pathlib import Path

import headrace as hr
from headrace.clock import MINUTE
from headrace.config import config
from headrace.lake.imports import positions
from headrace.lake.layout import SILVER
from headrace.lake.location import find_tables
from headrace.plan.build import build
from headrace.spark.archive.component import Archiving
from headrace.spark.late.component import LateLanes
from headrace.status.records import ArchiveStatus, LateStatus
from headrace.status.topic import read_status
from headrace.testing import FakeClock
from headrace.topics import STATUS
from tests.lake.bronze import fill, record
from tests.streams import BASE

FIELDS = {"id": str, "card": str, "amount": float, "country": str, "at": hr.Timestamp}
STREAMS = [hr.stream(name, fields=FIELDS, event_id="id", event_time="at") for name in ("orders", "payments")]
PLAN = build([hr.view(each.name, each, by="card", features={"n": hr.count(over="1h")}) for each in STREAMS])


class Shop:
    """A project of two streams with a lake, of which the late lanes have published everything."""

    def __init__(self, folder: Path) -> None:
        text = '[project]\nname = "shop"\n[log]\npartitions = 1\n'
        self.config, self.clock = config.parse(text, folder, {}), FakeClock(BASE)

    def fill(self) -> None:
        """Write the lake, and publish the late lanes of it."""
        for stream in STREAMS:
            fill(self.config, stream, [[record(0, number, BASE, MINUTE) for number in range(3)]])
        lanes = self.lanes()
        lanes._follow_runs()
        for publication in lanes._lanes.values():
            lane = publication.lane
            done = positions(find_tables(self.config, lane.tile_set.stream)[SILVER])
            lane.checkpoint.parent.mkdir(parents=True, exist_ok=True)
            lane.checkpoint.write_text(json.dumps(done))
        lanes.stop()

    def lanes(self) -> LateLanes:
        # Nothing is new, so there is nothing to ask Spark for.
        return LateLanes(PLAN, self.config, None, self.clock)

    def archiving(self) -> Archiving:
        return Archiving(PLAN, self.config, None, self.clock)

    def newest(self, table: str = SILVER) -> Path:
        """The newest commit of a table of payments."""
        return max(config.names(self.config).path("lake", "payments", table, "_delta_log").glob("*.json"))

    def late_status(self, lanes: LateLanes) -> LateStatus:
        """The last status of the late lanes."""
        found = read_status(lanes.log, config.names(self.config).topic(STATUS), LateStatus).get(LateStatus)
        assert found is not None
        return found

    def archive_status(self, archive: Archiving) -> ArchiveStatus:
        """The last status of the archive."""
        found = read_status(archive.log, config.names(self.config).topic(STATUS), ArchiveStatus).get(ArchiveStatus)
        assert found is not None
        return found
