"""A feature's value from the tiles of its key: merge the tiles of the window, then finish.

This is what reading means, in every store. It is not the reference: `meaning.reference` computes the same from single
events, and the two are held to each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace.define.window import Session
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
    if isinstance(window, Session):
        inside = _session(window, planned.span, inside, t)
    return planned.term.aggregate.finish([_merged(column, inside) for column in planned.columns], t)


def _merged(column: Partial, tiles: Iterable[Tile]) -> Any:
    return column.monoid.fold(tile[1][column.name] for tile in tiles)


def _session(window: Session, span: Partial, tiles: Sequence[Tile], t: int) -> list[Tile]:
    """The tiles of the running session: neighbours belong together when the pause between them is at most the gap."""
    spans: dict[int, Any] = {}
    for start, columns in tiles:
        spans[start] = span.monoid.merge(spans.get(start, span.monoid.empty), columns[span.name])
    starts = sorted(start for start in spans if spans[start][0])
    if not starts or t - spans[starts[-1]][2] > window.gap:
        return []
    first = starts[-1]
    for earlier, later in zip(reversed(starts[:-1]), reversed(starts), strict=False):
        if spans[later][1] - spans[earlier][2] > window.gap:
            break
        first = earlier
    return [tile for tile in tiles if tile[0] >= first]
