"""How many bytes of state an allowed lateness costs: a model, written down in docs/guides/lateness.md.

For each tile set of a stream Spark keeps, for as long as events on time may come,

    identities   events in that time x bytes per identity                    (only with an event id)
    tiles        open (key, tile) pairs x bytes per tile                     (at most one for each event)

That time is lateness + skew + `SPREAD`, the slack of Spark's watermark. Bytes per row are what Spark measures, if the
pipeline has told and has enough rows, else the constants below, which were measured the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.clock import MICROSECOND, MINUTE, SECOND
from headrace.lateness.delays import Delays
from headrace.plan.model import SPREAD, TileSet
from headrace.status.records import TileSetStatus

IDENTITY_BYTES = 120
"""Of an event id of 36 characters with its time."""
TILE_BYTES = 150
"""Of a tile's key, window and positions."""
COLUMN_BYTES = {
    "count": 16,
    "total": 32,
    "moments": 40,
    "least": 24,
    "greatest": 24,
    "span": 32,
    "decayed": 32,
    "earliest": 64,
    "latest": 64,
    "latest_n": 400,
    "events": 400,
    "distinct": 600,
    "frequent": 600,
    "quantiles": 600,
}
"""Of one partial column in a tile of a few dozen events; a full sketch takes a few thousand."""
OTHER_BYTES = 64
ENOUGH_ROWS = 50_000
"""State rows from which on what Spark measures is the rows' own size, and not that of its empty buffers."""
LONGEST = 365 * 24 * 60 * MINUTE


@dataclass(frozen=True)
class TileCost:
    """What decides the state of one tile set. `keys` is None when it is not known how many there are."""

    id: str
    grain: int
    keys: int | None
    identity_bytes: float
    tile_bytes: float
    measured: bool


@dataclass(frozen=True)
class StateEstimate:
    """An estimate of rows and bytes."""

    identities: int
    identity_bytes: int
    tiles: int
    tile_bytes: int

    @property
    def bytes(self) -> int:
        """All of it."""
        return self.identity_bytes + self.tile_bytes

    def as_json(self) -> dict[str, int]:
        """The estimate as a program reads it."""
        rows = {"identities": self.identities, "identity_bytes": self.identity_bytes}
        return rows | {"tiles": self.tiles, "tile_bytes": self.tile_bytes, "bytes": self.bytes}


@dataclass(frozen=True)
class StateModel:
    """The state of a stream, for any allowed lateness.

    Examples
    --------
    >>> import numpy as np
    >>> delays = Delays()
    >>> delays.add(np.zeros(1000), arrived=np.arange(1000) * SECOND, happened=np.arange(1000) * SECOND)
    >>> model = StateModel(delays, skew=0, tile_sets=(TileCost("clicks.by_user", MINUTE, 10, 120.0, 200.0, False),))
    >>> model.state(0).identities, model.state(0).tiles
    (600, 110)
    """

    delays: Delays
    skew: int
    tile_sets: tuple[TileCost, ...]

    def state(self, lateness: int) -> StateEstimate:
        """What a lateness would cost."""
        held = lateness + self.skew + SPREAD
        events = self.delays.rate(held) * held / SECOND
        identities = identity_bytes = tiles = tile_bytes = 0.0
        for cost in self.tile_sets:
            rows = events if cost.identity_bytes else 0.0
            identities, identity_bytes = identities + rows, identity_bytes + rows * cost.identity_bytes
            pairs = events if cost.keys is None else min(events, cost.keys * (held // cost.grain + 1))
            tiles, tile_bytes = tiles + pairs, tile_bytes + pairs * cost.tile_bytes
        return StateEstimate(round(identities), round(identity_bytes), round(tiles), round(tile_bytes))

    def longest(self, budget: int) -> int | None:
        """The longest lateness, to the second and up to a year, whose state fits in a budget; None when none does."""
        if self.state(0).bytes > budget:
            return None
        low, high = 0, LONGEST // SECOND
        while low < high:
            middle = (low + high + 1) // 2
            if self.state(middle * SECOND).bytes <= budget:
                low = middle
            else:
                high = middle - 1
        return low * SECOND


def cost(tiles: TileSet, keys: int | None, measured: TileSetStatus | None = None) -> TileCost:
    """What decides the state of a tile set.

    Parameters
    ----------
    keys
        How many keys are active.
    measured
        The last status of the tile set.
    """
    columns = sum(COLUMN_BYTES.get(column.monoid.kind, OTHER_BYTES) for column in tiles.partials)
    identity, tile = float(IDENTITY_BYTES), float(TILE_BYTES + columns)
    rows = (measured.state_rows or 0) if measured else 0
    is_measured = rows >= ENOUGH_ROWS
    if measured and is_measured:
        identity = tile = (measured.state_bytes or 0) / rows
    if tiles.stream.event_id is None:
        identity = 0.0
    grain = max(MICROSECOND, tiles.grain)
    return TileCost(tiles.id, grain, keys, identity, tile, is_measured)


def active_keys(tiles: TileSet, rows: Iterable[Mapping[str, Any]]) -> int | None:
    """How many keys the rows of some events have; None when there are no rows to tell by."""
    key = [column.python() for _, column in tiles.key]
    keep = None if tiles.where is None else tiles.where.python()
    found, seen = set(), False
    for row in rows:
        seen = True
        if keep is None or keep(row) is True:
            found.add(tuple(part(row) for part in key))
    return len(found) if seen else None
