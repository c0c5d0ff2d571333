"""All features of a key in one pass: one look into the store, each row decoded once and only as far as it is needed.

Where windows begin and end cuts time into bands (`bands`). A band is read with the coarsest rows that fit, and a window
is the merge of its bands (`steps`). What a value means is `meaning.value`'s business; which rows there are, the
store's. An answer says how fresh it is, by lane: late events take another way, so they have a moment of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headrace.aggregate import Monoid, State
from headrace.clock import show_time
from headrace.define.view import View
from headrace.meaning.value import Tile, value
from headrace.plan.model import Plan, TileSet
from headrace.read.bands import Cut, ViewPlan
from headrace.read.merge_steps import run as run_steps
from headrace.store.protocol import Store
from headrace.tiles.changelog import Key, ProgressRow
from headrace.tiles.expiry import ExpiredError
from headrace.tiles.fold import folds
from headrace.tiles.levels import ReadPiece
from headrace.tiles.run_choice import serving_run

REQUEST = "request"
"""The mode of what is made of request values alone."""


class ViewValues(msgspec.Struct, frozen=True):
    """Values of a view's features for one key at one time, and how fresh they are.

    Parameters
    ----------
    values
        Every feature by name. Timestamps are microseconds.
    at
        The time t the values are for.
    as_of
        All that was on time and had arrived before is included; None when the pipeline has not said anything yet, and
        while a store that was empty is being filled.
    freshness_ms
        Milliseconds from `as_of` to `at`.
    missing
        Whether there is no tile of this key at all.
    stale
        Whether the freshness exceeds the view's `max_staleness`, or is not known.
    mode
        How the tiles are computed, `micro-batch` or `real-time`; `lake` for a past moment, `table` for a dimension.
    late_as_of
        All that had arrived before is included, late events too; None when nothing is known of the late lane.
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
    late_as_of: int | None = None


def oldest_of(moments: Sequence[int | None]) -> int | None:
    """The first of some moments; None when there is none, or one is not known."""
    known = [moment for moment in moments if moment is not None]
    return min(known) if known and len(known) == len(moments) else None


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
        self._folds = folds(plan)
        self._views: dict[str, ViewPlan] = {}

    def view(self, name: str) -> View:
        """A view by name; an unknown one is refused with `not-found`."""
        return self._plan_of(name).view

    def progress(self, tile_set: TileSet) -> ProgressRow | None:
        """How far the run has come that is read."""
        known = self.store.progress(tile_set.fingerprint)
        if self._runs is not None:
            return known.get(self._runs.get(tile_set.id, ""))
        return serving_run(known, self.store.hand_overs(tile_set.fingerprint))

    def read(self, view: str, key: Key, t: int) -> ViewValues:
        """Every feature of a key at time t."""
        return self.read_many(view, [key], t)[0]

    def read_many(
        self, view: str, keys: Sequence[Key], t: int, more: Sequence[Sequence[Tile]] | None = None
    ) -> list[ViewValues]:
        """Every feature of some keys at time t, all from one state of the store.

        Parameters
        ----------
        more
            Of each key, tiles that count beside those of the store: of events that are not in it yet.
        """
        asked = self._plan_of(view)
        cut = asked.cut(t)
        run = None if self._runs is None else self._runs.get(asked.tile_set.id, "")
        found = self.store.read(asked.tile_set.fingerprint, keys, cut.bands, run=run, layout=asked.fold.layout)
        if found.expired is not None and cut.lowest is not None and cut.lowest < found.expired:
            hint = "Ask for a time that is nearer to now; history is in the lake."
            message = "The store no longer holds the tiles of so long ago."
            raise ExpiredError(message, got=show_time(t), hint=hint)
        said = None if found.filling else found.said
        beside = [()] * len(keys) if more is None else more
        return [
            self._answer(asked, key, t, said, _values(asked, cut, pieces or (), t, tiles), pieces is None and not tiles)
            for key, pieces, tiles in zip(keys, found.keys, beside, strict=True)
        ]

    def _answer(
        self, asked: ViewPlan, key: Key, t: int, said: ProgressRow | None, values: dict[str, Any], missing: bool
    ) -> ViewValues:
        as_of = None if said is None else said.as_of
        limit = asked.view.max_staleness
        return ViewValues(
            view=asked.view.name,
            key=dict(zip(asked.view.by, key, strict=True)),
            values=values,
            at=t,
            as_of=as_of,
            freshness_ms=None if as_of is None else (t - as_of) / 1_000,
            missing=missing,
            stale=as_of is None or (limit is not None and t - as_of > limit),
            mode=asked.tile_set.mode,
            late_as_of=None if said is None or said.late_as_of is None else min(said.late_as_of, said.as_of),
        )

    def _plan_of(self, name: str) -> ViewPlan:
        known = self._views.get(name)
        if known is None:
            features = self.plan.view(name)
            known = self._views[name] = ViewPlan(features, self._folds[features[0].tile_set.fingerprint])
        return known


def _values(asked: ViewPlan, cut: Cut, pieces: Sequence[ReadPiece], t: int, more: Sequence[Tile]) -> dict[str, Any]:
    """The value of every feature."""
    shape = cut.shape
    bands = _bands(cut, pieces)
    rows = [need.rows.of(inside) for need, inside in zip(shape.needs, bands, strict=True)]
    for start, columns in more:
        for number, band in enumerate(cut.bands):
            if band.low <= start < band.high:
                bands[number] = [*bands[number], ReadPiece(start, 0, b"")]
                rows[number].append([columns[name] for name in shape.needs[number].names])
    states = run_steps(shape.steps, [list(zip(*held, strict=True)) for held in rows])
    if not asked.whole:
        return {name: finish(states, t) for name, finish in shape.finishes if finish is not None}
    tiles = _tiles(asked, cut, bands, rows)
    return {
        name: value(asked.whole[name], tiles, t) if finish is None else finish(states, t)
        for name, finish in shape.finishes
    }


def _bands(cut: Cut, pieces: Sequence[ReadPiece]) -> list[Sequence[ReadPiece]]:
    """What was read, by band."""
    found, first, count = list[Sequence[ReadPiece]](), 0, len(pieces)
    for band in cut.bands:
        last, high = first, band.high
        while last < count and pieces[last].start < high:
            last += 1
        found.append(pieces[first:last])
        first = last
    return found


def _tiles(
    asked: ViewPlan, cut: Cut, bands: Sequence[Sequence[ReadPiece]], rows: Sequence[Sequence[Sequence[State]]]
) -> list[Tile]:
    """What was read as tiles: each band merged to one, or as it is where a window wants to see every tile."""
    tiles: list[Tile] = []
    for band, need, inside, held in zip(cut.bands, cut.shape.needs, bands, rows, strict=True):
        monoids = [(name, asked.fold.monoid(name)) for name in need.names]
        if need.single:
            single = ([(state,) for state in row] for row in held)
            tiles += [(piece.start, _states(monoids, row)) for piece, row in zip(inside, single, strict=True)]
        elif held:
            tiles.append((band.low, _states(monoids, list(zip(*held, strict=True)))))
    return tiles


def _states(monoids: Sequence[tuple[str, Monoid]], columns: Sequence[Sequence[State]]) -> dict[str, State]:
    return {name: monoid.fold(states) for (name, monoid), states in zip(monoids, columns, strict=True)}
