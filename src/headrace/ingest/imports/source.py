"""What is to be imported: JSON lines, CSV, Parquet (a file or a folder of files) or a Delta table.

A source is known by its content, so that the same history is not imported twice, wherever it lies and whatever it is
called. A Delta table is known by its own id and its version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.errors import DataError, UsageError, shown
from headrace.ingest.send.source import ENDINGS

DELTA, PARQUET = "delta", "parquet"
BLOCK = 1 << 20


@dataclass(frozen=True)
class History:
    """Where history lies and in which format.

    Parameters
    ----------
    place
        A path, or the address of a Delta table.
    format
        "jsonl", "csv", "parquet" or "delta".
    options
        What deltalake needs to reach a table in object storage.
    """

    place: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.place.rstrip("/").rpartition("/")[2]

    @property
    def path(self) -> Path:
        """The file or folder."""
        return Path(self.place)

    def files(self) -> list[Path]:
        """Its files in a stable order; those that begin with a dot or an underscore are not data."""
        if self.path.is_file():
            return [self.path]
        found = (each for each in self.path.rglob("*") if each.is_file())
        inner = ((each, each.relative_to(self.path).parts) for each in found)
        return sorted(each for each, parts in inner if not any(part.startswith((".", "_")) for part in parts))

    def table(self) -> Any:
        """The Delta table."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            return DeltaTable(self.place, storage_options=dict(self.options) or None)
        except (DeltaError, OSError) as error:
            message = "The Delta table cannot be read."
            raise DataError("bad-file", message, got=shown(str(error), 200), where=self.name) from error

    def fingerprint(self) -> str:
        """What the history is known by: its content, or a table's id and version."""
        digest = hashlib.blake2b(self.format.encode(), digest_size=12)
        if self.format == DELTA:
            table = self.table()
            digest.update(f"{table.metadata().id}/{table.version()}".encode())
            return digest.hexdigest()
        for path in self.files():
            inside = path.relative_to(self.path).as_posix() if path != self.path else ""
            digest.update(f"\0{inside}\0{path.stat().st_size}\0".encode())
            with path.open("rb") as file:
                while block := file.read(BLOCK):
                    digest.update(block)
        return digest.hexdigest()


def history(place: str, format: str | None = None, options: Mapping[str, str] | None = None) -> History:
    """What lies at a place, its format told by what is there unless it is given.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "old.csv")
    ...     _ = file.write_text("a,b")
    ...     history(str(file)).format
    'csv'
    """
    if "://" in place:
        return History(place, DELTA, dict(options or {}))
    path = Path(place)
    if not path.exists():
        raise DataError("bad-file", "There is no such file or folder.", got=shown(place))
    if path.is_dir():
        found = History(place, DELTA if (path / "_delta_log").is_dir() else PARQUET)
        if format not in (None, found.format):
            message = f"The folder holds {'a Delta table' if found.format == DELTA else 'no Delta table'}."
            raise UsageError("bad-usage", message, got=shown(format), hint="Leave --format out.")
        if found.format == PARQUET and not found.files():
            raise DataError("bad-file", "The folder is empty.", got=shown(place))
        return found
    known = format or ENDINGS.get(path.suffix.lower())
    if known is None:
        hint = f"Say it with --format, or let the name end in one of {', '.join(ENDINGS)}."
        raise UsageError("bad-usage", "The format of the file is not known.", got=shown(place), hint=hint)
    if known == DELTA:
        hint = "Name the folder that holds `_delta_log`."
        raise UsageError("bad-usage", "A Delta table is a folder, and this is a file.", got=shown(place), hint=hint)
    return History(place, known)
