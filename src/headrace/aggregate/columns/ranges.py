"""Which places of a column count for each row: a few ranges, however many places they hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.aggregate.columns.range_folds import Array


@dataclass(frozen=True)
class RowRanges:
    """Of each row some places of a sequence, as ranges [low, high) in order, none of which is empty.

    Those of a row are the ranges from start[row] to start[row + 1].
    """

    start: Array
    low: Array
    high: Array

    @property
    def rows(self) -> Array:
        """The row of each range."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @property
    def counts(self) -> Array:
        """How many places each row has."""
        upto = np.concatenate([[0], np.cumsum(self.high - self.low)])
        found: Array = upto[self.start[1:]] - upto[self.start[:-1]]
        return found

    @property
    def first(self) -> Array:
        """The first place of each row; where there is none it means nothing."""
        return np.append(self.low, 0)[self.start[:-1]]

    @property
    def last(self) -> Array:
        """The last place of each row; where there is none it means nothing."""
        found: Array = np.append(self.high, 0)[self.start[1:] - 1] - 1
        return found

    def mapped(self, low: Array, high: Array) -> RowRanges:
        """Other ranges in the place of these; those that are empty fall away."""
        kept = low < high
        return RowRanges(np.concatenate([[0], np.cumsum(kept)])[self.start], low[kept], high[kept])

    def within(self, low: Array, high: Array) -> RowRanges:
        """The places that also lie in [low, high) of their row."""
        rows = self.rows
        return self.mapped(np.maximum(self.low, low[rows]), np.minimum(self.high, high[rows]))


def ragged(low: Array, high: Array) -> tuple[Array, Array]:
    """All places of some ranges one after the other, and where the places of each range start.

    >>> places, start = ragged(np.array([3, 9, 0]), np.array([5, 9, 1]))
    >>> places.tolist(), start.tolist()
    ([3, 4, 0], [0, 2, 2, 3])
    """
    lengths = high - low
    start = np.concatenate([[0], np.cumsum(lengths)])
    return np.arange(start[-1]) + np.repeat(low - start[:-1], lengths), start
