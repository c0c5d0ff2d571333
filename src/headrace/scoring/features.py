"""What is known of an event's keys at its arrival: the tiles of the store, and the tail of the log that they lack.

All is read from one state of the store, where it can give one. Elsewhere a read that meets a row of the tail's tiles
just as it changes is made again; so no event is counted twice or left out. Views of other streams, and dimensions, are
read as serving reads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from headrace.define.dimension import Dimension, Keyed
from headrace.define.model import Model
from headrace.define.view import View
from headrace.errors import MachineError
from headrace.meaning.event import Event
from headrace.plan.model import Plan, TileSet
from headrace.read.feature_row import RequestValues
from headrace.read.reader import Reader, ViewValues
from headrace.scoring.tail import Tail, TailEvent
from headrace.serve.dimensions import Dimensions
from headrace.store.protocol import StoredTile
from headrace.tiles.changelog import HandOver, Key, ProgressRow

TRIES = 100
"""Reads that may meet a change: each takes a fraction of a millisecond, and the rows of one key change seldom."""


class EventHistory(NamedTuple):
    """What was read for an event.

    Parameters
    ----------
    key
        Every column of the keys, by name.
    requests
        The request values of each on-demand feature.
    answers
        What every view and dimension has.
    folded
        How many events of the tail are in it.
    positions
        By tile set, up to where all of the stream is in the tiles that were read.
    whole
        Whether nothing had to be let go that the tiles lack.
    """

    key: dict[str, Any]
    requests: RequestValues
    answers: dict[str, ViewValues]
    folded: int
    positions: dict[str, dict[int, int]]
    whole: bool

    @property
    def text(self) -> str:
        """The key as JSON."""
        return json.dumps(self.key, separators=(",", ":"), ensure_ascii=False)


class TileRead(NamedTuple):
    """The rows of the tiles that some events belong to, and the run that is read."""

    said: ProgressRow | None = None
    hand_over: HandOver | None = None
    held: Sequence[StoredTile] = ()

    def same(self, other: TileRead) -> bool:
        """Whether nothing has changed that decides which events are in the tiles."""
        return bool(self._decides() == other._decides())

    def _decides(self) -> Any:
        run = None if self.said is None else self.said.run
        return run, self.hand_over, [(row.tile, row.lane, row.version) for row in self.held]


class EventFeatures:
    """Reads the features of a model for the events of its stream.

    Attributes
    ----------
    tails
        By tile set, what is kept of the stream.
    """

    def __init__(self, model: Model, plan: Plan, reader: Reader, dimensions: Dimensions) -> None:
        self._model, self._reader, self._dimensions = model, reader, dimensions
        self._inputs = {name: made.python() for name, made in model.inputs}
        self._parts: tuple[Keyed, ...] = model.features.keyed
        stream = model.stream.base if model.stream is not None else None
        self._tile_sets = {part.name: plan.view_tiles[part.name] for part in self._parts if isinstance(part, View)}
        own = {each.id: each for each in self._tile_sets.values() if each.stream == stream}
        self.tails = {name: Tail(tile_set) for name, tile_set in own.items()}
        self._ids = {name: tile_set.id for name, tile_set in self._tile_sets.items()}
        self._at_once: dict[str, tuple[ProgressRow | None, HandOver | None]] | None = None

    def add(self, event: Event) -> None:
        """Keep an event that is on its way into the tiles, unless these have it: they do when scoring is behind."""
        _, partition, offset = event.place
        for tail in self.tails.values():
            said = None if self._at_once is None else self._run(tail.tile_set)[0]
            if said is None or said.positions.get(partition, 0) <= offset:
                tail.add(event)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """While entered, all events are given what one state of the store has, if the store can do that."""
        with self._reader.store.snapshot() as one:
            self._at_once = {} if one else None
            try:
                yield
            finally:
                self._at_once = None

    def progress(self, tile_set: TileSet) -> ProgressRow | None:
        """How far the tiles are."""
        return self._reader.progress(tile_set)

    def forget(self) -> None:
        """Let go of events that are in the tiles."""
        for tail in self.tails.values():
            said = self.progress(tail.tile_set)
            if said is not None:
                tail.forget(said.positions)

    def of(self, event: Event, *, late: bool = False) -> EventHistory:
        """What is known of an event's keys; one that was late is in no tail, and counts itself all the same."""
        row, t = event.row, event.arrived_at
        given = {name: read(row) for name, read in self._inputs.items()}
        answers: dict[str, ViewValues] = {}
        folded, positions, whole = 0, dict[str, dict[int, int]](), True
        for part in self._parts:
            key = tuple(given[name] for name in part.by)
            if isinstance(part, Dimension):
                answers[part.name] = self._dimensions.read(part, [key], t)[0]
                continue
            name = self._ids[part.name]
            tail = self.tails.get(name)
            if tail is None:
                answers[part.name] = self._reader.read(part.name, key, t)
                continue
            extra = tail.waiting(event) if late and part.stream.late == "update" else None
            answers[part.name], more, said = self._read(part, key, t, tail, extra)
            folded = max(folded, more)
            positions[name] = {} if said is None else dict(said.positions)
            whole = whole and tail.whole(positions[name])
        key_columns = {name: given[name] for part in self._parts for name in part.by}
        return EventHistory(key_columns, self._requests(given), answers, folded, positions, whole)

    def _requests(self, given: Mapping[str, Any]) -> RequestValues:
        made = self._model.features.on_demands
        return {each.name: {field.name: given[field.name] for field in each.request} for each in made}

    def _read(
        self, view: View, key: Key, t: int, tail: Tail, late: TailEvent | None
    ) -> tuple[ViewValues, int, ProgressRow | None]:
        """What a view has of a key, how many events of the tail are in it, and how far the tiles are."""
        beside = [] if late is None else [(late.tile, tail.states(late.event))]
        span = tail.span(key)
        if span is None:
            said, _ = self._run(tail.tile_set)
            return self._reader.read_many(view.name, [key], t, [beside])[0], len(beside), said
        before = self._read_tiles(tail.tile_set, key, *span)
        for _ in range(TRIES):
            more, count = tail.outside(key, before.held, before.hand_over)
            (answer,) = self._reader.read_many(view.name, [key], t, [[*more, *beside]])
            if self._at_once is not None:
                return answer, count + len(beside), before.said
            after = self._read_tiles(tail.tile_set, key, *span)
            if before.same(after):
                return answer, count + len(beside), before.said
            before = after
        message = f"The tiles of view {view.name!r} changed at every one of {TRIES} reads."
        raise MachineError("store-busy", message, got=str(key))

    def _read_tiles(self, tile_set: TileSet, key: Key, low: int, high: int) -> TileRead:
        said, hand_over = self._run(tile_set)
        if said is None:
            return TileRead()
        return TileRead(said, hand_over, self._reader.store.tiles(tile_set.fingerprint, said.run, key, low, high))

    def _run(self, tile_set: TileSet) -> tuple[ProgressRow | None, HandOver | None]:
        """How far the tiles are, and how the run that is read was filled."""
        known = None if self._at_once is None else self._at_once.get(tile_set.fingerprint)
        if known is None:
            said = self.progress(tile_set)
            held = {} if said is None else self._reader.store.hand_overs(tile_set.fingerprint)
            known = said, None if said is None else held.get(said.run)
            if self._at_once is not None:
                self._at_once[tile_set.fingerprint] = known
        return known
