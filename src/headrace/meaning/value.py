"""A feature's value from the tiles of its key: merge the tiles of the window, then finish.

This is what reading means, in every store. It is not the reference: `meaning.reference` computes the same from single
events, and the two are held to each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace.define.window import Window
from headrace.plan.model import Partial, PlannedFeature, PlannedTerm

Tile = tuple[int, Mapping[str, Any]]
"""A tile's start and its partial columns by name. Several with one start (lanes, runs) are merged."""


def value(planned: PlannedFeature, tiles: Iterable[Tile], t: int) -> Any:
    """The feature's value at t from all tiles of one key that are known at t."""
    held = list(tiles)
    return planned.feature.combine([_term_value(term, planned.tile_set.grain, held, t) for term in planned.terms])


def _term_value(planned: PlannedTerm, grain: int, tiles: Sequence[Tile], t: int) -> Any:
    window = planned.term.window
    low, high = window.span(t)
    inside = [tile for tile in tiles if low - low % grain <= tile[0] < high]
    if window.exact:
        kept = _merged(planned.columns[0], inside)
        return planned.term.aggregate.exact([event for event in kept if low <= event[0] < high], t)
    if window.needs_single_tiles:
        inside = _narrowed(window, planned.span, inside, t)
    return planned.term.aggregate.finish([_merged(column, inside) for column in planned.columns], t)


def _merged(column: Partial, tiles: Iterable[Tile]) -> Any:
    return column.monoid.fold(tile[1][column.name] for tile in tiles)


def _narrowed(window: Window, span: Partial, tiles: Sequence[Tile], t: int) -> list[Tile]:
    """The tiles that count of those in the window's span, by the first and last event time in each."""
    spans: dict[int, Any] = {}
    for start, columns in tiles:
        spans[start] = span.monoid.merge(spans.get(start, span.monoid.empty), columns[span.name])
    starts = sorted(start for start in spans if spans[start][0])
    gone = window.narrow([spans[start][1] for start in starts], [spans[start][2] for start in starts], t)
    return [tile for tile in tiles if gone < len(starts) and tile[0] >= starts[gone]]
