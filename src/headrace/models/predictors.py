"""The two kinds of models: those that take a matrix of numbers, and those that take a row at a time.

Libraries multiply a single row by other instructions than many rows, and the last bits of a score differ. A score must
not depend on who else is in the batch, so the rows of such a model are filled up to whole blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.plural import show_count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]
    Vector = NDArray[np.float64]

BLOCK = 8
"""With batches of whole eights, linear models, networks and forests gave every row the same score in any batch."""


@dataclass(frozen=True)
class OfMatrix:
    """A model that takes a matrix (rows, columns) of float64, NaN for what is missing, and gives a score for each row.

    Parameters
    ----------
    call
        What gives the scores.
    block
        Of how many rows a batch is a multiple: filled up with its last row, whose surplus scores are dropped.
    """

    call: Callable[[Matrix], Any]
    block: int = 1

    def __call__(self, matrix: Matrix) -> Vector:
        import numpy as np

        rows = len(matrix)
        surplus = -rows % self.block
        if surplus:
            matrix = np.concatenate([matrix, np.repeat(matrix[-1:], surplus, axis=0)])
        scores = np.asarray(self.call(matrix), dtype=np.float64)
        if scores.shape != (len(matrix),):
            raise ValueError(f"The model gave scores of shape {scores.shape} for {show_count(len(matrix), 'row')}.")
        return scores[:rows]


@dataclass(frozen=True)
class OfRow:
    """A model that takes one row, as a dict of plain values by column, and gives its score."""

    call: Callable[[Mapping[str, Any]], Any]


Predict = OfMatrix | OfRow
