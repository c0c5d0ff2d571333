"""Pickles, for what no other format keeps: loading one may run anything, so that somebody has to allow it.

That it was allowed is in the manifest of the version; without it a pickle is never opened.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from headrace.models.formats import river
from headrace.models.formats.estimator import of_estimator
from headrace.models.formats.files import copied, is_file
from headrace.models.manifest import Manifest
from headrace.models.predictors import Predict

FILE = "model.pickle"


def fits(source: Any) -> bool:
    """Whether a source is a pickle's file, or an object that predicts."""
    return is_file(source, ".pkl", ".pickle", begins=b"\x80") or any(
        hasattr(source, name) for name in ("predict_proba", "predict")
    )


def save(source: Any, folder: Path) -> str:
    """Keep an object, or a file."""
    if isinstance(source, str | Path):
        return copied(source, folder, FILE)
    (folder / FILE).write_bytes(pickle.dumps(source))
    return FILE


def load(folder: Path, manifest: Manifest) -> Predict:
    """Make the object again: of river it takes rows, of anything else a matrix."""
    model = pickle.loads((folder / manifest.file).read_bytes())
    return river.of_river(model) if river.fits(model) else of_estimator(model, manifest)
