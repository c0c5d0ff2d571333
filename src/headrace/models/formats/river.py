"""river, kept by skops too: its models are plain Python objects, and every type in them is looked at.

One that skops cannot keep is refused; as a pickle it can be kept, if somebody allows that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from headrace.errors import DataError, shown
from headrace.models.formats import skops_file
from headrace.models.formats.files import copied, of_library
from headrace.models.libraries import library
from headrace.models.manifest import Manifest
from headrace.models.predictors import OfRow

PLAIN = (
    "builtins.frozenset",
    "collections.Counter",
    "collections.OrderedDict",
    "collections.defaultdict",
    "collections.deque",
    "datetime.timedelta",
    "numpy.dtype",
    "random.Random",
)
"""Types of Python's own that hold what river has learnt."""


def fits(source: Any) -> bool:
    """Whether a source is of this format; a file of it looks like one of scikit-learn, so that it must be said."""
    return of_library(source, "river")


def save(source: Any, folder: Path) -> str:
    """Keep a model, or a file that skops wrote."""
    if isinstance(source, str | Path):
        return copied(source, folder, skops_file.FILE)
    try:
        return skops_file.dump(source, folder)
    except Exception as error:
        message = "The river model holds something that can only be kept as a pickle."
        hint = 'Say format="pickle" and allow_code=True if you trust whoever made it.'
        raise DataError("bad-model", message, got=shown(str(error), 200), hint=hint) from error


def load(folder: Path, manifest: Manifest) -> OfRow:
    """Make the model again."""

    def trusted(name: str) -> bool:
        own = name.startswith("river.") and not name.startswith(("river.datasets.", "river.stream."))
        return own or name in PLAIN or name in manifest.trusted

    return of_river(skops_file.open_trusted(folder / manifest.file, trusted))


def of_river(model: Any) -> OfRow:
    """The probability of True, an anomaly's score, or what a regression says."""
    call = _call(model)

    def score(row: Mapping[str, Any]) -> Any:
        return call({name: float(value) if isinstance(value, Decimal) else value for name, value in row.items()})

    return OfRow(score)


def _call(model: Any) -> Callable[[dict[str, Any]], Any]:
    base, last = library("river.base"), _last(model)
    call: Callable[[dict[str, Any]], Any]
    if isinstance(last, base.Classifier):
        return lambda row: _probability(model.predict_proba_one(row))
    if isinstance(last, base.AnomalyDetector):
        call = model.score_one
        return call
    if isinstance(last, base.Regressor):
        call = model.predict_one
        return call
    message = "The river model is neither a classifier, a regression nor a detector of anomalies."
    raise DataError("bad-model", message, got=type(model).__name__, hint="Add a model of one of these kinds.")


def _last(model: Any) -> Any:
    """The step of a pipeline that predicts, which says what the pipeline is."""
    steps = getattr(model, "steps", None)
    return _last(list(steps.values())[-1]) if steps else model


def _probability(told: Mapping[Any, float]) -> float:
    if not told or not told.keys() <= {False, True}:
        raise ValueError(f"The model tells {shown(sorted(map(str, told)))} apart, not False and True.")
    return told.get(True, 0.0)
