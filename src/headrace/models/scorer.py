"""The one scorer: rows in, and for each a score or an error of its own out.

HTTP, the stream and Spark score with the same object, so that equal features have equal scores to the last bit. A batch
that a model cannot take is halved until the rows at fault stand alone: none costs another its score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from headrace.errors import HeadraceError, shown
from headrace.models.manifest import Manifest
from headrace.models.matrix import Encoder, Errors, Row, rows_of, wrong_names
from headrace.models.null_policy import filled, filled_row
from headrace.models.predictors import OfMatrix, Predict

if TYPE_CHECKING:
    from headrace.models.predictors import Matrix, Vector

ROUNDING = 1e-6
"""By how much a score may be out of its range, as forests in float32 are when they add up; it becomes the bound."""


class Scorer:
    """A version of a model, loaded.

    Parameters
    ----------
    manifest
        What the version is.
    predict
        The model itself.

    Examples
    --------
    >>> from headrace.models.columns import ModelColumn
    >>> from headrace.models.predictors import OfRow
    >>> made = Manifest(
    ...     model="m", version=1, created_at=0, headrace="", format="python", file="score.py", sha256="",
    ...     features="f", columns=(ModelColumn("n", "integer", ""),),
    ... )
    >>> Scorer(made, OfRow(lambda row: row["n"] / 10)).score([{"n": 3}])
    [0.3]
    """

    def __init__(self, manifest: Manifest, predict: Predict) -> None:
        self.manifest = manifest
        self._predict = predict
        self._encoder = Encoder(manifest) if isinstance(predict, OfMatrix) else None

    def score(self, rows: Sequence[Row]) -> list[float | HeadraceError]:
        """For each row, whose columns may come in any order, its score or its error."""
        if self._encoder is None:
            scores, errors = self._scored_rows(rows)
        else:
            matrix, errors = self._encoder.rows(rows)
            scores = self._scored_matrix(matrix, errors)
        return [errors.get(number, score) for number, score in enumerate(scores.tolist())]

    def score_columns(self, columns: Mapping[str, Any]) -> tuple[Vector, Errors]:
        """The scores of a table, given as a numpy or Arrow array for each column.

        Returns
        -------
        scores, errors
            A score for each row, NaN where it has an error; the errors by the number of their row.
        """
        if self._encoder is None:
            return self._scored_rows(rows_of(self.manifest, columns))
        errors: Errors = {}
        return self._scored_matrix(self._encoder.columns(columns), errors), errors

    def _scored_matrix(self, matrix: Matrix, errors: Errors) -> Vector:
        """The scores of a matrix; rows that have an error already are left out, and those that get one are added."""
        import numpy as np

        filled(self.manifest, matrix, errors)
        scores = np.full(len(matrix), np.nan)
        good = np.ones(len(matrix), dtype=bool)
        good[list(errors)] = False
        places = np.flatnonzero(good)
        self._try(matrix[places] if errors else matrix, places, scores, errors)
        return self._in_range(scores, errors)

    def _try(self, matrix: Matrix, places: Any, scores: Vector, errors: Errors) -> None:
        if not len(matrix):
            return
        predict: Any = self._predict
        try:
            scores[places] = predict(matrix)
        except Exception as error:
            if len(matrix) == 1:
                errors[int(places[0])] = self._raised(error)
                return
            half = len(matrix) // 2
            self._try(matrix[:half], places[:half], scores, errors)
            self._try(matrix[half:], places[half:], scores, errors)

    def _scored_rows(self, rows: Sequence[Row]) -> tuple[Vector, Errors]:
        import numpy as np

        errors: Errors = {}
        scores = np.full(len(rows), np.nan)
        for number, row in enumerate(rows):
            try:
                scores[number] = self._score_row(row)
            except HeadraceError as error:
                errors[number] = error
        return self._in_range(scores, errors), errors

    def _score_row(self, row: Row) -> float:
        if row.keys() != set(self.manifest.names):
            raise wrong_names(row, self.manifest.names)
        given = filled_row(self.manifest, row)
        predict: Any = self._predict
        try:
            score = predict.call(given)
        except Exception as error:
            raise self._raised(error) from None
        if not isinstance(score, Real):
            raise self._failed("gave what is no number", shown(score))
        return float(score)

    def _in_range(self, scores: Vector, errors: Errors) -> Vector:
        """The scores, those that are off by rounding on their bound; those that are no score become errors."""
        import numpy as np

        low, high = self.manifest.output.low, self.manifest.output.high
        least, most = -np.inf if low is None else low, np.inf if high is None else high
        wrong = ~(np.isfinite(scores) & (scores >= least - ROUNDING) & (scores <= most + ROUNDING))
        for number in np.flatnonzero(wrong).tolist():
            if number not in errors:
                span = f"{'anything' if low is None else low} to {'anything' if high is None else high}"
                errors[number] = self._failed("gave a score out of its range", f"{scores[number]}, not in {span}")
        scores[wrong] = np.nan
        return np.clip(scores, least, most)

    def _raised(self, error: Exception) -> HeadraceError:
        return self._failed(f"raised {type(error).__name__}", shown(str(error), 200))

    def _failed(self, how: str, got: str) -> HeadraceError:
        return HeadraceError("model-failed", f"The {self.manifest.title} {how}.", got=got)
