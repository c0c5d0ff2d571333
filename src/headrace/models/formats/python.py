"""Plain Python: a function that takes a row and gives its score, called row by row.

The function's file is copied and carries the function's name, so that `rate.py` has `rate(row)`. It stands alone: what
it imports must be installed wherever it is scored.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from headrace.errors import DataError, shown
from headrace.models.formats.files import copied
from headrace.models.manifest import Manifest
from headrace.models.predictors import OfRow

USUAL = "score"
"""The function of a file when none is named."""
ENDING = ".py"


def fits(source: Any) -> bool:
    """Whether a source is a function, a file of Python, or `module:function`.

    >>> fits("rules.py"), fits("rules.py:rate"), fits("shop.rules:rate"), fits("model.onnx")
    (True, True, True, False)
    """
    if isinstance(source, FunctionType):
        return True
    if not isinstance(source, str | Path):
        return False
    place, colon, function = str(source).rpartition(":")
    if colon and function.isidentifier():
        return place.endswith(ENDING) or all(part.isidentifier() for part in place.split("."))
    return str(source).endswith(ENDING)


def save(source: Any, folder: Path) -> str:
    """Copy the file of the function."""
    if not fits(source):
        hint = 'Give a file, "file.py:function", "module:function" or a function.'
        raise DataError("bad-model", "The model is no Python function.", got=shown(source), hint=hint)
    file, function = _placed(source)
    if file is None or not file.is_file() or not function.isidentifier():
        message = "The function's file cannot be found."
        raise DataError("bad-model", message, got=shown(source), hint="It must stand at the top level of a file.")
    return copied(file, folder, f"{function}{ENDING}")


def _placed(source: Any) -> tuple[Path | None, str]:
    if isinstance(source, FunctionType):
        file = inspect.getsourcefile(source)
        return (Path(file) if file else None), source.__qualname__
    text = str(source)
    place, colon, function = text.rpartition(":")
    if not colon or not function.isidentifier():
        return Path(text), USUAL
    if place.endswith(ENDING):
        return Path(place), function
    try:
        spec = importlib.util.find_spec(place)
    except (ImportError, ValueError):
        spec = None
    return (Path(spec.origin) if spec and spec.origin else None), function


def load(folder: Path, manifest: Manifest) -> OfRow:
    """Run the file, and take its function."""
    file = folder / manifest.file
    module = ModuleType(f"headrace_model_{manifest.model}_{manifest.version}_{manifest.sha256[:8]}")
    module.__file__ = str(file)
    code = compile(file.read_bytes(), str(file), "exec")
    sys.modules[module.__name__] = module  # dataclasses look there for where they were defined
    try:
        exec(code, module.__dict__)
    except SystemExit as error:
        hint = "Take the call that exits out of the file's top level."
        raise DataError("bad-model", "The model's file ends the process.", got=shown(error.code), hint=hint) from None
    function = getattr(module, file.stem, None)
    if not callable(function):
        message = f"The model's file has no function {file.stem!r}."
        hint = 'Name another with "file.py:function".'
        raise DataError("bad-model", message, hint=hint)
    return OfRow(function)
