"""The late lanes of a stream: what neither batch nor stream of a run has, per tile, from the lake into the changelog.

    silver since the last pass ──► tiles with something new ──► their events, read once ──► tiles of every lane

A pass is for all lanes of a stream together, because what is late is late for every tile set: the lake is asked once
which tiles got an event. Where these tiles have few events, as nearly always, they are read once, and one job computes
the tiles of all tile sets. Many, as after an import, are taken tile set by tile set and part by part, because their
tiles would fill the memory.

Tiles that got an event are computed anew from all of theirs and published whole, with the lake's turn as their version.
The archive reads partitions in step by arrival: when an event is in silver, so is every copy that came before it. Which
events these are is `spark.pipeline.run_scope`'s business.

Each lane has a file of its own that says how far it has come, because runs begin and end one by one. The files are
written after the tiles of all lanes are in the log, one after the other. A pass that is cut off before is made again
whole; one that is cut off between two files is made again for the lanes whose file is the old one. In both cases tiles
are published that the changelog has already: as upserts of the same identity, from at least the same events, under at
least the same version, they change nothing. So lanes may be differently far, and a pass asks each from where it is.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.files import write_atomically
from headrace.lake.counters import TURN
from headrace.lake.imports import positions
from headrace.lake.location import Lake
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.plan.model import TileSet
from headrace.spark.admission import ARRIVED
from headrace.spark.append import in_parts
from headrace.spark.late.late_events import events_of, fresh_spans
from headrace.spark.pipeline.run_scope import before, in_late_lane
from headrace.spark.session import settings
from headrace.spark.tiles import Target, changelog, tiles
from headrace.tiles.changelog import HandOver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRESH, LAST, LANE = "~fresh", "~last", "~lane"
"""How many events of a tile are new, when the last of them arrived, and whose tile it is."""
ROW = ("key", "value", FRESH, LAST)
LEAST_TASKS, EVENTS_PER_TASK = 2, 200_000
FEW = 20_000
"""Events that Spark sums up sooner than it compiles the sums of every tile set."""

Rows = Iterable[tuple[Any, ...]]
"""Changelog rows with what is new in them, as `ROW` names their columns."""
LateProgress = Callable[[int, int], None]
"""Hears how many lanes are published, and how many tiles were written in all."""
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pass:
    """What one pass published of a lane: new events, the tiles that have them, and when the last of them arrived."""

    events: int = 0
    tiles: int = 0
    last_arrival: int | None = None


@dataclass(frozen=True)
class LateLaneRun:
    """The run whose late lane it is, and how many partitions its stream has."""

    name: str
    hand_over: HandOver | None
    partitions: int


class LateLane:
    """The late lane of one run of a tile set, and how far it has come.

    Parameters
    ----------
    topic
        The changelog of the tile set.
    checkpoint
        A file that keeps how far it has come. Without it everything is published again, which changes nothing.
    """

    def __init__(self, tile_set: TileSet, run: LateLaneRun, topic: str, checkpoint: Path) -> None:
        self.tile_set, self.run, self.topic, self.checkpoint = tile_set, run, topic, checkpoint
        self.done = _read(checkpoint)

    @property
    def is_mine(self) -> str:
        """The lane's events, as a condition over `spark.silver.events`."""
        return in_late_lane(self.run.hand_over, self.tile_set.stream.late)

    @property
    def is_fresh(self) -> str:
        """Those that it has not published."""
        return f"({self.is_mine} AND NOT {before(self.done)})"

    def tiles_of(self, events: DataFrame, version: int) -> DataFrame:
        """The lane's tiles that have something new, as changelog rows with what is new in them."""
        target = Target(self.run.name, "late", self.run.partitions, version=version)
        is_new = f"NOT {before(self.done)}"
        new = {FRESH: f"count_if({is_new})", LAST: f"max(CASE WHEN {is_new} THEN `{ARRIVED}` END)"}
        made = tiles(events.where(self.is_mine), self.tile_set, self.run.partitions, new).where(f"`{FRESH}` > 0")
        return changelog(made, self.tile_set, target, (FRESH, LAST))

    def note(self, reached: dict[int, int]) -> None:
        """Keep that everything before some positions is published."""
        self.done = reached
        write_atomically(self.checkpoint, json.dumps(reached))


def publish_lanes(
    lanes: Sequence[LateLane],
    lake: Lake,
    log: Log,
    session: SparkSession,
    progress: LateProgress = lambda *_: None,
) -> list[Pass]:
    """Publish the tiles of what has come into a stream's lake since the last pass of each lane.

    `progress` is called after every part of a lane and after every lane.
    """
    silver = lake.silver
    silver.refresh()
    reached, version = positions(silver), silver.counter(TURN) or 0
    behind = [lane for lane in lanes if any(end > lane.done.get(p, 0) for p, end in reached.items())]
    if not behind:
        return [Pass() for _ in lanes]
    first = {p: min(lane.done.get(p, 0) for lane in behind) for p in reached}
    moved = [(first[p], end) for p, end in reached.items() if end > first[p]]
    with settings(session, _interpreted(sum(end - start for start, end in moved))):
        spans = fresh_spans(session, silver, [(lane.tile_set, lane.is_fresh) for lane in behind], moved)
    made: dict[LateLane, Pass] = {}
    written = 0

    def count_tiles(tiles: int) -> None:
        nonlocal written
        written += tiles
        progress(len(made), written)

    if spans:
        any_of = " OR ".join(dict.fromkeys(lane.is_mine for lane in behind))
        with events_of(session, lake, behind[0].tile_set.stream, any_of, spans, FEW) as (events, count):
            compute = _compute_at_once if count < FEW else _compute_each
            for lane, rows in compute(session, behind, events, count, version):
                made[lane] = _append(lane, rows, lake, log, count_tiles)
                progress(len(made), written)
    for lane in behind:
        lane.note(reached)
        lake.faults.reach("late.checkpoint.after")
    return [made.get(lane, Pass()) for lane in lanes]


def _compute_at_once(
    session: SparkSession, lanes: Sequence[LateLane], events: DataFrame, count: int, version: int
) -> Iterator[tuple[LateLane, Rows]]:
    """The tiles of all lanes by one job: of few events, a job for each lane costs more than the tiles."""
    parts = [lane.tiles_of(events, version).withColumn(LANE, F.lit(at)) for at, lane in enumerate(lanes)]
    with settings(session, _interpreted(count)):
        found = reduce(DataFrame.unionByName, parts).toArrow()
    for at, lane in enumerate(lanes):
        mine = found.filter(found.column(LANE).to_numpy() == at)
        yield lane, zip(*(mine.column(name).to_pylist() for name in ROW), strict=True)


def _compute_each(
    session: SparkSession, lanes: Sequence[LateLane], events: DataFrame, count: int, version: int
) -> Iterator[tuple[LateLane, Rows]]:
    """The tiles of one lane after the other, a part of them at a time: those of many events fill the memory."""
    tasks = {"spark.sql.shuffle.partitions": str(max(LEAST_TASKS, count // EVENTS_PER_TASK))}
    for lane in lanes:
        with settings(session, tasks):
            rows = lane.tiles_of(events, version).select(*ROW).toLocalIterator(prefetchPartitions=True)
            yield lane, (tuple(row) for row in rows)


def _interpreted(events: int) -> dict[str, str]:
    """How Spark runs a query over so many events."""
    return INTERPRETED if events < FEW else {}


def _append(lane: LateLane, rows: Rows, lake: Lake, log: Log, count_tiles: Callable[[int], None]) -> Pass:
    """Append a lane's tiles to its changelog."""
    count, published, last = 0, 0, None
    lake.faults.reach("late.tiles.before")
    for part in in_parts(rows):
        log.append_batch(lane.topic, [Message(value.encode(), key.encode()) for key, value, _, _ in part])
        lake.faults.reach("late.tiles.after")
        count, published = count + sum(row[2] for row in part), published + len(part)
        last = max(row[3] for row in part) if last is None else max(last, *(row[3] for row in part))
        count_tiles(len(part))
    return Pass(count, published, last)


def late_file(checkpoint: Path) -> Path:
    """Where a run's late lane keeps how far it has come, in the run's checkpoint."""
    return checkpoint / "headrace" / "late.json"


def _read(file: Path) -> dict[int, int]:
    try:
        return {int(partition): int(offset) for partition, offset in json.loads(file.read_text("utf-8")).items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, TypeError):
        _logger.error("%s cannot be read: the late lane is published again, which changes nothing", file)
        return {}
