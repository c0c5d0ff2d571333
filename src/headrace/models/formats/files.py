"""What formats ask of a source: of which library an object is, and how a file begins."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any


def of_library(source: Any, name: str) -> bool:
    """Whether an object is of a library, told without importing it.

    >>> from decimal import Decimal
    >>> of_library(Decimal(1), "decimal"), of_library("text", "decimal")
    (True, False)
    """
    return type(source).__module__.partition(".")[0] == name


def is_file(source: Any, *endings: str, begins: bytes) -> bool:
    """Whether a source is a file with one of these endings, or one that begins so."""
    if not isinstance(source, str | Path):
        return False
    file = Path(source)
    if file.suffix in endings:
        return True
    if not begins or not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(begins)) == begins


def copied(source: str | Path, folder: Path, name: str) -> str:
    """Copy a source's file into a folder, under a name."""
    shutil.copyfile(source, folder / name)
    return name
