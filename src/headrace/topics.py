"""The topics a plan needs, and the log they are in.

Whoever comes first creates them: `headrace up`, `headrace send`, the pipeline. What goes into each is decided by those
who write to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from headrace.clock import Clock
from headrace.config import Config, Names, names
from headrace.log.embedded import EmbeddedLog
from headrace.log.protocol import Log
from headrace.log.topic import Topic
from headrace.plan.model import Plan

STATUS = "headrace.status"
LOOK_BACK = (64, 4096)
"""How many records at the end of the status topic are looked at: few, then many. Components speak every second."""


def open_log(config: Config, clock: Clock | None = None) -> EmbeddedLog:
    """The log of a project."""
    return EmbeddedLog(names(config).path("log"), clock=clock)


def topics(plan: Plan, named: Names, partitions: int) -> list[Topic]:
    """Every topic of a plan: events, refused and late records, tiles, and how everything is doing.

    >>> import headrace as hr
    >>> from pathlib import Path
    >>> from headrace.plan.build import build
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
    >>> [topic.name for topic in topics(build([users]), Names("", "shop", Path("data")), 2)]
    ['clicks', 'clicks.dead', 'changelog.clicks.by_user', 'headrace.status']
    """
    made = []
    for stage in plan.admissions:
        name = stage.stream.name
        made += [Topic(named.topic(name), partitions), Topic(named.topic(f"{name}.dead"), 1, True)]
        if stage.stream.late == "side_output":
            made.append(Topic(named.topic(f"{name}.late"), 1, True))
    made += [Topic(named.topic(f"changelog.{tiles.id}"), 1, True) for tiles in plan.tile_sets]
    return [*made, Topic(named.topic(STATUS), 1, True)]


def create(log: Log, wanted: Iterable[Topic]) -> None:
    """Create the topics that are not there; one that is keeps its partitions."""
    there = log.topics()
    for topic in wanted:
        partitions = there[topic.name].partitions if topic.name in there else topic.partitions
        log.create_topic(topic.name, partitions=partitions, compacted=topic.compacted, retention=topic.retention)


def last_status(log: Log, topic: str, components: Iterable[str]) -> dict[str, tuple[int, Any]]:
    """What each component last said of itself, with its arrival; those that have not spoken lately are left out."""
    if topic not in log.topics():
        return {}
    start, end = log.start_offsets(topic)[0], log.end_offsets(topic)[0]
    wanted = set(components)
    found: dict[str, tuple[int, Any]] = {}
    for back in LOOK_BACK:
        first = max(start, end - back)
        for record in log.read(topic, 0, first, limit=back):
            component = (record.key or b"").decode("utf-8", "replace")
            if component in wanted and record.value:
                found[component] = (record.arrived_at, json.loads(record.value))
        if first == start or wanted <= found.keys():
            break
    return found
