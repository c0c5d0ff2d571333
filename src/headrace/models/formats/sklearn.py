"""scikit-learn, kept by skops: an estimator or a whole pipeline, without pickle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.models.formats import skops_file
from headrace.models.formats.estimator import of_estimator
from headrace.models.formats.files import copied, is_file, of_library
from headrace.models.manifest import Manifest
from headrace.models.predictors import OfMatrix

PARTS = (
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
)
"""Parts of scikit-learn's own models that skops asks about: trees, optimizers and the like, which hold numbers."""


def fits(source: Any) -> bool:
    """Whether a source is of this format."""
    return of_library(source, "sklearn") or is_file(source, ".skops", begins=skops_file.BEGINS)


def save(source: Any, folder: Path) -> str:
    """Keep an estimator, or a file that skops wrote."""
    if isinstance(source, str | Path):
        return copied(source, folder, skops_file.FILE)
    return skops_file.dump(source, folder)


def load(folder: Path, manifest: Manifest) -> OfMatrix:
    """Make the estimator again."""
    trusted = {*PARTS, *manifest.trusted}
    return of_estimator(skops_file.open_trusted(folder / manifest.file, trusted.__contains__), manifest)
