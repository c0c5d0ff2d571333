"""A store as a pipeline would have left it: on-time tiles of what it had read, late ones of what was published."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.meaning.exact import Key, Moment
from headrace.meaning.reference import ReferenceResult, contributing
from headrace.plan.model import TileSet
from headrace.store import MemoryStore
from headrace.tiles.changelog import ProgressRow, TileRow
from tests.serve.shape import to_json


def stored(
    outcome: ReferenceResult, tile_set: TileSet, on_time: Moment, late: Moment, said: Mapping[int, int] | None
) -> MemoryStore:
    """The tiles of what was known before two moments; `said` is how far the pipeline says that it is."""
    store, rows = MemoryStore(), []
    reached = positions(outcome, tile_set, on_time)
    for lane, moment in (("on_time", on_time), ("late", late)):
        for (key, start, held), states in outcome.tiles(tile_set, moment).items():
            if held == lane:
                columns = [(partial.name, partial.monoid, states[partial.name]) for partial in tile_set.partials]
                at = reached[key, start] if lane == "on_time" else {}
                version = sum(at.values()) + 1
                rows.append(TileRow(tile_set.fingerprint, "1", key, start, lane, version, to_json(columns), at))
    if said is not None:
        rows.append(ProgressRow(tile_set.fingerprint, "1", said, on_time[0]))
    store.apply(rows, "changelog", {0: len(rows)})
    return store


def positions(outcome: ReferenceResult, tile_set: TileSet, before: Moment) -> dict[tuple[Key, int], dict[int, int]]:
    """Of every tile, the next offset of each partition that is not in it."""
    wanted = tile_set.where.python() if tile_set.where else None
    parts = [column.python() for _, column in tile_set.key]
    found: dict[tuple[Key, int], dict[int, int]] = {}
    for lane, event in contributing(tile_set.stream.late, outcome.judged[tile_set.stream.name]):
        if lane == "on_time" and event.place < before and (wanted is None or wanted(event.row) is True):
            start = event.event_time - event.event_time % tile_set.grain
            held = found.setdefault((tuple(part(event.row) for part in parts), start), {})
            held[event.place[1]] = max(held.get(event.place[1], 0), event.place[2] + 1)
    return found
