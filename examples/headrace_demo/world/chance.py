"""Randomness that is the same bytes on every machine and with every numpy.

Of numpy only the raw words of PCG64 are used, which its authors keep as they are for good; the distributions on top of
them are not kept, and `exp` and `log` differ in their last digit from one processor to the next. So everything here is
whole numbers, or floats that were only added, multiplied and divided, one operation at a time.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

HALVINGS = 12


class Chance:
    """A source of whole columns of random numbers.

    Parameters
    ----------
    seed
        Decides everything, together with `purpose`.
    purpose
        What the numbers are for: two purposes never see each other's numbers, so one can ask for more of them
        without changing the other.

    Examples
    --------
    >>> Chance(7, "dice").below(6, 5).tolist()
    [5, 1, 3, 2, 5]
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self._words = np.random.PCG64(np.random.SeedSequence([seed % 2**64, zlib.crc32(purpose.encode())]))

    def shares(self, count: int) -> Floats:
        """Numbers from 0 up to but not including 1."""
        return (self._raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, bound: Any, count: int) -> Ints:
        """Whole numbers from 0 up to but not including the bound, which may be a column."""
        made: Ints = (self.shares(count) * bound).astype(np.int64)
        return made

    def between(self, low: Any, high: Any, count: int) -> Ints:
        """Whole numbers from `low` to `high`, both included."""
        made: Ints = low + self.below(high - low + 1, count)
        return made

    def happens(self, percent: Any, count: int) -> Flags:
        """Whether something happens that does in so many of a hundred cases; may be a column, may be 0.5."""
        made: Flags = self.shares(count) * 100 < percent
        return made

    def bell(self, count: int) -> Floats:
        """Numbers as from a normal distribution with mean 0 and deviation 1: the sum of twelve uniform ones."""
        words = (self._raw(12 * count) >> np.uint64(32)).astype(np.int64).reshape(12, count)
        made: Floats = (words.sum(axis=0) - 6 * 2**32) * 2.0**-32
        return made

    def pick(self, weights: Ints, count: int) -> Ints:
        """Places in a column of weights, each as often as its weight says."""
        ends = np.cumsum(weights)
        return np.searchsorted(ends, self.below(int(ends[-1]), count), side="right").astype(np.int64)

    def order(self, count: int) -> Ints:
        """The numbers from 0 to `count` in an order that says nothing."""
        return np.argsort(self._raw(count), kind="stable").astype(np.int64)

    def _raw(self, count: int) -> npt.NDArray[np.uint64]:
        return np.atleast_1d(self._words.random_raw(count)).astype(np.uint64)


def grown(power: Floats) -> Floats:
    """e to a power, to about a hundredth, by multiplications alone; of a bell it makes a log-normal column.

    >>> grown(np.array([0.0, 1.0])).round(3).tolist()
    [1.0, 2.718]
    """
    value: Floats = 1 + power / 2**HALVINGS
    for _ in range(HALVINGS):
        value = value * value
    return value


def spread(chance: Chance, centre: Any, width: float, count: int) -> Ints:
    """Whole numbers around a centre, log-normal: `width` is the deviation of their logarithm. At least 1.

    >>> spread(Chance(7, "rent"), 1_000, 0.5, 3).tolist()
    [2033, 583, 413]
    """
    made: Ints = np.maximum((centre * grown(width * chance.bell(count))).astype(np.int64), 1)
    return made
