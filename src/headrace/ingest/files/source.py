"""Where rows lie: a file of JSON lines, CSV or Parquet, a folder of Parquet files, a Delta table, or a pipe.

A source is known by its content, so that the same rows are not imported twice, wherever they lie and whatever their
file is called. A Delta table is known by its own id and its version. `rows` reads what is here.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from headrace.errors import DataError, UsageError, shown

if TYPE_CHECKING:
    from headrace.ingest.send.pipe import Pipe

JSONL, CSV, PARQUET, DELTA = "jsonl", "csv", "parquet", "delta"
ENDINGS = {".jsonl": JSONL, ".ndjson": JSONL, ".json": JSONL, ".csv": CSV, ".parquet": PARQUET, ".pq": PARQUET}
BLOCK = 1 << 20


def ignore_column(_: str) -> None:
    """Say nothing of a column that is left out."""


@dataclass(frozen=True)
class Source:
    """Rows to read.

    Parameters
    ----------
    place
        A path, the address of a Delta table, or the name of what `content` or `pipe` has.
    format
        "jsonl", "csv", "parquet" or "delta".
    options
        What deltalake needs to reach a table in object storage.
    content
        All the bytes, if they are in memory.
    pipe
        What is still being written; it is read once.
    report
        Is called with the name of each column that is no field, when the columns are known.
    """

    place: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    pipe: Pipe | None = None
    report: Callable[[str], None] = ignore_column

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.place.rstrip("/").rpartition("/")[2]

    @property
    def path(self) -> Path:
        """The file or folder."""
        return Path(self.place)

    @property
    def size(self) -> int:
        """The bytes of its content or its file."""
        return len(self.content) if self.content is not None else self.path.stat().st_size

    def open(self) -> BinaryIO:
        """The bytes of its content, pipe or file, from the start."""
        if self.pipe is not None:
            return io.BufferedReader(self.pipe)
        if self.content is not None:
            return io.BytesIO(self.content)
        try:
            return self.path.open("rb")
        except OSError as error:
            raise unreadable(error, self.place) from error

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
            hint = "Name a folder with `_delta_log`, or an address that the options of the storage fit."
            raise DataError("bad-file", message, got=shown(str(error), 200), where=self.name, hint=hint) from error

    def fingerprint(self) -> str:
        """What the source is known by: its content, or a table's id and version."""
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


def unreadable(error: OSError | ValueError, place: str) -> DataError:
    """The error for a file that the system does not open."""
    message = f"The file cannot be read: {getattr(error, 'strerror', None) or error}."
    return DataError("bad-file", message, got=shown(place), hint="Give the path of a file that you may read.")


def find_source(place: str, format: str | None = None, options: Mapping[str, str] | None = None) -> Source:
    """What lies at a place, its format told by what is there unless it is given.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "old.csv")
    ...     _ = file.write_text("a,b")
    ...     find_source(str(file)).format
    'csv'
    """
    if "://" in place:
        return Source(place, DELTA, dict(options or {}))
    path = Path(place)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        hint = "Give the path of a file or folder that is there, or the address of a Delta table."
        raise DataError("bad-file", "There is no such file or folder.", got=shown(place), hint=hint) from error
    except (OSError, ValueError) as error:
        raise unreadable(error, place) from error
    return _folder(path, place, format) if path.is_dir() else Source(place, format_of(place, format))


def _folder(path: Path, place: str, format: str | None) -> Source:
    found = Source(place, DELTA if (path / "_delta_log").is_dir() else PARQUET)
    if format not in (None, found.format):
        message = f"The folder holds {'a Delta table' if found.format == DELTA else 'no Delta table'}."
        raise UsageError("bad-usage", message, got=shown(format), hint="Leave --format out.")
    if found.format == PARQUET and not found.files():
        hint = "Name a folder that holds Parquet files or a Delta table."
        raise DataError("bad-file", "The folder is empty.", got=shown(place), hint=hint)
    return found


def format_of(place: str, format: str | None) -> str:
    """The format of a file, told by the ending of its name unless it is given.

    >>> format_of("payments.NDJSON", None)
    'jsonl'
    """
    known = format or ENDINGS.get(Path(place).suffix.lower())
    if known is None:
        hint = f"Say it with --format, or let the name end in one of {', '.join(ENDINGS)}."
        raise UsageError("bad-usage", "The format of the file is not known.", got=shown(place), hint=hint)
    if known == DELTA:
        hint = "Name the folder that holds `_delta_log`."
        raise UsageError("bad-usage", "A Delta table is a folder, and this is a file.", got=shown(place), hint=hint)
    return known
