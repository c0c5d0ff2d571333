"""All features of a key in one pass: one look into the store, each row decoded once and only as far as it is needed.

Where windows begin and end cuts time into bands (`bands`). A band is read with the coarsest rows that fit and merged
once, and a window is the merge of its bands. What a value means is `plan.value`'s business; which rows there are, the
store's. An answer says how fresh it is: all that had arrived before `as_of` is in it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headrace.clock import show_time
from headrace.define.view import View
from headrace.plan.model import Plan, PlannedTerm, TileSet
from headrace.plan.value import Tile, value
from headrace.serve.bands import Cut, ViewPlan
from headrace.serve.folding import TileFold, folds
from headrace.serve.partials import States
from headrace.store.changelog import Key, ProgressRow
from headrace.store.expiry import ExpiredError
from headrace.store.levels import Piece
from headrace.store.protocol import Store
from headrace.store.runs import serving_run


class Answer(msgspec.Struct, frozen=True):
    """Values of a view's features for one key at one time, and how fresh they are.

    Parameters
    ----------
    values
        Every feature by name. Timestamps are microseconds.
    at
        The time t the values are for.
    as_of
        All that had arrived before is included; None when the pipeline has not said anything yet, and while a store
        that was empty is being filled.
    freshness_ms
        Milliseconds from `as_of` to `at`.
    missing
        Whether there is no tile of this key at all.
    stale
        Whether the freshness exceeds the view's `max_staleness`, or is not known.
    mode
        How the tiles are computed, `micro-batch` or `real-time`; `lake` for a past moment, `table` for a dimension.
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


class Reader:
    """Reads features of a plan from a store, and tells the store how to merge the plan's tiles.

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
        self._folds = folds(plan)
        self._views: dict[str, ViewPlan] = {}
        store.fold_with(self._folds)

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
        return self.read_many(view, [key], t)[0]

    def read_many(self, view: str, keys: Sequence[Key], t: int) -> list[Answer]:
        """Every feature of some keys at time t, all from one state of the store."""
        asked = self._plan_of(view)
        cut = asked.cut(t)
        fold, run = self._folds[asked.tile_set.fingerprint], None
        if self._runs is not None:
            run = self._runs.get(asked.tile_set.id, "")
        found = self.store.read(asked.tile_set.fingerprint, keys, cut.bands, run=run, layout=fold.layout)
        if found.expired is not None and cut.lowest is not None and cut.lowest < found.expired:
            hint = "Ask for a time that is nearer to now; history is in the lake."
            message = "The store no longer holds the tiles of so long ago."
            raise ExpiredError(message, got=show_time(t), hint=hint)
        said = None if found.filling else found.said
        return [
            self._answer(asked, key, t, said, _values(asked, cut, fold, pieces or (), t), pieces is None)
            for key, pieces in zip(keys, found.keys, strict=True)
        ]

    def _answer(
        self, asked: ViewPlan, key: Key, t: int, said: ProgressRow | None, values: dict[str, Any], missing: bool
    ) -> Answer:
        as_of = None if said is None else said.as_of
        limit = asked.view.max_staleness
        return Answer(
            view=asked.view.name,
            key=dict(zip(asked.view.by, key, strict=True)),
            values=values,
            at=t,
            as_of=as_of,
            freshness_ms=None if as_of is None else (t - as_of) / 1_000,
            missing=missing,
            stale=as_of is None or (limit is not None and t - as_of > limit),
            mode=asked.tile_set.mode,
        )

    def _plan_of(self, name: str) -> ViewPlan:
        known = self._views.get(name)
        if known is None:
            known = self._views[name] = ViewPlan(self.plan.view(name))
        return known


def _values(asked: ViewPlan, cut: Cut, fold: TileFold, pieces: Sequence[Piece], t: int) -> dict[str, Any]:
    """The value of every feature."""
    tiles = _tiles(cut, fold, pieces)
    starts = [start for start, _ in tiles]
    inside = [tiles[bisect_left(starts, low) : bisect_left(starts, high)] for low, high in cut.spans]
    merged: dict[tuple[int, str], Any] = {}

    def states(term: PlannedTerm, window: int) -> list[Any]:
        """One merged state for each column of a term; features of one window share them."""
        found = []
        for column in term.columns:
            name = column.name
            if (window, name) not in merged:
                merged[window, name] = column.monoid.fold([each[name] for _, each in inside[window]])
            found.append(merged[window, name])
        return found

    values = {}
    for planned, windows in asked.features:
        if windows is None:
            values[planned.feature.name] = value(planned, tiles, t)
            continue
        pairs = zip(planned.terms, windows, strict=True)
        terms = [term.term.aggregate.finish(states(term, window), t) for term, window in pairs]
        values[planned.feature.name] = planned.feature.combine(terms)
    return values


def _tiles(cut: Cut, fold: TileFold, pieces: Sequence[Piece]) -> list[Tile]:
    """What was read as tiles: each band merged to one, or as it is where a window wants to see every tile."""
    tiles: list[Tile] = []
    last = 0
    for (low, high, _), (names, single) in zip(cut.bands, cut.needs, strict=True):
        first = last
        while last < len(pieces) and pieces[last].start < high:
            last += 1
        decoded = [(piece.start, fold.decoder(piece.level, names)(piece.partials)) for piece in pieces[first:last]]
        if single or len(decoded) < 2:
            tiles += decoded
        else:
            tiles.append((low, _merged(fold, names, [states for _, states in decoded])))
    return tiles


def _merged(fold: TileFold, names: frozenset[str], decoded: Sequence[States]) -> States:
    return {name: fold.monoid(name).fold([states[name] for states in decoded]) for name in names}
