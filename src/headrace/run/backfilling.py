"""Backfills of a project: each tile set in turn, with its log, its lake and the runs it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from headrace.alone import alone
from headrace.clock import Clock
from headrace.config import Config, names
from headrace.errors import DataError, MachineError
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.lake.layout import SILVER
from headrace.lake.place import look
from headrace.lake.table import LakeTable
from headrace.log.protocol import Log
from headrace.plan.model import TileSet
from headrace.run.backfill import Filled, Ground, fill, hand_over
from headrace.run.late import Run, late_file
from headrace.run.late_lanes import lane_of
from headrace.run.runs import Runs, checkpoint_of
from headrace.run.silver import EVER, events
from headrace.run.tiles import tiles
from headrace.store.changelog import FILLING, HandOver
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
    progress: Callable[[Filled], None] = lambda _: None,
    faults: FaultPoints = NO_FAULTS,
) -> list[Filled]:
    """Fill a new run of each tile set, or finish one that was begun; refused while another backfill runs."""
    named = names(config)
    message, hint = "Another process backfills this project.", "Wait until it has ended."
    refusal = MachineError("backfill-running", message, hint=hint)
    with alone(named.path("run", "backfill.lock"), refusal), open_log(config, clock) as log:
        runs = Runs(log, named.topic(RUNS))
        runs.look()
        done = []
        for tile_set in chosen:
            ground = _ground(config, tile_set, log, runs, faults)
            begun = [held for held in runs.of(tile_set).values() if held.stage == FILLING]
            if not begun:
                begun = [hand_over(ground, session, clock)]
                runs.say(begun[0])
                faults.reach("backfill.begin.after")
            rest = partial(_publish_late, config, ground, session)
            done.append(fill(ground, session, begun[-1], rate=rate, progress=progress, rest=rest))
        return done


def _publish_late(config: Config, ground: Ground, session: SparkSession, made: HandOver) -> None:
    """What the lake has that neither the batch nor the stream of a run will: a filled run lacks none of it."""
    file = late_file(names(config).path("checkpoints", checkpoint_of(ground.tile_set, made.run)))
    run = Run(made.run, made, ground.partitions)
    lane = lane_of(config, ground.tile_set, run, ground.log, ground.changelog, file)
    if lane is not None:
        lane.step(session)


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
    found = look(config, tile_set.stream).get(SILVER)
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
