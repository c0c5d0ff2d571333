"""`headrace state`: what Spark keeps between batches, how long, and which keys are hot.

Read from what the pipeline last said of itself; with `--inspect` from the checkpoint, which starts Spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.byte_size import show_size
from headrace.cli.output import data, data_json, line, table, talk
from headrace.clock import SECOND, show_duration, show_time
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.plan.model import TileSet
    from headrace.project import Project
    from headrace.spark.pipeline.query_state import Held

TOLD = ("run", "batch", "watermark", "newest", "dropped_by_watermark")


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
        _inspect(loaded, found["tile_sets"])
    if as_json:
        data_json(found)
        return
    if found["told_seconds_ago"] is None:
        talk("The pipeline has not said anything yet.")
    _show(found["tile_sets"], inspected=inspect)


def report(loaded: Project, tile_sets: tuple[TileSet, ...]) -> dict[str, Any]:
    """Everything the verb tells, as JSON: what the plan keeps, and what the pipeline last said of it."""
    from headrace.clock import SystemClock
    from headrace.config.config import names
    from headrace.topics import STATUS, last_status, open_log

    with open_log(loaded.config) as log:
        said = last_status(log, names(loaded.config).topic(STATUS), ["pipeline"]).get("pipeline")
    ago = None if said is None else round((SystemClock().now() - said[0]) / SECOND, 1)
    told = {} if said is None else said[1].get("tile_sets", {})
    return {
        "told_seconds_ago": ago,
        "tile_sets": {each.id: _tile_set(loaded, each, told.get(each.id, {})) for each in tile_sets},
    }


def _tile_set(loaded: Project, tile_set: TileSet, told: dict[str, Any]) -> dict[str, Any]:
    from headrace.spark.pipeline.query_state import checkpoint_bytes

    operators, sizes = told.get("operators", {}), {}
    if told.get("checkpoint"):
        sizes = checkpoint_bytes(_checkpoint(loaded, told["checkpoint"]))
    nothing = dict.fromkeys(("rows", "memory_bytes", "disk_bytes"))
    return {
        **{name: told.get(name) for name in TOLD},
        "checkpoint": told.get("checkpoint"),
        "operators": {
            name: {"retention": kept, **nothing, **operators.get(name, {}), "checkpoint_bytes": sizes.get(name)}
            for name, kept in tile_set.state_retention.items()
        },
        "hot_keys": told.get("hot_keys", []),
        "hot_keys_of": told.get("hot_keys_of", 0),
    }


def _checkpoint(loaded: Project, name: str) -> Path:
    from headrace.config.config import names

    return names(loaded.config).path("checkpoints", name)


def _inspect(loaded: Project, tile_sets: dict[str, Any]) -> None:
    """Look into every checkpoint that is there."""
    from headrace.config.config import names
    from headrace.spark.pipeline.query_state import inspect
    from headrace.spark.session import quiet_session

    there = {name: each for name, each in tile_sets.items() if each["checkpoint"]}
    if not there:
        return
    with quiet_session("headrace state", names(loaded.config).path("run", "state-spark.log")) as session:
        for each in there.values():
            held = inspect(session, _checkpoint(loaded, each["checkpoint"]))
            for name, operator in each["operators"].items():
                found = held.get(name)
                operator["held"] = None if found is None else _held(found)


def _show(tile_sets: dict[str, Any], *, inspected: bool) -> None:
    heads = ["tiles", "operator", "kept for", "rows", "memory", "disk", "checkpoint"]
    rows = [
        [name, operator, *_cells(held), *(_held_cells(held.get("held")) if inspected else [])]
        for name, each in tile_sets.items()
        for operator, held in each["operators"].items()
    ]
    table([*heads, *(["rows held", "oldest", "newest"] if inspected else [])], rows)
    data("")
    for name, each in tile_sets.items():
        data(f"{name}: {_about(each)}")
        if each["hot_keys"]:
            listed = ", ".join(f"{_key(hot['key'])} {100 * hot['share']:.1f} %" for hot in each["hot_keys"][:5])
            line(f"{name}: of the last {show_count(each['hot_keys_of'], 'event')} {listed}")


def _cells(held: dict[str, Any]) -> list[str]:
    sizes = ("memory_bytes", "disk_bytes", "checkpoint_bytes")
    return [
        show_duration(held["retention"]),
        _count(held["rows"]),
        *("-" if held[name] is None else show_size(held[name]) for name in sizes),
    ]


def _held(found: Held) -> dict[str, Any]:
    moments = {"oldest": found.oldest, "newest": found.newest}
    return {"rows": found.rows} | {name: None if at is None else show_time(at) for name, at in moments.items()}


def _held_cells(held: dict[str, Any] | None) -> list[str]:
    moments = [None if held is None else held[name] for name in ("oldest", "newest")]
    return [_count(None if held is None else held["rows"]), *(at or "-" for at in moments)]


def _about(each: dict[str, Any]) -> str:
    if each["batch"] is None and not each["dropped_by_watermark"]:
        return "no batch yet"
    dropped = each["dropped_by_watermark"]
    told = [f"run {each['run']}", f"batch {each['batch']}", f"watermark {each['watermark'] or 'none yet'}"]
    return ", ".join([*told, f"{show_count(dropped, 'row')} dropped by the watermark"])


def _key(key: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in key.items()) or "null"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
