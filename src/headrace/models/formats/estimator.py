"""An object with `predict_proba` or `predict`, as scikit-learn made them known: its scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.errors import DataError
from headrace.models.columns import name_differences, refuse_differences
from headrace.models.manifest import Manifest
from headrace.models.predictors import BLOCK, OfMatrix
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.models.predictors import Matrix


def of_estimator(model: Any, manifest: Manifest) -> OfMatrix:
    """The probability of the second of two classes, or what `predict` says.

    >>> from types import SimpleNamespace
    >>> from headrace.models.columns import ModelColumn
    >>> made = Manifest(
    ...     model="m", version=1, created_at=0, headrace="", format="sklearn", file="m", sha256="", features="f",
    ...     columns=(ModelColumn("n", "integer", ""),),
    ... )
    >>> import numpy as np
    >>> of_estimator(SimpleNamespace(predict=lambda rows: rows[:, 0] / 2), made)(np.array([[1.0]])).tolist()
    [0.5]
    """
    _one_thread(model)
    named = _names(model, manifest)
    classes = getattr(model, "classes_", None)
    if hasattr(model, "predict_proba"):
        if classes is not None and len(classes) != 2:
            message = "The model tells other than two classes apart, and has no single score."
            hint = "Train it on two classes."
            raise DataError("bad-model", message, got=show_count(len(classes), "class", "classes"), hint=hint)
        return OfMatrix(lambda matrix: model.predict_proba(_input(matrix, named))[:, 1], BLOCK)
    if hasattr(model, "predict"):
        return OfMatrix(lambda matrix: model.predict(_input(matrix, named)), BLOCK)
    hint = "Add a fitted classifier or regression."
    raise DataError(
        "bad-model", "The model has neither predict_proba nor predict.", got=type(model).__name__, hint=hint
    )


def _one_thread(model: Any) -> None:
    """Many batches are scored at once: a model that starts threads for each would be the slower for it."""
    if hasattr(model, "get_params") and hasattr(model, "set_params"):
        asked = [name for name in model.get_params() if name.rpartition("__")[2] == "n_jobs"]
        if asked:
            model.set_params(**dict.fromkeys(asked, 1))


def _names(model: Any, manifest: Manifest) -> list[str] | None:
    """The names the model was trained with, if it had any; it then wants them back."""
    own, width = getattr(model, "feature_names_in_", None), getattr(model, "n_features_in_", None)
    if own is not None:
        refuse_differences(name_differences([str(name) for name in own], manifest.names), "The scikit-learn model")
        return list(manifest.names)
    if isinstance(width, int) and width != len(manifest.columns):
        hint = "Add the model with the feature set that it was trained on."
        raise DataError(
            "wrong-columns", f"The model takes {show_count(width, 'column')}, not {len(manifest.columns)}.", hint=hint
        )
    return None


def _input(matrix: Matrix, names: list[str] | None) -> Any:
    if names is None:
        return matrix
    import pandas as pd

    return pd.DataFrame(matrix, columns=names, copy=False)
