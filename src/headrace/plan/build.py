"""Definitions become a plan: one admission per stream, one tile set per (stream, key), features with their columns.

Features share columns: ten windows of one count cost one column. A view's own filter is folded into what its columns
eat, so views with different filters still share a tile set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from math import gcd
from typing import Any

from headrace.aggregate import EventList, TimeSpan
from headrace.define.dimension import Dimension
from headrace.define.feature_set import FeatureSet
from headrace.define.label import Label
from headrace.define.model import Model
from headrace.define.on_demand import OnDemand
from headrace.define.over import default_resolution
from headrace.define.stream import Stream
from headrace.define.view import Term, View
from headrace.define.window import Window
from headrace.errors import DefinitionError, shown
from headrace.expression import Expression, either, literal, when
from headrace.plan.capability import reason_against
from headrace.plan.model import Admission, Partial, Plan, PlannedDimension, PlannedFeature, PlannedTerm, TileSet

READ_BY_NAME: dict[type, str] = {View: "view", Dimension: "dimension", FeatureSet: "feature set"}


@dataclass(frozen=True)
class Definitions:
    """All that a project defines, each thing once, in the order it was first met."""

    streams: tuple[Stream, ...]
    views: tuple[View, ...]
    on_demands: tuple[OnDemand, ...]
    feature_sets: tuple[FeatureSet, ...]
    dimensions: tuple[Dimension, ...]
    models: tuple[Model, ...] = ()
    labels: tuple[Label, ...] = ()


def gather(defined: Iterable[Any]) -> Definitions:
    """Everything named and everything behind it; two things of one name are refused.

    >>> gather([]).views
    ()
    """
    kinds = (Stream, View, OnDemand, FeatureSet, Dimension, Model, Label)
    found: dict[type, dict[str, Any]] = {kind: {} for kind in kinds}

    def add(thing: Any) -> None:
        match thing:
            case FeatureSet():
                for part in (*thing.keyed, *thing.on_demands):
                    add(part)
            case OnDemand():
                for source in thing.sources:
                    add(source)
            case View():
                add(thing.stream.base)
            case Stream():
                thing = thing.base
            case Dimension():
                pass
            case Model():
                add(thing.features)
                if thing.stream is not None:
                    add(thing.stream)
            case Label():
                add(thing.model)
                add(thing.stream)
            case _:
                hint = "Give streams, views, dimensions, on-demand features, feature sets, models and labels."
                raise DefinitionError("bad-argument", "This is not a definition.", got=shown(thing), hint=hint)
        held = found[type(thing)].setdefault(thing.name, thing)
        if held != thing:
            message = f"Two different definitions are called {thing.name!r}."
            hint = f"Rename one of them: the other is at {held.location}."
            raise DefinitionError("duplicate-name", message, got=repr(thing), hint=hint, where=thing.location)

    for thing in defined:
        add(thing)
    _refuse_shared_names(found)
    return Definitions(*(tuple(found[kind].values()) for kind in kinds))


def _refuse_shared_names(found: dict[type, dict[str, Any]]) -> None:
    for (first, one), (second, other) in combinations(READ_BY_NAME.items(), 2):
        for name in found[first].keys() & found[second].keys():
            message = f"A {one} and a {other} are both called {name!r}."
            hint = f"Both are read by name: rename one of them. The {one} is at {found[first][name].location}."
            place = found[second][name].location
            raise DefinitionError("duplicate-name", message, got=shown(name), hint=hint, where=place)


def build(defined: Iterable[Any], mode: str = "micro-batch", log: str = "kafka") -> Plan:
    """Plan definitions for a mode and a kind of log.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h"), "m": hr.count(over="1d")})
    >>> [tiles.id for tiles in build([users]).tile_sets]
    ['clicks.by_user']
    """
    all_of = gather(defined)
    groups: dict[tuple[Stream, tuple[tuple[str, Expression], ...]], list[View]] = {}
    for view in all_of.views:
        groups.setdefault((view.stream.base, view.key), []).append(view)
    tile_sets: list[TileSet] = []
    features: dict[str, tuple[PlannedFeature, ...]] = {}
    for (stream, key), views in groups.items():
        tiles = _tile_set(stream, key, views, mode, log)
        tile_sets.append(tiles)
        for view in views:
            features[view.name] = _features(view, tiles)
    return Plan(
        admissions=tuple(Admission(stream) for stream in _streams(all_of).values()),
        tile_sets=tuple(tile_sets),
        features=tuple(planned for view in all_of.views for planned in features[view.name]),
        on_demands=all_of.on_demands,
        feature_sets=all_of.feature_sets,
        mode=mode,
        dimensions=tuple(PlannedDimension(each) for each in all_of.dimensions),
        models=all_of.models,
        labels=all_of.labels,
    )


def _streams(all_of: Definitions) -> dict[str, Stream]:
    """Every stream whose records are judged: those of predictions too, which nobody declares."""
    made = [each.predictions for each in all_of.models if each.stream is not None]
    return {stream.name: stream for stream in (*all_of.streams, *made)}


def _tile_set(
    stream: Stream, key: tuple[tuple[str, Expression], ...], views: Sequence[View], mode: str, log: str
) -> TileSet:
    partials: dict[str, Partial] = {}
    for view in views:
        for column in (_span(view), *(c for term in _terms_of(view) for c in _columns(term))):
            partials.setdefault(column.name, column)
    windows = [term.window for view in views for term in _terms_of(view)]
    reaches = [window.reach for window in windows]
    made = TileSet(
        stream=stream,
        key=key,
        where=_any_of([view.stream.filter for view in views]),
        grain=gcd(*(length for window in windows for length in _stored_lengths(window))),
        partials=tuple(partials[name] for name in sorted(partials)),
        retention=None if None in reaches else max(reach for reach in reaches if reach is not None),
        mode=mode,
    )
    reason = reason_against("tiles", mode, stream.format, log)
    return made if reason is None else replace(made, mode="micro-batch", mode_reason=reason)


def _stored_lengths(window: Window) -> tuple[int, ...]:
    """What the stored grain must divide. An exact window is cut event by event, so any round grain will do."""
    return (default_resolution(window.lengths[-1]),) if window.exact else window.lengths


def _any_of(filters: Sequence[Expression | None]) -> Expression | None:
    """The rows that concern any of the views: all of them when one view takes all."""
    distinct = {found.text: found for found in filters if found is not None}
    if None in filters:
        return None
    return reduce(either, (distinct[text] for text in sorted(distinct)))


def _terms_of(view: View) -> tuple[Term, ...]:
    return tuple(term for feature in view.features for term in feature.terms)


def _span(view: View) -> Partial:
    everything = literal(True)
    filtered = view.stream.filter
    return Partial(TimeSpan(), everything if filtered is None else when(filtered, everything))


def _columns(term: Term) -> tuple[Partial, ...]:
    if term.window.exact:
        return (Partial(EventList(term.value.type), term.value),)
    return tuple(Partial(monoid, term.value) for monoid in term.aggregate.monoids)


def _features(view: View, tiles: TileSet) -> tuple[PlannedFeature, ...]:
    held = {column.name: column for column in tiles.partials}

    def shared(column: Partial) -> Partial:
        return held[column.name]

    def planned(term: Term) -> PlannedTerm:
        return PlannedTerm(term, tuple(shared(column) for column in _columns(term)), shared(_span(view)))

    return tuple(
        PlannedFeature(view, feature, tiles, tuple(planned(term) for term in feature.terms))
        for feature in view.features
    )
