"""How the tiles of a tile set are merged into coarser levels, what a level row holds, and for how long tiles are kept.

A level holds those columns that a window at least as wide may ask for: a column whose windows are all shorter is never
read from it, and the events that exact windows keep would grow without bound. States are packed in the order of the
columns; `tiles.levels` decides which tiles make a row. Session windows are read from tiles alone, because a level row
does not say where the pauses in it are. What lifetime windows ask for is kept in a base when the tiles have gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter

import msgspec

from headrace.aggregate import Monoid, State
from headrace.clock import HOUR
from headrace.plan.fingerprint import fingerprint
from headrace.plan.model import Partial, Plan, TileSet
from headrace.tiles.levels import BASE, FACTOR, LevelLayout, ReadPiece, widths
from headrace.tiles.partials import decoder

FORMAT = 3
"""Of a level row's bytes."""

SLACK = HOUR
"""How far the clock of whoever reads may be behind the log's."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list).decode


class TileFold:
    """How the tiles of one tile set are merged; see `tiles.levels.Fold`.

    Parameters
    ----------
    tile_set
        Whose tiles they are.
    reaches
        How far the longest window looks back that asks for a column; None for ever, absent when no window may be read
        from levels.
    keep
        For how long a tile may be asked for, in microseconds.
    """

    def __init__(self, tile_set: TileSet, reaches: Mapping[str, int | None], keep: int) -> None:
        longest = None if None in reaches.values() else max((reach or 0 for reach in reaches.values()), default=0)
        cut = widths(tile_set.grain, longest)
        self._levels = tuple(
            tuple(partial for partial in tile_set.partials if _reaches_width(reaches, partial, width)) for width in cut
        )
        held = [[partial.name for partial in columns] for columns in self._levels]
        digest = fingerprint({"format": FORMAT, "factor": FACTOR, "widths": cut, "columns": held})
        self._base = tuple(partial for partial in tile_set.partials if reaches.get(partial.name, 0) is None)
        base = (
            fingerprint({"format": FORMAT, "columns": [partial.name for partial in self._base]}) if self._base else ""
        )
        self.layout = LevelLayout(digest, cut, keep, base)
        self._tiles = tile_set.partials
        self._monoids = {partial.name: partial.monoid for partial in tile_set.partials}
        self._readers: dict[tuple[str, ...], Rows] = {}

    def merge(self, level: int, pieces: Sequence[ReadPiece]) -> bytes:
        """See `tiles.levels.Fold.merge`."""
        columns = self._columns(level)
        found = self.rows([column.name for column in columns]).columns(pieces)
        merged = [(column.monoid, column.monoid.fold(states)) for column, states in zip(columns, found, strict=True)]
        return _pack([state if monoid.carried else monoid.pack(state) for monoid, state in merged])

    def _columns(self, level: int) -> tuple[Partial, ...]:
        if level == BASE:
            return self._base
        return self._levels[level - 1] if level else self._tiles

    def monoid(self, name: str) -> Monoid:
        """The monoid of a column."""
        return self._monoids[name]

    def rows(self, names: Iterable[str]) -> Rows:
        """What reads some columns of pieces."""
        wanted = tuple(names)
        known = self._readers.get(wanted)
        if known is None:
            known = self._readers[wanted] = Rows(self._columns, wanted)
        return known


class Rows:
    """Reads some columns of tiles, level rows and bases; what is read is as `Monoid.fold` takes it."""

    def __init__(self, columns: Callable[[int], Sequence[Partial]], names: Sequence[str]) -> None:
        self._names, self._decoders = names, _Decoders(columns, names)

    def of(self, pieces: Iterable[ReadPiece]) -> list[Sequence[State]]:
        """Of each piece, the states of the columns in their order."""
        decoders = self._decoders
        return [decoders[piece.level](piece.partials) for piece in pieces]

    def columns(self, pieces: Sequence[ReadPiece]) -> Sequence[Sequence[State]]:
        """Of each column, the states of the pieces."""
        return list(zip(*self.of(pieces), strict=True)) if pieces else [()] * len(self._names)


class _Decoders(dict[int, Callable[[bytes], Sequence[State]]]):
    """Functions from the bytes of a tile (level 0), a level row or a base to some columns, made when needed."""

    def __init__(self, columns: Callable[[int], Sequence[Partial]], names: Sequence[str]) -> None:
        self._columns, self._names = columns, names

    def __missing__(self, level: int) -> Callable[[bytes], Sequence[State]]:
        columns = self._columns(level)
        places = {column.name: place for place, column in enumerate(columns)}
        chosen = [(places[name], columns[places[name]].monoid) for name in self._names]
        if level:
            made = _packed(chosen)
        else:
            made = decoder([(name, monoid) for name, (_, monoid) in zip(self._names, chosen, strict=True)])
        self[level] = made
        return made


def _packed(chosen: Sequence[tuple[int, Monoid]]) -> Callable[[bytes], Sequence[State]]:
    """A function from the bytes of a level row to the states at some places."""
    unpacks = [(place, None if monoid.carried else monoid.unpack) for place, monoid in chosen]

    def read(packed: bytes) -> Sequence[State]:
        cells = _unpack(packed)
        return [cells[place] if unpack is None else unpack(cells[place]) for place, unpack in unpacks]

    if len(chosen) < 2 or any(unpack for _, unpack in unpacks):
        return read
    picked = itemgetter(*(place for place, _ in chosen))
    return lambda packed: picked(_unpack(packed))


def _reaches_width(reaches: Mapping[str, int | None], partial: Partial, width: int) -> bool:
    reach = reaches.get(partial.name, 0)
    return reach is None or reach >= width


def folds(plan: Plan) -> dict[str, TileFold]:
    """How the tiles of every tile set of a plan are merged, by fingerprint.

    Examples
    --------
    >>> import headrace as hr
    >>> from headrace.plan.build import build
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1d")})
    >>> (fold,) = folds(build([users])).values()
    >>> [width // 60_000_000 for width in fold.layout.widths]
    [120, 720]
    """
    return {
        tile_set.fingerprint: TileFold(tile_set, _reaches(plan, tile_set), _keep(plan, tile_set))
        for tile_set in plan.tile_sets
    }


def _keep(plan: Plan, tile_set: TileSet) -> int:
    """How long after its start a tile may be asked for one by one, or change in the on-time lane."""
    windows = [term.term.window for planned in plan.features if planned.tile_set == tile_set for term in planned.terms]
    longest = max((window.reach for window in windows if window.reach is not None), default=0)
    stream = tile_set.stream
    return longest + tile_set.grain + stream.allowed_lateness + stream.max_clock_skew + SLACK


def _reaches(plan: Plan, tile_set: TileSet) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for planned in plan.features:
        for term in planned.terms if planned.tile_set == tile_set else ():
            window = term.term.window
            if window.needs_single_tiles:
                continue
            for column in term.columns:
                known, reach = found.get(column.name, 0), window.reach
                found[column.name] = None if known is None or reach is None else max(known, reach)
    return found
