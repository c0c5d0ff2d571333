"""Python objects as skops keeps them: their parts by name, of which only trusted types are made again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.errors import DataError, shown
from headrace.models.libraries import library

FILE = "model.skops"
BEGINS = b"PK\x03\x04"


def dump(model: Any, folder: Path) -> str:
    """Keep an object."""
    library("skops.io").dump(model, folder / FILE)
    return FILE


def open_trusted(file: Path, trusted: Callable[[str], bool]) -> Any:
    """The object of a file, if every type in it is one that skops or the caller trusts."""
    skops = library("skops.io")
    asked = skops.get_untrusted_types(file=file)
    unknown = sorted(name for name in asked if not trusted(name))
    if unknown:
        message = "The model holds types that are not trusted, and may run anything when they are made."
        hint = "If you trust whoever made it, name them: trusted=[...]."
        raise DataError("bad-model", message, got=shown(", ".join(unknown), 300), hint=hint)
    return skops.load(file, trusted=asked)
