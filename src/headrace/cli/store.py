"""`headrace store`: what the store holds, and how to have it filled again from the changelog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.byte_size import show_size
from headrace.cli.output import data, data_json, table, talk
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.project import Project


@click.group("store")
def command() -> None:
    """Show what the store holds, and fill it again.

    The store is a fold of the changelog: it can be emptied at any time, and comes back.
    """


@command.command("stats")
@options.project_options
@options.as_json
def stats(path: Path | None, env: str | None, as_json: bool) -> None:
    """Show how much the store holds, and how far it has been filled.

    LEVELS are rows of merged tiles, by which long windows are read in tens of values. BEHIND is how many records of a
    topic are not in the store yet.
    """
    from headrace import project

    found = report(project.load(path, env))
    if as_json:
        data_json(found)
        return
    data(f"{found['kind']} at {found['where']}")
    tiles = f"{show_count(found['tiles'], 'tile')} of {show_count(found['keys'], 'key')}"
    data(f"{tiles} and {show_count(found['levels'], 'level row')}, {show_size(found['bytes'])}\n")
    told = [
        (
            topic,
            ", ".join(f"{partition}:{offset}" for partition, offset in each["position"].items()) or "-",
            _behind(each),
        )
        for topic, each in found["topics"].items()
    ]
    table(("topic", "position", "behind"), told)


def report(loaded: Project) -> dict[str, Any]:
    """Everything that `stats` tells, as JSON."""
    from headrace.config.config import names
    from headrace.store.open import look_into, where
    from headrace.topics import RUNS, open_log

    named = names(loaded.config)
    topics = [named.topic(RUNS), *(named.topic(f"changelog.{tiles.id}") for tiles in loaded.plan().tile_sets)]
    with look_into(loaded.config) as store, open_log(loaded.config) as log:
        held, known = store.stats(), log.topics()
        filled = {}
        for topic in topics:
            position = store.position(topic)
            ends = log.end_offsets(topic) if topic in known else {}
            starts = log.start_offsets(topic) if topic in known else {}
            behind = sum(end - max(position.get(number, 0), starts[number]) for number, end in ends.items())
            filled[topic] = {"position": position, "behind": behind if topic in known else None}
    return {
        "kind": loaded.config.store.kind,
        "where": where(loaded.config),
        "keys": held.keys,
        "tiles": held.tiles,
        "levels": held.levels,
        "bytes": held.bytes,
        "topics": filled,
    }


def _behind(each: dict[str, Any]) -> str:
    return "no topic" if each["behind"] is None else f"{each['behind']:,}"


@command.command("rebuild")
@options.project_options
@options.as_json
def rebuild(path: Path | None, env: str | None, as_json: bool) -> None:
    """Empty the store and let it be filled again from the changelog.

    While serving runs it does so by itself, and its answers are marked stale until the store is full. Otherwise the
    store is filled when serving starts. Nothing is lost: the changelog has every tile.
    """
    from headrace.config import config
    from headrace.store import open

    loaded = config.load(path, env=env)
    running = open.rebuild(loaded)
    if as_json:
        data_json({"where": open.where(loaded), "filled": "now" if running else "when serving starts"})
        return
    talk(f"The store at {open.where(loaded)} is empty.")
    talk("It is being filled again." if running else "It is filled again when serving starts.")
