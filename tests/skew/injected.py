"""Everything that can go wrong between the log and a reader, put into real serving: each gives the sample that is kept.

The tests hold the audit to the names, the benchmark counts over many histories.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from headrace.clock import HOUR, MINUTE
from headrace.meaning.reference import ReferenceResult
from headrace.plan.build import build
from headrace.skew.sample import Sample
from tests.serve.shape import rows_of
from tests.skew.world import World, cards_view, plan, tile_set


def wrong_window(world: World) -> Sample:
    """Serving has another window than the definition."""
    return world.kept(world.read(world.rows(), of=build([cards_view("20m")])))


def dropped_tile(world: World) -> Sample:
    """A tile with several events is gone."""
    counts = {row.tile: row.version for row in world.rows() if row.lane == "on_time"}
    recent = [tile for tile, count in counts.items() if count > 1 and tile > world.now - 50 * MINUTE]
    return world.kept(world.read([row for row in world.rows() if row.tile != recent[0]]))


def doubled_event(world: World) -> Sample:
    """An event counts twice."""
    again = world.records[-4]
    value = (again.value or b"").replace(b'"id":"p', b'"id":"x')
    outcome = ReferenceResult(plan, [*world.records, replace(again, value=value, offset=len(world.records))])
    return world.kept(world.read(rows_of(outcome, tile_set, (world.now,))))


def shifted_clock(world: World) -> Sample:
    """The server's clock is an hour behind."""
    answer = world.read(world.rows(), t=world.now - HOUR)
    return world.kept(answer, change=lambda values: values | {"payments_10m": 77})


def stale_replica(world: World) -> Sample:
    """A replica stands still, and says what another said."""
    return world.kept(world.read(world.rows(world.now - 30 * MINUTE)))


def truncated_store(world: World) -> Sample:
    """A store has lost what is older than some minutes."""
    return world.kept(world.read([row for row in world.rows() if row.tile > world.now - 20 * MINUTE]))


def mis_ordered(world: World) -> Sample:
    """Two features have each other's place."""

    def swapped(values: dict[str, Any]) -> dict[str, Any]:
        return values | {"spend_1h": values["largest_1h"], "largest_1h": values["spend_1h"]}

    return world.kept(world.read(world.rows()), change=swapped)


def wrong_default(world: World) -> Sample:
    """Nothing is answered with 0 where it is null."""
    answer = world.read(world.rows(), key="nobody")
    return world.kept(answer, change=lambda values: values | {"largest_1h": 0.0})


def never_published(world: World) -> Sample:
    """A late event does not come through the late lane."""
    rows = [row for row in world.rows() if row.lane == "on_time"]
    world.now += 40 * MINUTE
    return world.kept(world.read(rows))


INJECTED: dict[str, Callable[[World], Sample]] = {
    "wrong window": wrong_window,
    "dropped tile": dropped_tile,
    "doubled event": doubled_event,
    "shifted clock": shifted_clock,
    "stale replica": stale_replica,
    "truncated store": truncated_store,
    "mis-ordered features": mis_ordered,
    "wrong default": wrong_default,
    "late event never published": never_published,
}
