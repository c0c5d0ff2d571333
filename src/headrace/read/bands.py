"""How the windows of a view cut time at a moment: into bands that lie in the same windows from end to end.

A band says which columns are wanted in it, so that a row is decoded only as far as a window needs it, and whether tiles
must be seen one by one, as session windows do to find the pauses between them. Which band lies in which windows stays
the same nearly always while time goes on, so all that follows from it, the order of merges above all (`steps`), is
worked out once for each such shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.define.window import Window
from headrace.plan.model import PlannedFeature, PlannedTerm
from headrace.read.merge_steps import Finish, MergeStep, finishes, steps
from headrace.tiles.fold import Rows, TileFold
from headrace.tiles.levels import EVER, Band

COARSEST = 99
"""More levels than there are: whichever fit."""

Span = tuple[int, int]


@dataclass(frozen=True)
class BandNeed:
    """What is wanted in a band.

    Parameters
    ----------
    names
        The columns.
    rows
        What reads them.
    single
        Whether tiles must be seen one by one.
    """

    names: tuple[str, ...]
    rows: Rows
    single: bool


@dataclass(frozen=True)
class BandLayout:
    """What follows from which bands lie in which windows.

    Parameters
    ----------
    needs
        Of each band, what is wanted in it.
    steps
        How the rows of the bands become the states of windows.
    finishes
        How these become the values of features, by name; None for one that `meaning.value` has to look at as a whole.
    """

    needs: Sequence[BandNeed]
    steps: Sequence[MergeStep]
    finishes: Sequence[tuple[str, Finish | None]]


@dataclass(frozen=True)
class Cut:
    """The windows of a view at a moment.

    Parameters
    ----------
    spans
        Of each window, the starts of tiles that it can touch.
    lowest
        Where the first tile begins that must be there one by one; None when no window but lifetimes is asked for.
    bands
        What is to be read, in order.
    shape
        What to do with it.
    """

    spans: Sequence[Span]
    lowest: int | None
    bands: Sequence[Band]
    shape: BandLayout


class ViewPlan:
    """What is needed to read a view, worked out once.

    Attributes
    ----------
    whole
        The features that `meaning.value` has to look at as a whole, by name.
    """

    def __init__(self, features: Sequence[PlannedFeature], fold: TileFold) -> None:
        self.view, self.tile_set, self.fold = features[0].view, features[0].tile_set, fold
        self._features = features
        self.whole = {planned.feature.name: planned for planned in features if _is_whole(planned)}
        windows = [term.term.window for planned in features for term in planned.terms]
        self._windows = list(dict.fromkeys(windows))
        self._shapes: dict[tuple[int, ...], BandLayout] = {}
        self._latest: Cut | None = None

    def cut(self, t: int) -> Cut:
        """The bands at a time t."""
        grain, spans = self.tile_set.grain, []
        for window in self._windows:
            low, high = window.span(t)
            spans.append((low - low % grain, high + -high % grain))
        latest = self._latest
        if latest is None or latest.spans != spans:
            latest = self._latest = self._cut(spans)
        return latest

    def _cut(self, spans: Sequence[Span]) -> Cut:
        """The bands of some spans; until the next tile begins, every moment has the same."""
        edges = sorted({edge for span in spans for edge in span})
        inside = [
            (low, high, sum(1 << place for place, span in enumerate(spans) if span[0] <= low < span[1]))
            for low, high in pairwise(edges)
        ]
        held = [band for band in inside if band[2]]
        shape = self._shape(tuple(windows for _, _, windows in held))
        bands = [
            Band(low, high, 0 if need.single else COARSEST)
            for (low, high, _), need in zip(held, shape.needs, strict=True)
        ]
        lowest = min((low for low, _ in spans if low > EVER), default=None)
        return Cut(spans, lowest, bands, shape)

    def _shape(self, inside: tuple[int, ...]) -> BandLayout:
        """What follows from the windows of each band, one bit for each."""
        known = self._shapes.get(inside)
        if known is None:
            bands = [[window for place, window in enumerate(self._windows) if bits >> place & 1] for bits in inside]
            needs = [self._need(windows) for windows in bands]
            plain = [planned for planned in self._features if planned.feature.name not in self.whole]
            made, places = steps(plain, bands, [need.names for need in needs])
            known = self._shapes[inside] = BandLayout(needs, made, finishes(self._features, places))
        return known

    def _need(self, windows: Sequence[Window]) -> BandNeed:
        """What some windows want."""
        terms = [term for planned in self._features for term in planned.terms if term.term.window in windows]
        names = tuple(dict.fromkeys(name for term in terms for name in _names(term)))
        return BandNeed(names, self.fold.rows(names), any(window.needs_single_tiles for window in windows))


def _is_whole(planned: PlannedFeature) -> bool:
    return any(term.term.window.needs_single_tiles or term.term.window.exact for term in planned.terms)


def _names(planned: PlannedTerm) -> list[str]:
    """The columns that a term looks at."""
    spans = [planned.span] if planned.term.window.needs_single_tiles else []
    return [column.name for column in (*planned.columns, *spans)]
