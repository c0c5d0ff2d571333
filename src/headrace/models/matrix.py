"""Values as a model takes them: rows, or whole columns, become one matrix of float64.

Whole numbers, decimals and truth values become the nearest float, moments their microseconds since 1970, texts their
place among the categories of their column. Null, NaN and a text that is no category become NaN; what a model is given
for them is decided afterwards (`models.null_policy`). Rows and columns become the same numbers to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

from headrace.errors import DataError, HeadraceError, shown
from headrace.models.arrays import floats, plain
from headrace.models.manifest import Manifest

if TYPE_CHECKING:
    from headrace.models.predictors import Matrix

Row = Mapping[str, Any]
Errors = dict[int, HeadraceError]
"""By the number of a row, what is wrong with it."""


class Encoder:
    """How the values of a model's columns become numbers.

    Examples
    --------
    >>> from headrace.models.manifest import Manifest
    >>> from headrace.models.columns import ModelColumn
    >>> columns = (ModelColumn("n", "integer", ""), ModelColumn("country", "string", ""))
    >>> made = Manifest(
    ...     model="m", version=1, created_at=0, headrace="", format="onnx", file="m", sha256="", features="f",
    ...     columns=columns, categories={"country": ("CH", "IN")},
    ... )
    >>> matrix, errors = Encoder(made).rows([{"country": "IN", "n": 2}, {"n": 1}])
    >>> matrix[0].tolist(), errors[1].message
    ([2.0, 1.0], "The row has not the columns of the model: it lacks 'country'.")
    """

    def __init__(self, manifest: Manifest) -> None:
        self._columns = manifest.columns
        self._categories = manifest.categories
        self._steps: list[tuple[str, dict[str, float] | None]] = []
        for each in manifest.columns:
            known = manifest.categories.get(each.name)
            if known is None and not each.is_number:
                message = f"Column {each.name!r} is of type {each.type}, and the model takes numbers."
                hint = f'Give categories={{"{each.name}": [...]}}: a text becomes its place in the list.'
                raise DataError("wrong-columns", message, hint=hint if each.is_text else None)
            places = None if known is None else {text: float(place) for place, text in enumerate(known)}
            self._steps.append((each.name, places))

    def rows(self, rows: Sequence[Row]) -> tuple[Matrix, Errors]:
        """A matrix with a row for each; those that cannot be read are empty there, and have an error."""
        import numpy as np

        errors: Errors = {}
        nothing = [math.nan] * len(self._steps)
        made = []
        for number, row in enumerate(rows):
            try:
                made.append(self._row(row))
            except DataError as error:
                errors[number] = error
                made.append(nothing)
        return np.array(made, dtype=np.float64).reshape(len(made), len(self._steps)), errors

    def _row(self, row: Row) -> list[float]:
        if len(row) != len(self._steps) or any(name not in row for name, _ in self._steps):
            raise wrong_names(row, [name for name, _ in self._steps])
        return [_number(name, row[name], places) for name, places in self._steps]

    def columns(self, columns: Mapping[str, Any]) -> Matrix:
        """A matrix of whole columns, each a numpy or Arrow array; what is wrong with one is wrong with all rows."""
        import numpy as np

        refuse_columns(columns, [name for name, _ in self._steps])
        made = np.empty((len(columns[self._steps[0][0]]), len(self._steps)), dtype=np.float64)
        for place, (name, _) in enumerate(self._steps):
            made[:, place] = floats(name, columns[name], self._categories.get(name))
        return made


def _number(name: str, value: Any, places: dict[str, float] | None) -> float:
    if value is None:
        return math.nan
    if type(value) is float and places is None:
        return value  # nearly all of them; what `Real` is takes a while to find out
    if places is not None:
        if isinstance(value, str):
            return places.get(value, math.nan)
        raise DataError("wrong-columns", f"Column {name!r} of a row is no text.", got=shown(value))
    if isinstance(value, Real | Decimal):
        try:
            return float(value)
        except (OverflowError, ValueError):
            pass  # a whole number greater than any float, or a decimal that is no number
    raise DataError("wrong-columns", f"Column {name!r} of a row is no number.", got=shown(value))


def wrong_names(given: Mapping[str, Any], names: Sequence[str]) -> DataError:
    """The refusal of a row or table that has other columns than the model."""
    lacking, surplus = [name for name in names if name not in given], [name for name in given if name not in names]
    said = [f"it lacks {_listed(lacking)}"] if lacking else []
    said += [f"it has {_listed(surplus)} besides"] if surplus else []
    return DataError("wrong-columns", f"The row has not the columns of the model: {' and '.join(said)}.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:12]) + (" and more" if len(names) > 12 else "")


def refuse_columns(columns: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse a table that has other columns than the model, or columns of several lengths."""
    if columns.keys() != set(names):
        raise wrong_names(columns, names)
    lengths = {len(columns[name]) for name in names}
    if len(lengths) > 1:
        raise DataError("wrong-columns", "Columns of one table have several lengths.", got=shown(sorted(lengths)))


def rows_of(manifest: Manifest, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Whole columns as rows of plain values, for a model that takes a row at a time."""
    refuse_columns(columns, manifest.names)
    lists = [plain(each, columns[each.name]) for each in manifest.columns]
    return [dict(zip(manifest.names, cells, strict=True)) for cells in zip(*lists, strict=True)]
