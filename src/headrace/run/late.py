"""The late lane: what neither batch nor stream of a run has, per tile, from the lake into the changelog.

A pass looks at what came into silver since the last one. Tiles that got such an event are computed anew from all of
theirs and published whole, with the lake's turn as their version; so a pass that was cut off, or runs twice, changes
nothing. The archive reads partitions in step by arrival: when an event is in silver, so is every copy that came before
it. Which events these are is `run.reach`'s business.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from headrace.lake.counters import TURN
from headrace.lake.imports import positions
from headrace.lake.layout import BRONZE_COLUMNS
from headrace.lake.place import Lake
from headrace.log.protocol import Log
from headrace.plan.model import TileSet
from headrace.run.admit import ARRIVED, EVENT_TIME, OFFSET, PARTITION
from headrace.run.append import in_parts, messages
from headrace.run.kept import rows_of
from headrace.run.reach import LATE, before, in_late_lane
from headrace.run.silver import events
from headrace.run.tiles import Target, changelog, tiles
from headrace.run.verdict import ARRIVED_AT
from headrace.store.changelog import HandOver
from headrace.whole import write_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FRESH = "~fresh"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pass:
    """What one pass published."""

    events: int
    tiles: int
    last_arrival: int | None


@dataclass(frozen=True)
class Run:
    """The run whose late lane it is, and how many partitions its stream has."""

    name: str
    hand_over: HandOver | None
    partitions: int


class LateLane:
    """Publishes the late lane of one run of a tile set.

    Parameters
    ----------
    checkpoint
        A file that keeps how far it has come. Without it everything is published again, which changes nothing.
    """

    def __init__(self, tile_set: TileSet, run: Run, lake: Lake, log: Log, topic: str, checkpoint: Path) -> None:
        self.tile_set, self.run, self.lake = tile_set, run, lake
        self.log, self.topic, self.checkpoint = log, topic, checkpoint
        self.done = _read(checkpoint)

    def step(self, session: SparkSession) -> Pass:
        """Publish the tiles of what has come into the lake since the last pass."""
        silver = self.lake.silver
        silver.refresh()
        reached = positions(silver)
        moved = {p: (self.done.get(p, 0), end) for p, end in reached.items() if end > self.done.get(p, 0)}
        if not moved:
            return Pass(0, 0, None)
        version = silver.counter(TURN) or 0
        spans, count, last = self._fresh(session, moved)
        published = self._publish(session, spans, version) if count else 0
        self.done = reached
        write_whole(self.checkpoint, json.dumps(reached))
        self.lake.faults.reach("late.checkpoint.after")
        return Pass(count, published, last)

    def _fresh(
        self, session: SparkSession, moved: Mapping[int, tuple[int, int]]
    ) -> tuple[list[tuple[int, int]], int, int | None]:
        """The tiles that have something new, as spans of time; how many events that is, and when the last arrived."""
        grain = self.tile_set.grain
        files = self.lake.silver.files("_offset", [(start, end - 1) for start, end in moved.values()])
        rows = events(session, self.lake.silver, self.tile_set.stream, files=files).where(f"NOT {before(self.done)}")
        tile = f"`{EVENT_TIME}` - pmod(`{EVENT_TIME}`, {grain})"
        seen = [F.expr(text) for text in ("count(1)", f"max(`{ARRIVED}`)", f"count_if(NOT `{LATE}`)")]
        told = self._mine(rows).groupBy(F.expr(tile).alias("tile")).agg(*seen).collect()
        spans = _joined([(row[0], row[0] + grain) for row in sorted(told)])
        if any(row[3] for row in told):
            told = self._uncopied(self._mine(rows), session, spans).groupBy(F.expr(tile)).agg(*seen).collect()
        return spans, sum(row[1] for row in told), max((row[2] for row in told), default=None)

    def _mine(self, rows: DataFrame) -> DataFrame:
        """The events of this lane."""
        return rows.where(in_late_lane(self.run.hand_over, self.tile_set.stream.late))

    def _uncopied(self, mine: DataFrame, session: SparkSession, spans: list[tuple[int, int]]) -> DataFrame:
        """Events without those of which the stream counts a copy: of imported or replayed ones it may have another.

        The lake keeps the copy that it met first, the stream one that came to it on time.
        """
        bronze, stream = self.lake.bronze, self.tile_set.stream
        bronze.refresh()
        files = bronze.files("event_time", [(low, high - 1) for low, high in spans])
        copies = rows_of(session, bronze, files, BRONZE_COLUMNS)
        again = f"exists(headers, h -> h.key = '{ARRIVED_AT}')"
        closed = f"({again} AND unix_micros(appended_at) - unix_micros(event_time) > {stream.allowed_lateness})"
        streamed = copies.where(f"verdict = 'duplicate' AND partition >= 0 AND NOT {closed}").selectExpr(
            f"first_partition AS `{PARTITION}`", f"first_offset AS `{OFFSET}`"
        )
        kept = mine.where(f"NOT `{LATE}`").join(streamed.distinct(), [PARTITION, OFFSET], "left_anti")
        return kept.unionByName(mine.where(f"`{LATE}`"))

    def _publish(self, session: SparkSession, spans: list[tuple[int, int]], version: int) -> int:
        """Compute the tiles within spans from all their events, and append those that have something new."""
        target = Target(self.run.name, "late", self.run.partitions, version=version)
        mine = self._mine(events(session, self.lake.silver, self.tile_set.stream, spans))
        fresh = {FRESH: f"max(NOT {before(self.done)})"}
        made = tiles(self._uncopied(mine, session, spans), self.tile_set, self.run.partitions, fresh)
        rows = messages(changelog(made.where(f"`{FRESH}`"), self.tile_set, target).toArrow())
        self.lake.faults.reach("late.tiles.before")
        for part in in_parts(rows):
            self.log.append_batch(self.topic, part)
            self.lake.faults.reach("late.tiles.after")
        return len(rows)


def late_file(checkpoint: Path) -> Path:
    """Where a run's late lane keeps how far it has come, in the run's checkpoint."""
    return checkpoint / "headrace" / "late.json"


def _joined(spans: list[tuple[int, int]], most: int = 50) -> list[tuple[int, int]]:
    """Neighbouring spans as one, and when there are many, all of them as one.

    >>> _joined([(0, 10), (10, 20), (40, 50)])
    [(0, 20), (40, 50)]
    """
    joined: list[tuple[int, int]] = []
    for low, high in spans:
        if joined and joined[-1][1] >= low:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined if len(joined) <= most else [(joined[0][0], joined[-1][1])]


def _read(file: Path) -> dict[int, int]:
    try:
        return {int(partition): int(offset) for partition, offset in json.loads(file.read_text("utf-8")).items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, TypeError):
        _logger.error("%s cannot be read: the late lane is published again, which changes nothing", file)
        return {}
