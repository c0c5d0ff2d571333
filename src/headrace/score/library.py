"""The libraries that models are of: each is imported when a model of it comes, and a missing one is told by name."""

from __future__ import annotations

import importlib
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
        message = f"A model needs the package {name.partition('.')[0]}, which cannot be imported."
        hint = "Install it: `pip install 'headrace[models]'`."
        raise MachineError("missing-package", message, got=str(error), hint=hint) from None
