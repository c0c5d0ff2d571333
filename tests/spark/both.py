"""A pipeline and the archive beside it, over one project and in one Spark session."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from headrace.config.config import names
from headrace.config.settings import ArchiveSettings
from headrace.standing import alarms, streams
from headrace.topics import STATUS, last_status


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
        self.archiving.tell(now=True)
        self.pipeline.step()

    def status(self) -> dict[str, Any]:
        """What the two last said, put together."""
        heard = last_status(self.log, names(self.config).topic(STATUS), ["pipeline", "archive"])
        pipeline, archive = (heard[name][1] for name in ("pipeline", "archive"))
        return {**pipeline, "streams": streams(pipeline, archive), "alarms": alarms(pipeline, archive)}

    def settled(self, stream: str, read: int) -> dict[str, Any]:
        """How a stream stands once everything sent is counted; a turn moves a clock that stands still."""
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            if hasattr(self.clock, "advance"):
                self.clock.advance("1s")
            self.turn()
            told: dict[str, Any] = self.status()["streams"][stream]
            if told["settled"] and told["read"] == read:
                return told
            self.pipeline.queries[0].awaitTermination(0.1)
        raise AssertionError(told)

    def stop(self) -> None:
        """End both."""
        self.pipeline.stop()
        self.archiving.stop()
