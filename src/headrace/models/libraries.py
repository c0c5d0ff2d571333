"""The libraries that models are of: each is imported when a model of it comes, and a missing one is told by name."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

from headrace.errors import MachineError


def library(name: str) -> Any:
    """A library of the extra `models`, or what to install.

    >>> library("json").__name__
    'json'
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise _missing(name, str(error)) from None


def needed(name: str) -> None:
    """Refuse to go on without a library of the extra `models`, which is imported only later.

    >>> needed("json")
    """
    if find_spec(name) is None:
        raise _missing(name, f"No module named {name!r}")


def _missing(name: str, got: str) -> MachineError:
    message = f"A model needs the package {name.partition('.')[0]}, which cannot be imported."
    hint = "Install it: `pip install 'headrace[models]'`."
    return MachineError("missing-package", message, got=got, hint=hint)
