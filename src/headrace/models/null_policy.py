"""What a model is given for a null: NaN, a value that was said beforehand, or no row at all.

A row that is refused here is not the model's fault, and its error says so: it never counts against a version.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import DataError
from headrace.models.manifest import NAN, Manifest
from headrace.models.matrix import Errors

if TYPE_CHECKING:
    from headrace.models.predictors import Matrix


def filled(manifest: Manifest, matrix: Matrix, errors: Errors) -> None:
    """Put what the model is to be given into the matrix; a row that is refused gets an error, if it has none yet."""
    import numpy as np

    if manifest.missing == NAN:
        return
    values = manifest.missing if isinstance(manifest.missing, dict) else {}
    empty = np.isnan(matrix)
    if not empty.any():
        return
    for place, name in enumerate(manifest.names):
        if name in values:
            matrix[empty[:, place], place] = values[name]
            empty[:, place] = False
    for number in np.flatnonzero(empty.any(axis=1)).tolist():
        errors.setdefault(number, refusal(manifest, [manifest.names[at] for at in np.flatnonzero(empty[number])]))


def filled_row(manifest: Manifest, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as the model is to be given it, or its refusal."""
    made = {name: None if _is_nan(row[name]) else row[name] for name in manifest.names}
    if manifest.missing == NAN:
        return made
    values = manifest.missing if isinstance(manifest.missing, dict) else {}
    made = {name: values.get(name) if value is None else value for name, value in made.items()}
    if empty := [name for name, value in made.items() if value is None]:
        raise refusal(manifest, empty)
    return made


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def refusal(manifest: Manifest, names: list[str]) -> DataError:
    """The error of a row with a null that the model does not take."""
    listed = ", ".join(repr(name) for name in names)
    message = f"The {manifest.title} takes no null in {listed}."
    hint = "A text that is none of its column's categories counts as null."
    return DataError("missing-value", message, hint=hint if set(names) & manifest.categories.keys() else None)
