"""What a world's records mean, and where an engine's tiles and the values read from them differ from it.

Equal means: exactly for counts, whole numbers, decimals, texts, least, greatest, first and last; within the rounding of
a sum made in another order for floats; within their declared error for sketches.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from headrace.aggregate import Distinct, Frequent, Monoid, Quantiles, aggregate
from headrace.clock import MINUTE
from headrace.define.view import View
from headrace.meaning.equality import close
from headrace.meaning.event import Event, Place
from headrace.meaning.exact import Key
from headrace.meaning.reference import ReferenceResult, contributing
from headrace.plan.model import Partial, TileSet
from headrace.read.reader import Reader
from headrace.tiles.changelog import TileRow
from headrace.tiles.changelog_format import decode
from tests.aggregate.cases import same
from tests.conformance.cases import EVERYTHING, cases_by_key
from tests.conformance.definitions import GAP
from tests.conformance.world import World
from tests.serve.shape import decoder

Identity = tuple[Key, int, str]
"""Key, start and lane of a tile."""
Difference = tuple[str, str]
"""The case, and what is different."""
NOBODY = "a key that nobody sent"


@dataclass
class Content:
    """The events of a tile, and of each all places at which a copy of it stands that an engine may have taken."""

    events: list[Event] = field(default_factory=list)
    copies: list[set[Place]] = field(default_factory=list)

    @property
    def positions(self) -> dict[int, int]:
        """The next offset of each partition that is not in the tile."""
        found: dict[int, int] = {}
        for event in self.events:
            _, partition, offset = event.place
            found[partition] = max(found.get(partition, 0), offset + 1)
        return found


class Meaning:
    """What a world's records mean, case by case."""

    def __init__(self, world: World) -> None:
        self.plan = world.plan
        self.outcome = ReferenceResult(world.plan, world.records)
        self._cases = cases_by_key(world.cases)
        self._tiles: dict[str, dict[Identity, dict[str, Any]]] = {}
        self._contents: dict[str, dict[Identity, Content]] = {}
        self._values: dict[tuple[str, Key, int], dict[str, Any]] = {}

    def case_of(self, key: Key) -> str:
        """The case that a key belongs to."""
        return self._cases.get(key[0], NOBODY) if key else EVERYTHING

    def tiles(self, tile_set: TileSet) -> dict[Identity, dict[str, Any]]:
        """The partial columns of every tile."""
        if tile_set.id not in self._tiles:
            self._tiles[tile_set.id] = self.outcome.tiles(tile_set)
        return self._tiles[tile_set.id]

    def contents(self, tile_set: TileSet) -> dict[Identity, Content]:
        """The events of every tile."""
        if tile_set.id not in self._contents:
            self._contents[tile_set.id] = self._gathered(tile_set)
        return self._contents[tile_set.id]

    def _gathered(self, tile_set: TileSet) -> dict[Identity, Content]:
        judged = self.outcome.judged[tile_set.stream.name]
        copies: dict[tuple[str, int], set[Place]] = defaultdict(set)
        for each in judged:
            if each.event is not None and each.verdict in ("admitted", "duplicate") and not each.closed:
                copies[each.event.event_id, each.event.event_time].add(each.place)
        wanted = tile_set.where.python() if tile_set.where else None
        parts = [column.python() for _, column in tile_set.key]
        found: dict[Identity, Content] = defaultdict(Content)
        for lane, event in contributing(tile_set.stream.late, judged):
            if wanted is None or wanted(event.row) is True:
                start = event.event_time - event.event_time % tile_set.grain
                content = found[tuple(part(event.row) for part in parts), start, lane]
                content.events.append(event)
                on_time = copies[event.event_id, event.event_time] if lane == "on_time" else set()
                content.copies.append({event.place} | on_time)
        return dict(found)

    @cached_property
    def settled(self) -> ReferenceResult:
        """The same, but known from the beginning of time: a store that has everything can then be asked about any t."""
        made = copy.copy(self.outcome)
        made.judged = {
            name: [
                each
                if each.event is None
                else dataclasses.replace(each, event=dataclasses.replace(each.event, place=(-(2**63), 0, 0)))
                for each in judged
            ]
            for name, judged in self.outcome.judged.items()
        }
        made._views = {}
        return made

    def values(self, view: View, key: Key, t: int) -> dict[str, Any]:
        """Every feature of a key at t, all records being known."""
        if (view.name, key, t) not in self._values:
            self._values[view.name, key, t] = self.settled.values(view, key, (t,))
        return self._values[view.name, key, t]


def folded(pairs: Iterable[tuple[bytes | None, bytes | None]]) -> dict[Identity, TileRow]:
    """The row of every identity in a changelog: that with the greatest version, of several the last."""
    found: dict[Identity, TileRow] = {}
    for key, value in pairs:
        row = decode(key, value)
        if isinstance(row, TileRow):
            identity = (row.key, row.tile, row.lane)
            if identity not in found or row.version >= found[identity].version:
                found[identity] = row
    return found


def tile_differences(meaning: Meaning, tile_set: TileSet, found: Mapping[Identity, TileRow]) -> Iterator[Difference]:
    """Where tiles differ from what they are: a tile too many, one too few, or a column of it."""
    expected, contents = meaning.tiles(tile_set), meaning.contents(tile_set)
    for identity in sorted(expected.keys() | found.keys(), key=repr):
        case, said = meaning.case_of(identity[0]), f"{tile_set.id} {identity}"
        if identity in expected and identity in found:
            for what in _columns(tile_set, found[identity], expected[identity], contents[identity]):
                yield case, f"{said}: {what}"
        else:
            yield case, f"{said}: {'there' if identity in found else 'not there'}, which is wrong"


def row_differences(
    meaning: Meaning, tile_set: TileSet, found: Mapping[Identity, TileRow], *, counted: bool
) -> Iterator[Difference]:
    """Where rows say of themselves what is not so: their newest times, positions, and version if that is a count."""
    contents = meaning.contents(tile_set)
    for identity in found.keys() & contents.keys():
        for what in _said(found[identity], contents[identity], counted):
            yield meaning.case_of(identity[0]), f"{tile_set.id} {identity}: {what}"


def _columns(tile_set: TileSet, row: TileRow, expected: Mapping[str, Any], content: Content) -> Iterator[str]:
    states = _decoder(tile_set)(row.partials)
    for column in tile_set.partials:
        events = eaten(column, content.events)
        a, b = states[column.name], expected[column.name]
        if not equal(column.monoid, a, b, events):
            yield f"{column.name} of {column.value.text} is {a!r}, but it should be {b!r} from {events}"


@cache
def _decoder(tile_set: TileSet) -> Any:
    return decoder((column.name, column.monoid) for column in tile_set.partials)


def eaten(column: Partial, events: Iterable[Event]) -> list[tuple[int, str, Any]]:
    """What a column has been fed, without nulls."""
    eat = column.value.python()
    fed = [(event.event_time, event.event_id, eat(event.row)) for event in events]
    return [each for each in fed if each[2] is not None]


def equal(monoid: Monoid, a: Any, b: Any, events: Sequence[tuple[int, str, Any]]) -> bool:
    """Whether two states of a column over these events are equal; sketches by what they answer."""
    match monoid:
        case Distinct():
            asked = [aggregate("count_distinct", monoid.input)]
        case Quantiles():
            asked = [aggregate("quantile", monoid.input, q=q) for q in (0, 0.01, 0.25, 0.5, 0.75, 0.99, 1)]
        case Frequent():
            asked = [aggregate("top_k", monoid.input, k=k) for k in (1, 10)]
        case _:
            return same(monoid, a, b, events)
    return all(each.close(each.finish([a], 0), each.exact(events, 0), events) for each in asked)


def _said(row: TileRow, content: Content, counted: bool) -> Iterator[str]:
    """What a row says of itself and is not so. Of copies an engine may have taken any that was on time."""
    events, copies = content.events, content.copies
    if counted and row.lane == "on_time" and row.version != len(events):
        yield f"version {row.version} of {len(events)} events"
    if row.max_event_time != max(event.event_time for event in events):
        yield f"max_event_time {row.max_event_time}"
    least, most = (max(end(place[0] for place in places) for places in copies) for end in (min, max))
    if row.max_arrived_at is None or not least <= row.max_arrived_at <= most:
        yield f"max_arrived_at {row.max_arrived_at}, not from {least} to {most}"
    if all(len(places) == 1 for places in copies) and dict(row.positions) != content.positions:
        yield f"positions {dict(row.positions)}, not {content.positions}"


def value_differences(meaning: Meaning, reader: Reader, view: View, most: int = 4) -> Iterator[Difference]:
    """Where the values that a reader gives differ from what they are, at a few moments of each key."""
    for key in meaning.settled.keys(view):
        events, case = meaning.settled.events(view, key), meaning.case_of(key)
        for t in moments(events)[:most]:
            answer, expected = reader.read(view.name, key, t), meaning.values(view, key, t)
            if answer.missing:
                yield case, f"{view.name} of {key} at {t}: nothing is there"
            for feature in view.features:
                a, b = answer.values[feature.name], expected[feature.name]
                if not close(feature, a, b, events, t):
                    yield case, f"{view.name}.{feature.name} of {key} at {t}: {a!r}, but it should be {b!r}"


def moments(events: Sequence[Event]) -> list[int]:
    """When to ask about a key: as its last event comes, when a session's pause is just over, and in between."""
    times = [event.event_time for event in events]
    first, middle, last = times[0], times[len(times) // 2], times[-1]
    return list(dict.fromkeys([last, middle + MINUTE, last + GAP + 1, first + 1]))
