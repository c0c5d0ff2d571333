"""Ranks within ranges of a sequence of small whole numbers: how many are below one, and which is the k-th.

A wavelet matrix: the sequence is sorted bit by bit from the highest, stably, and of each step is kept how many zeros
come before every place. A range follows its zeros or its ones down, so that a question costs one step for each bit,
however long its range is.
"""

from __future__ import annotations

import numpy as np

from headrace.aggregate.columns.range_folds import Array
from headrace.aggregate.columns.ranges import RowRanges


class Ranks:
    """A sequence of whole numbers in [0, size).

    Examples
    --------
    >>> ranks = Ranks(np.array([3, 1, 2, 1, 0]), size=4)
    >>> low, high = np.array([0, 1]), np.array([5, 4])
    >>> ranks.below(low, high, np.array([2, 2])).tolist()
    [3, 2]
    >>> ranks.kth(RowRanges(np.array([0, 1, 2]), low, high), np.array([2, 2])).tolist()
    [1, 2]
    """

    def __init__(self, numbers: Array, size: int) -> None:
        self._levels: list[tuple[int, Array, int]] = []
        for bit in reversed(range(max(1, (size - 1).bit_length()))):
            ones = (numbers >> bit) % 2 == 1
            zeros = np.concatenate([[0], np.cumsum(~ones)])
            self._levels.append((bit, zeros, int(zeros[-1])))
            numbers = np.concatenate([numbers[~ones], numbers[ones]])

    def below(self, low: Array, high: Array, bound: Array) -> Array:
        """How many numbers of each range [low, high) are below its bound, which lies in [0, size)."""
        found = np.zeros(len(low), dtype=np.int64)
        for bit, zeros, first_one in self._levels:
            one = (bound >> bit) % 2 == 1
            low_zeros, high_zeros = zeros[low], zeros[high]
            found += np.where(one, high_zeros - low_zeros, 0)
            low = np.where(one, first_one + low - low_zeros, low_zeros)
            high = np.where(one, first_one + high - high_zeros, high_zeros)
        return found

    def kth(self, chosen: RowRanges, k: Array) -> Array:
        """The k-th least number, from 0, of each row's places; where there are not so many, it means nothing."""
        found, rows = np.zeros(len(k), dtype=np.int64), chosen.rows
        low, high = chosen.low, chosen.high
        for bit, zeros, first_one in self._levels:
            low_zeros, high_zeros = zeros[low], zeros[high]
            here = np.bincount(rows, high_zeros - low_zeros, minlength=len(k)).astype(np.int64)
            one = k >= here
            k = np.where(one, k - here, k)
            found += one.astype(np.int64) << bit
            down = one[rows]
            low = np.where(down, first_one + low - low_zeros, low_zeros)
            high = np.where(down, first_one + high - high_zeros, high_zeros)
        return found
