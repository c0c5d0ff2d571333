"""How the windows of a view cut time at a moment: into bands that lie in the same windows from end to end.

A band says which columns are wanted in it, so that a row is decoded only as far as a window needs it, and whether tiles
must be seen one by one, as session windows do to find the pauses between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.define.window import Session, Window
from headrace.plan.model import PlannedFeature, PlannedTerm
from headrace.store.levels import EVER, Band

COARSEST = 99
"""More levels than there are: whichever fit."""

Span = tuple[int, int]


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
    needs
        Of each band, the columns that are wanted and whether tiles must be seen one by one.
    """

    spans: list[Span]
    lowest: int | None
    bands: list[Band]
    needs: list[tuple[frozenset[str], bool]]


class ViewPlan:
    """What is needed to read a view, worked out once.

    Attributes
    ----------
    features
        Each feature with the number of every term's window; None for one that `plan.value` has to look at as a whole.
    """

    def __init__(self, features: Sequence[PlannedFeature]) -> None:
        self.view, self.tile_set = features[0].view, features[0].tile_set
        self._windows: dict[Window, int] = {}
        self._names: list[frozenset[str]] = []
        self.features = [(planned, self._numbered(planned)) for planned in features]
        self._wanted: dict[int, tuple[frozenset[str], bool]] = {}

    def _numbered(self, planned: PlannedFeature) -> list[int] | None:
        numbers = []
        for term in planned.terms:
            window = term.term.window
            number = self._windows.setdefault(window, len(self._windows))
            if number == len(self._names):
                self._names.append(frozenset())
            self._names[number] |= _names(term)
            numbers.append(number)
        whole = any(isinstance(term.term.window, Session) or term.term.window.exact for term in planned.terms)
        return None if whole else numbers

    def cut(self, t: int) -> Cut:
        """The bands at a time t."""
        grain, spans = self.tile_set.grain, []
        for window in self._windows:
            low, high = window.span(t)
            spans.append((low - low % grain, high + -high % grain))
        edges = sorted({edge for span in spans for edge in span})
        bands, needs = [], []
        for low, high in pairwise(edges):
            inside = sum(1 << place for place, span in enumerate(spans) if span[0] <= low < span[1])
            if inside:
                names, single = self._need(inside)
                bands.append(Band(low, high, 0 if single else COARSEST))
                needs.append((names, single))
        lowest = min((low for low, _ in spans if low > EVER), default=None)
        return Cut(spans, lowest, bands, needs)

    def _need(self, inside: int) -> tuple[frozenset[str], bool]:
        """The columns of some windows, one bit for each, and whether one of them is a session."""
        known = self._wanted.get(inside)
        if known is None:
            chosen = [place for place in range(len(self._names)) if inside >> place & 1]
            windows = list(self._windows)
            names = frozenset[str]().union(*(self._names[place] for place in chosen))
            known = self._wanted[inside] = (names, any(isinstance(windows[place], Session) for place in chosen))
        return known


def _names(planned: PlannedTerm) -> frozenset[str]:
    """The columns that a term looks at."""
    columns = planned.columns
    if isinstance(planned.term.window, Session):
        columns = (*columns, planned.span)
    return frozenset(column.name for column in columns)
