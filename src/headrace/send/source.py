"""A file of rows: JSON lines, CSV or Parquet, each row with its place in the file and its JSON text.

A row that has no JSON text has a fault instead. Whether the text fits the stream is `check`'s business. A source can
be read more than once.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from headrace.errors import DataError, UsageError, shown
from headrace.schema.types import Struct

FORMATS = ("jsonl", "csv", "parquet")
ENDINGS: dict[str, str] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
STDIN = "-"


class Fault(NamedTuple):
    """Why a row cannot be sent: its place, the reason, and what stood there."""

    place: str
    reason: str
    got: str

    def error(self, hint: str) -> DataError:
        """The fault as an error."""
        return DataError(
            "bad-record", f"A row cannot be sent: {self.reason}.", got=self.got, where=self.place, hint=hint
        )


class Row(NamedTuple):
    """One row: where it stands, its JSON text or its fault, and how much of the file has been read with it."""

    place: str
    value: bytes
    fault: Fault | None
    done: int


Rows = Generator[Row, None, None]
"""Rows as they are read; closing it closes the file."""


@dataclass(frozen=True)
class Source:
    """A file to send.

    Parameters
    ----------
    name
        What errors call it.
    format
        One of `FORMATS`.
    path
        The file; None when `content` has it all.
    content
        What was read from stdin.
    """

    name: str
    format: str
    path: Path | None
    content: bytes = b""

    def open(self) -> BinaryIO:
        """The bytes, from the start."""
        if self.path is None:
            return io.BytesIO(self.content)
        try:
            return self.path.open("rb")
        except OSError as error:
            message = f"The file cannot be read: {error.strerror}."
            raise DataError("bad-file", message, got=shown(str(self.path))) from error

    @property
    def size(self) -> int:
        """How much there is to read, in bytes."""
        return len(self.content) if self.path is None else self.path.stat().st_size

    def rows(self, schema: Struct) -> Rows:
        """The rows, as the format reads them."""
        if self.format == "csv":
            from headrace.send import csv_text

            return csv_text.rows(self, schema)
        if self.format == "parquet":
            from headrace.send import parquet

            return parquet.rows(self, schema)
        return lines(self)


def source(file: str, format: str | None = None) -> Source:
    """A source from a path, or from stdin for `-`; the format from the name's ending unless it is given.

    >>> source("payments.csv").format
    'csv'
    """
    if file == STDIN:
        return Source("stdin", format or "jsonl", None, sys.stdin.buffer.read())
    path = Path(file)
    found = format or ENDINGS.get(path.suffix.lower())
    if found is None:
        hint = f"Say it with --format, or let the name end in one of {', '.join(ENDINGS)}."
        raise UsageError("bad-usage", "The format of the file is not known.", got=shown(file), hint=hint)
    return Source(path.name, found, path)


def lines(given: Source) -> Rows:
    """The lines of a file that have something in them."""
    done = 0
    with given.open() as file:
        for number, line in enumerate(file, 1):
            done += len(line)
            text = line.rstrip(b"\r\n")
            if text.strip():
                yield Row(f"{given.name}:{number}", text, None, done)
