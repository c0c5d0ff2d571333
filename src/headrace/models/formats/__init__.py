"""How models are kept: a module for each format, which saves what it is handed into a folder and loads it again.

A format checks the names that a model carries itself against the columns of its manifest. What cannot be loaded is
refused in words (`bad-model`), whatever its library raises.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.errors import DataError, HeadraceError, MachineError, did_you_mean, shown
from headrace.models.formats import lightgbm, onnx, pickle, python, river, sklearn
from headrace.models.manifest import Manifest
from headrace.models.predictors import Predict

FORMATS: dict[str, ModuleType] = {
    "onnx": onnx,
    "lightgbm": lightgbm,
    "sklearn": sklearn,
    "river": river,
    "python": python,
    "pickle": pickle,
}
"""In the order in which they are asked whether something is theirs; pickle takes what nobody else does."""
PICKLE = "pickle"


def guess(source: Any) -> str:
    """The format of a model or of a file with one.

    >>> guess("models.rules:score")
    'python'
    """
    if isinstance(source, str | Path) and not python.fits(source):
        refuse_absent(Path(source))
    for name, form in FORMATS.items():
        if form.fits(source):
            return name
    message = "Nobody can tell what format the model has."
    raise DataError("bad-model", message, got=shown(source), hint=f"Say format=..., one of {', '.join(FORMATS)}.")


def refuse_absent(file: Path) -> None:
    """Refuse a model's file that is not there."""
    if not file.is_file():
        hint = "Give the path of a file that is there."
        raise DataError("bad-model", "There is no such model file.", got=shown(str(file)), hint=hint)


def save(form: str, source: Any, folder: Path) -> str:
    """Keep a model in a folder; the name of its file there."""
    if form not in FORMATS:
        raise DataError("bad-argument", "There is no such format.", got=shown(form), hint=did_you_mean(form, FORMATS))
    if isinstance(source, str | Path) and form != "python":
        refuse_absent(Path(source))
    try:
        name: str = FORMATS[form].save(source, folder)
    except HeadraceError:
        raise
    except Exception as error:
        raise _unusable(form, error) from error
    return name


def load(folder: Path, manifest: Manifest) -> Predict:
    """The model of a folder."""
    if manifest.format not in FORMATS:
        message, got = "The model has a format that this version does not know.", shown(manifest.format)
        raise DataError("bad-model", message, got=got, hint="Update Headrace.")
    if manifest.format == PICKLE and not manifest.pickle:
        raise not_allowed()
    try:
        loaded: Predict = FORMATS[manifest.format].load(folder, manifest)
    except MachineError:
        raise
    except HeadraceError as error:
        error.where = error.where or manifest.title
        raise
    except Exception as error:
        raise _unusable(manifest.format, error) from error
    return loaded


def is_code(form: str, source: Any) -> bool:
    """Whether opening a model runs what is in it. A function that is handed over has been run by whoever has it.

    >>> is_code("python", "rules.py"), is_code("pickle", "model.pkl"), is_code("onnx", "model.onnx")
    (True, True, False)
    """
    return form == PICKLE or (form == "python" and isinstance(source, str | Path))


def not_allowed(form: str = PICKLE) -> DataError:
    """The refusal of a model that runs code when it is opened, which nobody allowed."""
    what = "a pickle" if form == PICKLE else "a file of Python"
    message = f"The model would be kept as {what}, which may run anything when it is opened, and nobody allowed it."
    hint = (
        "If you trust whoever made it, say --allow-code, or allow_code=True; "
        "ONNX, LightGBM's text and skops run nothing."
    )
    return DataError("code-not-allowed", message, hint=hint)


def _unusable(form: str, error: Exception) -> DataError:
    message = f"The model cannot be used as {form}: it is of another format, or damaged."
    got = shown(f"{type(error).__name__}: {error}", 300)
    return DataError("bad-model", message, got=got, hint="Export it again, or say which format it has.")
