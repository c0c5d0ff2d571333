"""What a version of a model is, as its folder says: which file, which columns, which scores, and where it came from.

A manifest is written once, with the version, and read by everyone who loads it. Which version answers is not said here
but in the model's roles (`models.roles`).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec

from headrace.clock import parse_timestamp, show_time
from headrace.errors import DataError, did_you_mean, shown
from headrace.files import write_atomically
from headrace.models.columns import ModelColumn

FILE = "manifest.json"
FORM = 1
NAN, REFUSE = "nan", "refuse"


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The range that a score must be in, both ends included; None is no bound. A probability unless said otherwise.

    >>> Output(), Output(low=0.0, high=None)
    (Output(low=0.0, high=1.0), Output(low=0.0, high=None))
    """

    low: float | None = 0.0
    high: float | None = 1.0


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A version of a model.

    Parameters
    ----------
    model, version, created_at, headrace
        Its name, its number, when it was added (microseconds), and by which Headrace.
    format, file, sha256
        How it is kept, in which file of the folder, and that file's digest.
    features, columns
        The feature set it takes, and its columns in order.
    missing
        What a null becomes. `"nan"`: it is passed on, as NaN in a matrix and None in a row. `"refuse"`: the row has an
        error and no score. A dict: these columns have these values instead, and a null in any other is refused. A text
        that is not among the categories of its column counts as null.
    categories
        Of each text column, the texts a matrix takes as 0, 1, 2 and so on.
    output, threshold
        The range of its scores, and from which score on its decision is yes.
    training_set, reference, metrics, description
        The training set it comes from, how each column was spread there, what was measured, and what people say of it.
    pickle
        Whether somebody allowed it to be unpickled, which may run anything.
    trusted
        Types outside the library of its format that may be made when it is loaded.
    """

    manifest: int = FORM
    model: str
    version: int
    created_at: int
    headrace: str
    format: str
    file: str
    sha256: str
    features: str
    columns: tuple[ModelColumn, ...]
    missing: str | dict[str, float] = NAN
    categories: dict[str, tuple[str, ...]] = {}
    output: Output = Output()
    threshold: float | None = None
    training_set: dict[str, Any] | None = None
    reference: dict[str, Any] = {}
    metrics: dict[str, float] = {}
    description: str | None = None
    pickle: bool = False
    trusted: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns, in order."""
        return tuple(each.name for each in self.columns)

    @property
    def title(self) -> str:
        """How errors call it; it has no number until it is added."""
        return f"model {self.model!r} version {self.version}" if self.version else f"model {self.model!r}"

    def decision(self, score: float) -> bool | None:
        """Whether a score reaches the threshold; None without one."""
        return None if self.threshold is None else score >= self.threshold


def checked(manifest: Manifest) -> Manifest:
    """The manifest, unless something it says cannot be."""
    names = manifest.names
    if not names or len(set(names)) < len(names):
        hint = "Name a feature set that has features."
        raise DataError(
            "wrong-columns", "A model takes at least one column, each once.", got=shown(list(names), 200), hint=hint
        )
    filled = manifest.missing if isinstance(manifest.missing, dict) else {}
    if isinstance(manifest.missing, str) and manifest.missing not in (NAN, REFUSE):
        hint = 'Say "nan", "refuse", or a value for each column that may be null.'
        raise DataError("bad-argument", "What to do with nulls cannot be read.", got=shown(manifest.missing), hint=hint)
    for name in (*filled, *manifest.categories):
        if name not in names:
            message = f"Model {manifest.model!r} takes no such column."
            raise DataError("wrong-columns", message, got=shown(name), hint=did_you_mean(name, names))
    for name, value in filled.items():
        if not math.isfinite(value):
            message, hint = f"The value for nulls of column {name!r} is no number.", 'To pass them on, say "nan".'
            raise DataError("bad-argument", message, got=shown(value), hint=hint)
    texts = {each.name for each in manifest.columns if each.is_text}
    for name, known in manifest.categories.items():
        if name not in texts or len(set(known)) < len(known):
            message = f"Column {name!r} has categories, but is no text, or has one of them twice."
            hint = "Name each category once, and of columns of text alone."
            raise DataError("bad-argument", message, got=shown(list(known)), hint=hint)
    low, high = manifest.output.low, manifest.output.high
    if low is not None and high is not None and not low <= high:
        hint = "Say the lower bound first, as in 0:1."
        raise DataError("bad-argument", "The range of a model's scores is empty.", got=f"{low} to {high}", hint=hint)
    return manifest


def as_json(manifest: Manifest) -> dict[str, Any]:
    """The manifest as JSON shows it, moments as RFC 3339."""
    told: dict[str, Any] = msgspec.to_builtins(manifest)
    return told | {"created_at": show_time(manifest.created_at)}


def write(folder: Path, manifest: Manifest) -> None:
    """Say what a folder holds."""
    write_atomically(folder / FILE, json.dumps(as_json(manifest), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read(folder: Path) -> Manifest:
    """What a folder says it holds; one that cannot be read, or has a form nobody here knows, is refused."""
    try:
        told = json.loads((folder / FILE).read_text("utf-8"))
    except (OSError, ValueError) as error:
        message = "The folder holds no model: its manifest is not there, or cannot be read."
        raise DataError("bad-model", message, got=shown(str(folder)), hint="Add the model again.") from error
    if not isinstance(told, dict) or told.get("manifest") != FORM:
        got = shown(told.get("manifest") if isinstance(told, dict) else told)
        hint = "It was written by a later version of Headrace: update this one."
        raise DataError("bad-model", "The manifest has a form that this version does not know.", got=got, hint=hint)
    try:
        made = msgspec.convert(told | {"created_at": parse_timestamp(str(told.get("created_at")))}, Manifest)
    except msgspec.ValidationError as error:
        message = "The manifest does not say what a manifest says."
        raise DataError("bad-model", message, got=str(error), where=str(folder), hint="Add the model again.") from None
    if Path(made.file).name != made.file:
        raise DataError("bad-model", "The model's file lies outside its folder.", got=shown(made.file))
    return checked(made)
