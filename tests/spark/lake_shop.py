"""A project of two streams with a lake whose late lanes are published, so that a look at them needs no Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.clock import MINUTE
from headrace.config import config
from headrace.lake.imports import positions
from headrace.lake.layout import SILVER
from headrace.lake.location import look
from headrace.plan.build import build
from headrace.spark.archive.component import Archiving
from headrace.spark.late.component import LateLanes
from headrace.testing import FakeClock
from headrace.topics import STATUS, last_status
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
            done = positions(look(self.config, lane.tile_set.stream)[SILVER])
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

    def said(self, component: LateLanes | Archiving, name: str) -> Any:
        """What a component last said of itself."""
        return last_status(component.log, config.names(self.config).topic(STATUS), [name])[name][1]
