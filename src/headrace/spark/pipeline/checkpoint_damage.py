"""A checkpoint that cannot be loaded: what is wrong with it, and which run goes on instead.

A file that was cut off, emptied or overwritten is met at every start again, so a restart helps nothing. What the query
had computed stands in the changelog; what it had read is not known any more. So it begins again, in the first of these
ways that is open, and nothing is lost in any of them:

    a newer run that was filled serves
    the run reads the log again, if that still has every record of it; rows that come again change nothing
    a new run is filled from the lake

The checkpoint is put aside for whoever wants to look at it.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from headrace.config.config import Names
from headrace.errors import HeadraceError, MachineError, shown
from headrace.log.protocol import Log
from headrace.plan.model import TileSet
from headrace.spark.pipeline.runs import Runs, checkpoint_of
from headrace.spark.pipeline.state_damage import is_whole, noted_fault, state_fault
from headrace.spark.progress import batch_end, last_batch
from headrace.tiles.changelog import FILLED, SERVING, HandOver
from headrace.tiles.run_choice import FIRST_RUN, number

ASIDE = "aside"
"""The folder, beside the checkpoints, of those that could not be loaded; of each run the last one."""
SINGLE = ("metadata", "headrace/dropped.json")
"""What Spark keeps of the query, and what `spark.pipeline.tile_status` does; JSON objects both."""

Fill = Callable[[TileSet], HandOver]

_logger = logging.getLogger(__name__)


def damage_of(checkpoint: Path) -> str | None:
    """Which file of a checkpoint cannot be loaded, and why; None when a query can go on from it, or has none yet.

    A start reads the last commit, the offsets of the last two batches, the files that there is one of, and the state.
    """
    files = [file for name in SINGLE if (file := checkpoint / name).exists()]
    begun, done = _batches(checkpoint / "offsets"), last_batch(checkpoint)
    if done is not None:
        files.append(checkpoint / "commits" / str(done))
    if begun or done is not None:
        newest = max([*begun, *([] if done is None else [done])])
        oldest = max(0, min([newest - 1, *([] if done is None else [done])]))
        files += [checkpoint / "offsets" / str(batch) for batch in range(oldest, newest + 1)]
    found = next((found for file in files if (found := _fault(checkpoint, file)) is not None), None)
    return found or state_fault(checkpoint) or noted_fault(checkpoint)


def _batches(folder: Path) -> list[int]:
    return sorted(int(file.name) for file in folder.glob("[0-9]*")) if folder.is_dir() else []


def _fault(checkpoint: Path, file: Path) -> str | None:
    """What is wrong with one file of a checkpoint."""
    name = f"{file.parent.name}/{file.name}" if file.parent != checkpoint else file.name
    try:
        data = file.read_bytes()
        if not is_whole(file):
            return f"{name} is not what was written"
        if file.parent.name == "offsets":
            batch_end(checkpoint, int(file.name))
        elif not isinstance(json.loads(data.decode("utf-8").splitlines()[-1]), dict):
            return f"{name} is not what Spark writes"
    except (OSError, ValueError, LookupError, AttributeError, HeadraceError):
        return f"{name} cannot be read"
    return None


@dataclass(frozen=True)
class Renewal:
    """A run that goes on instead of one whose checkpoint could not be loaded."""

    tile_set: TileSet
    damage: str
    how: str

    @property
    def says(self) -> str:
        """All of it in a sentence."""
        return f"The checkpoint of {self.tile_set.id} could not be loaded ({self.damage}): {self.how}."


def renew(tile_set: TileSet, named: Names, log: Log, runs: Runs, fill: Fill) -> Renewal | None:
    """Have a run that can be computed take the place of one whose checkpoint is damaged; None when it is not."""
    serving = runs.serving(tile_set)
    run = FIRST_RUN if serving is None else serving.run
    filled = [each for each in runs.of(tile_set).values() if each.stage == FILLED and number(each.run) > number(run)]
    for follower in filled:
        # It has served nobody yet: it reads again what it had read.
        _put_aside_if_damaged(named, checkpoint_of(tile_set, follower.run))
    damage = damage_of(named.path("checkpoints", checkpoint_of(tile_set, run)))
    if damage is None:
        return None
    if filled:
        _serve(runs, filled[-1])
        how = f"run {filled[-1].run}, which was filled from the lake, serves instead"
    elif _has_all(log, named.topic(tile_set.stream.name), serving):
        _put_aside(named, checkpoint_of(tile_set, run))
        how = f"run {run} reads the log again, from where it began"
    else:
        made = _filled(tile_set, damage, fill)
        runs.look()
        _serve(runs, made)
        how = f"run {made.run} was filled from the lake and serves instead"
    renewal = Renewal(tile_set, damage, how)
    _logger.error("%s", renewal.says)
    return renewal


def _serve(runs: Runs, hand_over: HandOver) -> None:
    runs.say(msgspec.structs.replace(hand_over, stage=SERVING))


def _has_all(log: Log, topic: str, hand_over: HandOver | None) -> bool:
    """Whether the log still has every record of a run."""
    begin: Mapping[int, int] = {} if hand_over is None else hand_over.begin
    return all(start <= begin.get(partition, 0) for partition, start in log.start_offsets(topic).items())


def _filled(tile_set: TileSet, damage: str, fill: Fill) -> HandOver:
    try:
        return fill(tile_set)
    except HeadraceError as error:
        message = f"The checkpoint of {tile_set.id} cannot be loaded, and no new run can be made."
        got = f"{damage}; {error.brief}"
        hint = error.hint or "The log no longer has all records of the run, and the lake cannot stand in for it."
        raise MachineError("checkpoint-damaged", message, got=got, hint=hint) from error


def _put_aside_if_damaged(named: Names, name: str) -> None:
    if (damage := damage_of(named.path("checkpoints", name))) is not None:
        _logger.error("the checkpoint %s could not be loaded and is put aside: %s", name, shown(damage))
        _put_aside(named, name)


def _put_aside(named: Names, name: str) -> None:
    checkpoint, aside = named.path("checkpoints", name), named.path("checkpoints", ASIDE, name)
    shutil.rmtree(aside, ignore_errors=True)
    aside.parent.mkdir(parents=True, exist_ok=True)
    checkpoint.rename(aside)
