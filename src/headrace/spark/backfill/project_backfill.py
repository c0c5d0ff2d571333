"""Backfills of a project: each tile set in turn, then their late lanes together; with its log, lake and runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from headrace.clock import Clock
from headrace.config.config import Config, names
from headrace.errors import DataError, MachineError
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.files import lock_file
from headrace.lake.layout import SILVER
from headrace.lake.location import find_tables
from headrace.lake.table import LakeTable
from headrace.log.protocol import Log
from headrace.plan.model import TileSet
from headrace.plural import show_count
from headrace.spark.backfill.backfill import Filled, Ground, complete, fill, hand_over
from headrace.spark.backfill.step import BEGIN, LATE, BackfillProgress, BackfillStep
from headrace.spark.late.component import lake_of, lane_of
from headrace.spark.late.late_lane import LateLane, LateLaneRun, publish_lanes
from headrace.spark.pipeline.runs import Runs
from headrace.spark.silver import EVER, events
from headrace.spark.tiles import tiles
from headrace.tiles.changelog import FILLING, HandOver
from headrace.topics import RUNS, open_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_backfill(
    config: Config,
    chosen: Sequence[TileSet],
    session: SparkSession,
    clock: Clock,
    *,
    rate: float | None = None,
    progress: BackfillProgress = lambda _: None,
    faults: FaultPoints = NO_FAULTS,
) -> list[Filled]:
    """Fill a new run of each tile set, or finish one that was begun; refused while another backfill runs.

    The late lanes of all runs are published together, when all batches are written; then each run is said to be filled.
    """
    named = names(config)
    message, hint = "Another process backfills this project.", "Wait until it has ended."
    refusal = MachineError("backfill-running", message, hint=hint)
    with lock_file(named.path("run", "backfill.lock"), refusal), open_log(config, clock) as log:
        runs = Runs(log, named.topic(RUNS))
        runs.look()
        progress(BackfillStep(BEGIN))
        grounds = [_ground(config, tile_set, log, runs, faults) for tile_set in chosen]
        begun = [_begun(ground, session, clock) for ground in grounds]
        done: list[Filled] = []
        for ground, wanted in zip(grounds, begun, strict=True):
            tell = partial(_tell_fill, progress, ground, len(done), len(grounds))
            tell(Filled(wanted, wanted.filled))
            done.append(fill(ground, session, wanted, rate=rate, progress=tell))
        _publish_late(config, grounds, done, log, session, partial(_tell_late, progress, len(grounds)))
        faults.reach("backfill.rest.after")
        return [complete(ground, filled) for ground, filled in zip(grounds, done, strict=True)]


def _begun(ground: Ground, session: SparkSession, clock: Clock) -> HandOver:
    """The run of a tile set that was begun and not finished, or a new one."""
    begun = [held for held in ground.runs.of(ground.tile_set).values() if held.stage == FILLING]
    if begun:
        return begun[-1]
    made = hand_over(ground, session, clock)
    ground.runs.say(made)
    ground.faults.reach("backfill.begin.after")
    return made


def _tell_fill(progress: BackfillProgress, ground: Ground, before: int, all_sets: int, done: Filled) -> None:
    """Say how far a tile set is, and with it the whole."""
    made = done.hand_over
    share = 0.0
    if made.filled is not None and done.first is not None:
        share = min(1.0, (made.filled - done.first) / max(1, made.point - done.first))
    progress(BackfillStep(ground.tile_set.id, done.rows, (before + share) / all_sets))


def _tell_late(progress: BackfillProgress, all_lanes: int, lanes: int, tiles: int) -> None:
    """Say how many late lanes are published, and how many tiles of all."""
    progress(BackfillStep(LATE, tiles, 1.0, f"{lanes} of {show_count(all_lanes, 'lane')}"))


def _publish_late(
    config: Config,
    grounds: Sequence[Ground],
    done: Sequence[Filled],
    log: Log,
    session: SparkSession,
    progress: Callable[[int, int], None],
) -> None:
    """What the lake has that neither the batch nor the stream of a run will: a filled run lacks none of it.

    `progress` is called with the lanes that are published and the tiles that are written.
    """
    named, streams = names(config), dict[str, list[LateLane]]()
    for ground, filled in zip(grounds, done, strict=True):
        run = LateLaneRun(filled.hand_over.run, filled.hand_over, ground.partitions)
        streams.setdefault(ground.tile_set.stream.name, []).append(lane_of(named, ground.tile_set, run))
    lanes = tiles = 0
    progress(lanes, tiles)
    for mine in streams.values():

        def tell(published: int, written: int, lanes: int = lanes, tiles: int = tiles) -> None:
            progress(lanes + published, tiles + written)

        lake = lake_of(config, mine[0].tile_set.stream)
        if lake is not None:
            tiles += sum(each.tiles for each in publish_lanes(mine, lake, log, session, tell))
        lanes += len(mine)
        progress(lanes, tiles)


def _ground(config: Config, tile_set: TileSet, log: Log, runs: Runs, faults: FaultPoints) -> Ground:
    named = names(config)
    source = named.topic(tile_set.stream.name)
    return Ground(
        tile_set,
        log,
        source,
        named.topic(f"changelog.{tile_set.id}"),
        _silver(config, tile_set),
        runs,
        len(log.end_offsets(source)),
        faults,
    )


def _silver(config: Config, tile_set: TileSet) -> LakeTable:
    found = find_tables(config, tile_set.stream).get(SILVER)
    if found is None:
        message = f"The lake has nothing of stream {tile_set.stream.name!r}."
        hint = "The archive fills it: `headrace up`, or `headrace run archive`; `headrace import` brings older history."
        raise DataError("lake-empty", message, hint=hint)
    return found


def tiles_of_lake(config: Config, tile_set: TileSet, session: SparkSession, before: int | None = None) -> DataFrame:
    """The tiles of all events in the lake, both lanes together."""
    span = EVER if before is None else (EVER[0], before)
    taken = events(session, _silver(config, tile_set), tile_set.stream, [span])
    counts = taken if tile_set.stream.late == "update" else taken.where("NOT `~late`")
    return tiles(counts, tile_set, 0)
