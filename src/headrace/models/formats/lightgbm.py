"""LightGBM, in its text form: trees as text, which hold nothing that could run.

Trees score a row the same in any batch. A small batch is scored by one thread; starting others would take longer. A few
rows go to LightGBM's own function for single rows, one by one: what `predict` does before it comes to the trees takes
ten times as long as they do.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import DataError, shown
from headrace.models.columns import name_differences, refuse_differences
from headrace.models.formats.files import copied, is_file, of_library
from headrace.models.libraries import library
from headrace.models.manifest import Manifest
from headrace.models.predictors import OfMatrix
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.models.predictors import Matrix

FILE = "model.txt"
BEGINS, ENDS = b"tree\n", "\nend of trees"
SMALL = 10_000
"""Up to how many rows one thread scores."""
FEW = 6
"""Up to how many rows are scored one by one."""
DOUBLE, NORMAL = 1, 0
"""LightGBM's numbers for a row of float64, and for a prediction as the objective has it."""


def fits(source: Any) -> bool:
    """Whether a source is of this format."""
    return of_library(source, "lightgbm") or is_file(source, begins=BEGINS)


def save(source: Any, folder: Path) -> str:
    """Keep a `Booster`, an `LGBMClassifier` or `LGBMRegressor`, or a file."""
    if isinstance(source, str | Path):
        return copied(source, folder, FILE)
    getattr(source, "booster_", source).save_model(str(folder / FILE))
    return FILE


def load(folder: Path, manifest: Manifest) -> OfMatrix:
    """Read the trees."""
    text = (folder / manifest.file).read_text("utf-8")
    if not text.startswith(BEGINS.decode()) or ENDS not in text:
        # LightGBM itself may read past the end of such a text.
        hint = "Write it with `booster.save_model(...)`."
        raise DataError(
            "bad-model", "The file is no LightGBM model, or only a part of one.", got=shown(text[:40]), hint=hint
        )
    booster = library("lightgbm").Booster(model_str=text)
    if booster.num_model_per_iteration() != 1:
        got = show_count(booster.num_model_per_iteration(), "class", "classes")
        hint = 'Train it with one output, such as objective="binary".'
        raise DataError("bad-model", "The model gives several scores for a row.", got=got, hint=hint)
    own = booster.feature_name()
    if own == [f"Column_{place}" for place in range(len(own))]:  # it was trained on a matrix without names
        if len(own) != len(manifest.columns):
            hint = "Add the model with the feature set that it was trained on."
            raise DataError(
                "wrong-columns",
                f"The model takes {show_count(len(own), 'column')}, not {len(manifest.columns)}.",
                hint=hint,
            )
    else:
        refuse_differences(name_differences(own, manifest.names), "The LightGBM model")
    _refuse_categories(booster, manifest)

    single = _single(booster, len(manifest.columns))

    def call(matrix: Matrix) -> Any:
        if len(matrix) <= FEW and single is not None:
            return [single(row) for row in matrix]
        return booster.predict(matrix, num_threads=1 if len(matrix) <= SMALL else 0)

    return OfMatrix(call)


def _single(booster: Any, columns: int) -> Callable[[Any], float] | None:
    """What scores one row of float64; None with a LightGBM that does not have it."""
    try:
        own = importlib.import_module("lightgbm.basic")._LIB
        begin, run = own.LGBM_BoosterPredictForMatSingleRowFastInit, own.LGBM_BoosterPredictForMatSingleRowFast
        trees = booster._handle
    except (ImportError, AttributeError):
        return None
    ready = ctypes.c_void_p()
    settings = (NORMAL, 0, -1, DOUBLE, ctypes.c_int32(columns), b"num_threads=1")
    if begin(trees, *settings, ctypes.byref(ready)):
        return None

    def scored(row: Any) -> float:
        # Its own in every call: threads may score side by side.
        score, count = ctypes.c_double(), ctypes.c_int64()
        if run(ready, ctypes.c_void_p(row.ctypes.data), ctypes.byref(count), ctypes.byref(score)) or count.value != 1:
            # It says what is wrong with the row.
            return float(booster.predict(row.reshape(1, -1), num_threads=1)[0])
        return score.value

    return scored


def _refuse_categories(booster: Any, manifest: Manifest) -> None:
    """Refuse categories that are not those of the pandas columns the model was trained on, in their order."""
    learnt = [list(each) for each in booster.pandas_categorical or []]
    said = [list(manifest.categories[name]) for name in manifest.names if name in manifest.categories]
    if learnt and learnt != said:
        message = "The model was trained with other categories, or with the same in another order."
        hint = f"They are {shown(learnt, 300)}."
        raise DataError("wrong-columns", message, got=shown(said, 300), hint=hint)
