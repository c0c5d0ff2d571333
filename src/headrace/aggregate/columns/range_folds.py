"""Folds over many ranges of a sequence, each in a number of merges that grows with the logarithm of its length.

Merges are over whole arrays, a level of the tree at a time. Nothing is ever subtracted, so a sum of floats is as near
as one that was added up in pairs, and whatever can be merged can be folded: extremes and moments as well as sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
States = tuple[Array, ...]
"""One array for each part of a state."""
Merge = Callable[[States, States], States]


class Tree:
    """A sequence of states, of which any range can be folded.

    Parameters
    ----------
    leaves
        The states in their order.
    empty
        The state of no leaf.
    merge
        Merges states place by place; the order of merging must not matter.

    Examples
    --------
    >>> tree = Tree((np.array([1, 2, 3, 4, 5]),), (0,), lambda a, b: (a[0] + b[0],))
    >>> tree.fold(np.array([0, 1, 3]), np.array([5, 4, 3]))[0].tolist()
    [15, 9, 0]
    """

    def __init__(self, leaves: States, empty: tuple[Any, ...], merge: Merge) -> None:
        self._empty, self._merge = empty, merge
        self._levels = [leaves]
        with np.errstate(all="ignore"):
            while (pairs := len(leaves[0]) // 2) > 0:
                left, right = (tuple(each[at : 2 * pairs : 2] for each in leaves) for at in (0, 1))
                leaves = merge(left, right)
                self._levels.append(leaves)

    def fold(self, low: Array, high: Array) -> States:
        """The merge of the leaves in each range [low, high)."""
        found = tuple(
            np.full(len(low), empty, dtype=leaves.dtype)
            for empty, leaves in zip(self._empty, self._levels[0], strict=True)
        )
        rows = np.flatnonzero(low < high)
        low, high = low[rows], high[rows]
        with np.errstate(all="ignore"):
            for level in self._levels:
                if not len(rows):
                    break
                odd = low % 2 == 1
                self._add(found, rows[odd], level, low[odd])
                low = low + odd
                odd = high % 2 == 1
                self._add(found, rows[odd], level, high[odd] - 1)
                low, high = low // 2, high // 2
                wide = low < high
                rows, low, high = rows[wide], low[wide], high[wide]
        return found

    def _add(self, found: States, rows: Array, level: States, nodes: Array) -> None:
        if len(rows):
            merged = self._merge(tuple(each[rows] for each in found), tuple(each[nodes] for each in level))
            for each, states in zip(found, merged, strict=True):
                each[rows] = states
