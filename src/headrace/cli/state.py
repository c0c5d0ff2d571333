"""`headrace state`: what Spark keeps between batches, how long, and which keys are hot.

Read from what the pipeline last said of itself; with `--inspect` from the checkpoint, which starts Spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, replace

from headrace.cli import options
from headrace.cli.byte_size import show_size
from headrace.cli.output import data, data_json, line, table, talk
from headrace.clock import SECOND, show_duration, show_time
from headrace.plural import show_count
from headrace.status.records import HotKeyShare, OperatorState, PipelineStatus, TileSetStatus

if TYPE_CHECKING:
    from headrace.plan.model import TileSet
    from headrace.project import Project
    from headrace.spark.pipeline.query_state import OperatorUsage


@click.command("state")
@click.argument("view", required=False, metavar="[VIEW]")
@options.project_options
@click.option("--inspect", is_flag=True, help="Also look into the state itself; starts Spark.")
@options.as_json
def command(view: str | None, path: Path | None, env: str | None, inspect: bool, as_json: bool) -> None:
    """Show what Spark keeps between batches, and which keys are hot.

    For each tile set: event ids, by which copies are found, and open tiles. Rows and sizes are those of the last batch;
    KEPT FOR is how long after an event, or after a tile's start, a row is needed. --inspect counts the rows in the
    checkpoint, and finds the oldest and the newest.
    """
    from headrace import project

    loaded = project.load(path, env)
    found = report(loaded, loaded.plan().tile_sets_of(view))
    if inspect:
        _inspect(loaded, found.tile_sets)
    if as_json:
        data_json(found)
        return
    if found.told_seconds_ago is None:
        talk("The pipeline has not said anything yet.")
    _show(found.tile_sets, inspected=inspect)


class OperatorReport(Struct, kw_only=True):
    """What the plan and the last status say of an operator; `held` is what its checkpoint says, if it was inspected."""

    retention: int
    rows: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    checkpoint_bytes: int | None = None
    held: HeldReport | UnsetType | None = UNSET


class HeldReport(Struct, kw_only=True):
    """What an operator's checkpoint holds."""

    rows: int
    oldest: str | None
    newest: str | None


class TileSetReport(Struct, kw_only=True):
    """The state of one tile set."""

    run: str | None
    batch: int | None
    watermark: str | None
    newest: str | None
    dropped_by_watermark: int | None
    checkpoint: str | None
    operators: dict[str, OperatorReport]
    hot_keys: list[HotKeyShare]
    hot_keys_of: int


class StateReport(Struct, kw_only=True):
    """Everything that the verb shows; the age of the pipeline's status is None where there is none."""

    told_seconds_ago: float | None
    tile_sets: dict[str, TileSetReport]


def report(loaded: Project, tile_sets: tuple[TileSet, ...]) -> StateReport:
    """Report what the plan keeps, and what the pipeline last published of it."""
    from headrace.clock import SystemClock
    from headrace.config.config import names
    from headrace.status.topic import read_status
    from headrace.topics import STATUS, open_log

    with open_log(loaded.config) as log:
        records = read_status(log, names(loaded.config).topic(STATUS), PipelineStatus)
    status, age = records.get(PipelineStatus), SystemClock().now() - records.arrived_at(PipelineStatus)
    known = {} if status is None else status.tile_sets
    return StateReport(
        told_seconds_ago=None if status is None else round(age / SECOND, 1),
        tile_sets={each.id: _tile_set(loaded, each, known.get(each.id)) for each in tile_sets},
    )


def _tile_set(loaded: Project, tile_set: TileSet, status: TileSetStatus | None) -> TileSetReport:
    from headrace.spark.pipeline.query_state import checkpoint_bytes

    dropped = None if status is None else status.dropped_by_watermark
    status = status or TileSetStatus()
    sizes = checkpoint_bytes(_checkpoint(loaded, status.checkpoint)) if status.checkpoint else {}
    return TileSetReport(
        run=status.run,
        batch=status.batch,
        watermark=status.watermark or None,
        newest=status.newest or None,
        dropped_by_watermark=dropped,
        checkpoint=status.checkpoint,
        operators={
            name: _operator(kept, (status.operators or {}).get(name), sizes.get(name))
            for name, kept in tile_set.state_retention.items()
        },
        hot_keys=status.hot_keys,
        hot_keys_of=status.hot_keys_of,
    )


def _operator(retention: int, state: OperatorState | None, size: int | None) -> OperatorReport:
    report = OperatorReport(retention=retention, checkpoint_bytes=size)
    return report if state is None else replace(report, **asdict(state))


def _checkpoint(loaded: Project, name: str) -> Path:
    from headrace.config.config import names

    return names(loaded.config).path("checkpoints", name)


def _inspect(loaded: Project, tile_sets: dict[str, TileSetReport]) -> None:
    """Look into every checkpoint that is there."""
    from headrace.config.config import names
    from headrace.spark.pipeline.query_state import inspect
    from headrace.spark.session import quiet_session

    there = {name: each.checkpoint for name, each in tile_sets.items() if each.checkpoint}
    if not there:
        return
    with quiet_session("headrace state", names(loaded.config).path("run", "state-spark.log")) as session:
        for tiles, checkpoint in there.items():
            held = inspect(session, _checkpoint(loaded, checkpoint))
            for name, operator in tile_sets[tiles].operators.items():
                found = held.get(name)
                operator.held = None if found is None else _state_report(found)


def _show(tile_sets: dict[str, TileSetReport], *, inspected: bool) -> None:
    heads = ["tiles", "operator", "kept for", "rows", "memory", "disk", "checkpoint"]
    rows = [
        [name, operator, *_cells(state), *(_held_cells(state.held or None) if inspected else [])]
        for name, each in tile_sets.items()
        for operator, state in each.operators.items()
    ]
    table([*heads, *(["rows held", "oldest", "newest"] if inspected else [])], rows)
    data("")
    for name, each in tile_sets.items():
        data(f"{name}: {_about(each)}")
        if each.hot_keys:
            listed = ", ".join(f"{_key(hot)} {100 * hot.share:.1f} %" for hot in each.hot_keys[:5])
            line(f"{name}: of the last {show_count(each.hot_keys_of, 'event')} {listed}")


def _cells(state: OperatorReport) -> list[str]:
    sizes = (state.memory_bytes, state.disk_bytes, state.checkpoint_bytes)
    return [
        show_duration(state.retention),
        _count(state.rows),
        *("-" if size is None else show_size(size) for size in sizes),
    ]


def _state_report(found: OperatorUsage) -> HeldReport:
    oldest, newest = (None if at is None else show_time(at) for at in (found.oldest, found.newest))
    return HeldReport(rows=found.rows, oldest=oldest, newest=newest)


def _held_cells(held: HeldReport | None) -> list[str]:
    return ["-"] * 3 if held is None else [_count(held.rows), held.oldest or "-", held.newest or "-"]


def _about(each: TileSetReport) -> str:
    if each.batch is None and not each.dropped_by_watermark:
        return "no batch yet"
    about = [f"run {each.run}", f"batch {each.batch}", f"watermark {each.watermark or 'none yet'}"]
    return ", ".join([*about, f"{show_count(each.dropped_by_watermark or 0, 'row')} dropped by the watermark"])


def _key(hot: HotKeyShare) -> str:
    return ", ".join(f"{name}={value}" for name, value in hot.key.items()) or "null"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
