"""A pipeline and the archive beside it, over one project and in one Spark session."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from headrace.alarms.alarm import AlarmStatus
from headrace.config.config import names
from headrace.config.settings import ArchiveSettings
from headrace.status.records import ArchiveStatus, PipelineStatus, TileSetStatus
from headrace.status.streams import StreamStatus, collect_alarms, merge_streams
from headrace.status.topic import StatusRecords, read_status
from headrace.topics import STATUS


class Both:
    """The two processes of a project that read its streams."""

    def __init__(self, shop: Any, spark: Any, clock: Any) -> None:
        from headrace.spark.archive.component import Archiving
        from headrace.spark.pipeline.pipeline import Pipeline
        from headrace.spark.source import register

        register(spark)
        self.config, self.clock = replace(shop.config, archive=ArchiveSettings(every=0)), clock
        self.pipeline = Pipeline(shop.plan(), self.config, spark, clock)
        self.archiving = Archiving(shop.plan(), self.config, spark, clock)
        self.log = self.pipeline.log

    def turn(self) -> None:
        """Each does what it has to do now."""
        self.archiving.step()
        self.archiving.publish_status()
        self.pipeline.step()

    @property
    def records(self) -> StatusRecords:
        """What the two last published."""
        return read_status(self.log, names(self.config).topic(STATUS), PipelineStatus, ArchiveStatus)

    @property
    def tile_sets(self) -> dict[str, TileSetStatus]:
        return self.records.get(PipelineStatus).tile_sets

    @property
    def alarms(self) -> list[AlarmStatus]:
        return collect_alarms(self.records.get(PipelineStatus), self.records.get(ArchiveStatus))

    def settled(self, stream: str, read: int) -> StreamStatus:
        """How a stream stands once everything sent is counted; a turn moves a clock that stands still."""
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            if hasattr(self.clock, "advance"):
                self.clock.advance("1s")
            self.turn()
            found = merge_streams(self.records.get(PipelineStatus), self.records.get(ArchiveStatus))[stream]
            if found.settled and found.read == read:
                return found
            self.pipeline.queries[0].awaitTermination(0.1)
        raise AssertionError(found)

    def stop(self) -> None:
        """End both."""
        self.pipeline.stop()
        self.archiving.stop()
