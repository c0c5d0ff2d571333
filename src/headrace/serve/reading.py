"""All features of a key in one pass: one scan of its tiles, each decoded once and only as far as a window needs it.

What a value means is `plan.value`'s business; which tiles there are, the store's. An answer says how fresh it is: all
that had arrived before `as_of` is in it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.define.view import View
from headrace.define.window import Session
from headrace.plan.model import Partial, Plan, PlannedFeature, PlannedTerm, TileSet
from headrace.plan.value import Tile, value
from headrace.serve.partials import States, decoder
from headrace.store.changelog import Key, ProgressRow
from headrace.store.protocol import Store, StoredTile
from headrace.store.runs import serving_run

Span = tuple[int, int]


class Answer(msgspec.Struct, frozen=True):
    """Values of a view's features for one key at one time, and how fresh they are.

    Parameters
    ----------
    values
        Every feature by name. Timestamps are microseconds.
    at
        The time t the values are for.
    as_of
        All that had arrived before is included; None when the pipeline has not said anything yet.
    freshness_ms
        Milliseconds from `as_of` to `at`.
    missing
        Whether there is no tile of this key at all.
    stale
        Whether the freshness exceeds the view's `max_staleness`, or is not known.
    mode
        How the tiles are computed: `micro-batch` or `real-time`.
    """

    view: str
    key: dict[str, Any]
    values: dict[str, Any]
    at: int
    as_of: int | None
    freshness_ms: float | None
    missing: bool
    stale: bool
    mode: str


@dataclass(frozen=True)
class _ViewPlan:
    """What is needed to read a view, worked out once."""

    view: View
    tile_set: TileSet
    features: tuple[PlannedFeature, ...]
    needs: tuple[tuple[PlannedTerm, frozenset[str]], ...]


class Reader:
    """Reads features of a plan from a store.

    Parameters
    ----------
    plan
        What the features are.
    store
        Where the tiles are.
    runs
        Tile set ids to the run to read; by default the newest that has caught up.

    Examples
    --------
    >>> import headrace as hr
    >>> from headrace.plan.build import build
    >>> from headrace.store import MemoryStore
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
    >>> answer = Reader(build([users]), MemoryStore()).read("users", ("ann",), t=0)
    >>> answer.values, answer.missing, answer.stale
    ({'n': 0}, True, True)
    """

    def __init__(self, plan: Plan, store: Store, runs: Mapping[str, str] | None = None) -> None:
        self.plan, self.store = plan, store
        self._runs = runs
        self._views: dict[str, _ViewPlan] = {}
        self._decoders: dict[tuple[str, frozenset[str]], Callable[[bytes], States]] = {}

    def view(self, name: str) -> View:
        """A view by name; an unknown one is refused with `not-found`."""
        return self._plan_of(name).view

    def progress(self, tile_set: TileSet) -> ProgressRow | None:
        """How far the run has come that is read."""
        known = self.store.progress(tile_set.fingerprint)
        if self._runs is not None:
            return known.get(self._runs.get(tile_set.id, ""))
        return serving_run(known, self.store.hand_overs(tile_set.fingerprint))

    def read(self, view: str, key: Key, t: int) -> Answer:
        """Every feature of a key at time t."""
        asked = self._plan_of(view)
        # Progress first: what it promises is then in the tiles, whatever is applied in between.
        said = self.progress(asked.tile_set)
        run = self._run(asked.tile_set, said)
        tiles, missing = ([], True) if run is None else self._tiles(asked, run, key, t)
        as_of = None if said is None else said.as_of
        limit = asked.view.max_staleness
        return Answer(
            view=view,
            key=dict(zip(asked.view.by, key, strict=True)),
            values=_values(asked, tiles, t),
            at=t,
            as_of=as_of,
            freshness_ms=None if as_of is None else (t - as_of) / 1_000,
            missing=missing,
            stale=as_of is None or (limit is not None and t - as_of > limit),
            mode=asked.tile_set.mode,
        )

    def _run(self, tile_set: TileSet, said: ProgressRow | None) -> str | None:
        if said is not None:
            return said.run
        return None if self._runs is None else self._runs.get(tile_set.id)

    def _tiles(self, asked: _ViewPlan, run: str, key: Key, t: int) -> tuple[list[Tile], bool]:
        """The decoded tiles within reach, and whether there are none at all."""
        spans = [_span(planned, asked.tile_set.grain, t) for planned, _ in asked.needs]
        low, high = min(low for low, _ in spans), max(high for _, high in spans)
        fingerprint = asked.tile_set.fingerprint
        stored = self.store.tiles(fingerprint, run, key, low, high)
        if not stored:
            return [], not self.store.holds(fingerprint, run, key)
        return self._decoded(asked, spans, stored), False

    def _decoded(self, asked: _ViewPlan, spans: Sequence[Span], stored: Sequence[StoredTile]) -> list[Tile]:
        """Each tile with the columns of those windows that reach it."""
        edges = sorted({edge for span in spans for edge in span})
        readers: list[Callable[[bytes], States] | None] = [None] * len(edges)
        decoded: list[Tile] = []
        for tile in stored:
            band = bisect_right(edges, tile.tile) - 1
            read = readers[band]
            if read is None:
                at = edges[band]
                pairs = zip(asked.needs, spans, strict=True)
                wanted = frozenset[str]().union(*(names for (_, names), (low, high) in pairs if low <= at < high))
                read = readers[band] = self._decoder(asked.tile_set, wanted)
            decoded.append((tile.tile, read(tile.partials)))
        return decoded

    def _decoder(self, tile_set: TileSet, wanted: frozenset[str]) -> Callable[[bytes], States]:
        known = self._decoders.get((tile_set.fingerprint, wanted))
        if known is None:
            columns = [(partial.name, partial.monoid) for partial in tile_set.partials if partial.name in wanted]
            known = self._decoders[tile_set.fingerprint, wanted] = decoder(columns)
        return known

    def _plan_of(self, name: str) -> _ViewPlan:
        known = self._views.get(name)
        if known is None:
            features = self.plan.view(name)
            needs = tuple((term, _names(term)) for planned in features for term in planned.terms)
            known = self._views[name] = _ViewPlan(features[0].view, features[0].tile_set, features, needs)
        return known


def _names(planned: PlannedTerm) -> frozenset[str]:
    columns: tuple[Partial, ...] = planned.columns
    if isinstance(planned.term.window, Session):
        columns = (*columns, planned.span)
    return frozenset(column.name for column in columns)


def _span(planned: PlannedTerm, grain: int, t: int) -> Span:
    """The starts of stored tiles that a term's window can touch."""
    low, high = planned.term.window.span(t)
    return low - low % grain, high


def _values(asked: _ViewPlan, tiles: Sequence[Tile], t: int) -> dict[str, Any]:
    starts = [start for start, _ in tiles]
    found = {}
    for planned in asked.features:
        spans = [_span(term, asked.tile_set.grain, t) for term in planned.terms]
        first = bisect_left(starts, min(low for low, _ in spans))
        last = bisect_left(starts, max(high for _, high in spans))
        found[planned.feature.name] = value(planned, tiles[first:last], t)
    return found
