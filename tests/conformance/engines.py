"""The engines: every way in which tiles come about, each a function from a world to changelog records.

An engine says which log it reads and gives the records that it leaves in each tile set's changelog, in their order. A
new one, such as real-time mode, is one more function here and in `ENGINES`: all scenarios, generated cases and
comparisons are then held against it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headrace.log.protocol import Log
from headrace.plan.model import TileSet
from headrace.testing import MemoryLog
from headrace.tiles.changelog import TileRow
from headrace.tiles.changelog_format import decode, encode
from headrace.tiles.run_choice import FIRST_RUN
from tests.conformance.compare import Content, Meaning
from tests.conformance.definitions import PARTITIONS
from tests.conformance.queries import (
    committed,
    died,
    finished,
    in_long_batches_after_short_ones,
    killed_when_written,
    read_to_the_end,
    real_time_query,
    started,
    stopped_after,
)
from tests.conformance.world import World, read_all
from tests.serve.shape import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Pairs = list[tuple[bytes | None, bytes | None]]
"""Keys and values of a changelog."""
FOREVER = (2**63,)
OWN, FROM_THE_LAKE, FROM_THE_REFERENCE = "own", "lake", "reference"


@dataclass(frozen=True)
class Engine:
    """A way to make tiles: its name and world, whose late lane stands beside them, their run, whether it goes on."""

    name: str
    world: str
    make: Callable[[World, Any], dict[str, Pairs]]
    late: str = FROM_THE_LAKE
    run: str = FIRST_RUN
    streams: bool = False

    def everything(self, world: World, session: Any) -> dict[str, Pairs]:
        """What it leaves behind, with the late lane."""
        made = self.make(world, session)
        if self.late == OWN:
            return made
        if self.late == FROM_THE_LAKE:
            late, _ = late_lane(world, session)
        else:
            late = {name: [row for row in rows if _is_late(row)] for name, rows in reference(world, None).items()}
        return {name: [*rows, *late[name]] for name, rows in made.items()}


def _is_late(pair: tuple[bytes | None, bytes | None]) -> bool:
    row = decode(*pair)
    return isinstance(row, TileRow) and row.lane == "late"


def reference(world: World, session: None) -> dict[str, Pairs]:
    """The meaning itself, through the shape of changelog records: if this differs, the comparison is wrong."""
    meaning = Meaning(world)
    made: dict[str, Pairs] = {}
    for tile_set in world.plan.tile_sets:
        names, contents = tuple(name for name, _ in tile_set.key), meaning.contents(tile_set)
        rows = rows_of(meaning.outcome, tile_set, FOREVER, FIRST_RUN)
        made[tile_set.id] = [encode(_told(row, contents[row.key, row.tile, row.lane]), names) for row in rows]
    return made


def _told(row: TileRow, content: Content) -> TileRow:
    """The row with what it says of itself."""
    events = content.events
    return replace(
        row,
        version=len(events),
        positions=content.positions,
        max_event_time=max(event.event_time for event in events),
        max_arrived_at=max(event.arrived_at for event in events),
    )


def batch_over_the_log(world: World, session: SparkSession) -> dict[str, Pairs]:
    """All records at once, read from the log."""
    from headrace.spark.admission import judged
    from headrace.spark.records import slice_of
    from headrace.spark.tiles import admitted_once

    made = {}
    for tile_set in world.plan.tile_sets:
        name = tile_set.stream.name
        log, ends = world.log, world.log.end_offsets(name)
        records = slice_of(session, log, name, log.start_offsets(name), ends)
        made[tile_set.id] = _batch(admitted_once(judged(records, tile_set.stream), tile_set), tile_set)
    return made


def batch_over_the_lake(world: World, session: SparkSession) -> dict[str, Pairs]:
    """All events at once, read from silver; and the late lane, pass by pass while the archive goes on."""
    from headrace.spark.pipeline.run_scope import in_stream
    from headrace.spark.silver import events

    late, lakes = late_lane(world, session)
    made = {}
    for tile_set in world.plan.tile_sets:
        silver = lakes[tile_set.stream.name].silver
        on_time = events(session, silver, tile_set.stream).where(in_stream(None))
        made[tile_set.id] = [*_batch(on_time, tile_set), *late[tile_set.id]]
    return made


@cache
def late_lane(world: World, session: SparkSession) -> tuple[dict[str, Pairs], dict[str, Any]]:
    """What the late lane publishes after every batch of an archive, and the lakes in the end; made once."""
    from headrace.spark.late.late_lane import LateLane, LateLaneRun, publish_lanes

    log = MemoryLog()
    lanes: dict[str, LateLane] = {}
    lakes: dict[str, Any] = {}
    for lakes in world.archived(session):
        for tile_set in world.plan.tile_sets:
            if tile_set.id not in lanes:
                log.create_topic(tile_set.id, compacted=True)
                file = world.folder / "late" / f"{tile_set.id}.json"
                lanes[tile_set.id] = LateLane(tile_set, LateLaneRun(FIRST_RUN, None, PARTITIONS), tile_set.id, file)
        for name, lake in lakes.items():
            mine = [lane for lane in lanes.values() if lane.tile_set.stream.name == name]
            publish_lanes(mine, lake, log, session)
    return {name: written(log, name) for name in lanes}, lakes


def _batch(once: DataFrame, tile_set: TileSet) -> Pairs:
    from headrace.spark.tiles import Target, changelog, tiles

    target = Target(FIRST_RUN, "on_time", PARTITIONS)
    rows = changelog(tiles(once, tile_set, PARTITIONS), tile_set, target).collect()
    return [(row.key.encode(), row.value.encode()) for row in rows]


def micro_batches(world: World, session: SparkSession) -> dict[str, Pairs]:
    """One stream for each tile set, in batches of any size; killed before and after it publishes a batch."""
    from headrace.spark.source import register

    register(session)
    chance, tile_sets = random.Random(6), world.plan.tile_sets
    for tile_set in tile_sets:
        world.log.create_topic(f"changelog.{tile_set.id}", compacted=True)
    for dies in ("before", "after"):
        for query in [started(world, session, each, chance.randrange(300, 700), dies=dies) for each in tile_sets]:
            died(query)
    for query in [started(world, session, each, 1_500) for each in tile_sets]:
        finished(query)
    return {each.id: written(world.log, f"changelog.{each.id}") for each in tile_sets}


def real_time(world: World, session: SparkSession) -> dict[str, Pairs]:
    """Event by event and in micro-batches by turns, killed in the first batch and later, all on one checkpoint."""
    from headrace.spark.source import register

    register(session)
    made = {}
    for each in world.plan.tile_sets:
        topic = f"realtime.{each.id}"
        world.log.create_topic(topic, compacted=True)
        tile = real_time_query(world, session, each, topic)
        tile.in_real_time()
        killed_when_written(tile)
        tile.in_micro_batches()
        stopped_after(tile.query, 2)
        tile.in_real_time()
        killed_when_written(tile)
        tile.in_real_time()
        committed(tile, batches=1)
        tile.query.stop()
        tile.in_micro_batches()
        stopped_after(tile.query, 1)
        if each is world.plan.tile_sets[0]:
            in_long_batches_after_short_ones(tile)
        else:
            tile.in_real_time()
        read_to_the_end(tile)
        made[each.id] = written(world.log, topic)
    return made


def hand_over_halfway(world: World, session: SparkSession) -> dict[str, Pairs]:
    """A second run of every tile set: a batch over half of the lake, a stream from there on, and its late lane."""
    from headrace.spark.backfill.backfill import Ground, complete, fill, hand_over
    from headrace.spark.late.late_lane import LateLane, LateLaneRun, publish_lanes
    from headrace.spark.pipeline.runs import Runs
    from headrace.spark.source import register

    register(session)
    world.log.create_topic("runs", compacted=True)
    growing, runs = world.archived(session), Runs(world.log, "runs")
    lakes, begun = next(growing), {}
    for each in world.plan.tile_sets:
        topic = f"changelog.{each.id}"
        world.log.create_topic(topic, compacted=True)
        silver = lakes[each.stream.name].silver
        ground = Ground(each, world.log, each.stream.name, topic, silver, runs, PARTITIONS)
        done = fill(ground, session, hand_over(ground, session, world.clock))
        begun[each.id] = complete(ground, done).hand_over
    for _ in growing:
        pass
    for query in [started(world, session, each, 900, begun=begun[each.id]) for each in world.plan.tile_sets]:
        finished(query)
    for each in world.plan.tile_sets:
        run = LateLaneRun(begun[each.id].run, begun[each.id], PARTITIONS)
        lane = LateLane(each, run, f"changelog.{each.id}", world.folder / f"late.{each.id}")
        publish_lanes([lane], lakes[each.stream.name], world.log, session)
    return {each.id: written(world.log, f"changelog.{each.id}") for each in world.plan.tile_sets}


def written(log: Log, topic: str) -> Pairs:
    """What is in a changelog."""
    return [(record.key, record.value) for record in read_all(log, topic, 0, log.end_offsets(topic)[0])]


ENGINES: tuple[Engine, ...] = (
    Engine("reference", "embedded", reference, OWN),
    Engine("batch over the log", "embedded", batch_over_the_log),
    Engine("batch over the lake", "embedded", batch_over_the_lake, OWN),
    Engine("micro-batches", "embedded", micro_batches, streams=True),
    Engine("micro-batches on Kafka", "kafka", micro_batches, FROM_THE_REFERENCE, streams=True),
    Engine("real-time mode", "kafka", real_time, FROM_THE_REFERENCE, streams=True),
    Engine("hand-over", "half archived", hand_over_halfway, OWN, run="2", streams=True),
)
