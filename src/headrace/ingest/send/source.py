"""A file of rows: JSON lines, CSV or Parquet, each row with its place in the file and its JSON text.

A row that has no JSON text has a fault instead. Whether the text fits the stream is `check`'s business. A source can
be read more than once, unless it is a pipe.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from headrace.errors import DataError, UsageError, shown
from headrace.ingest.send.interruption import Interruption
from headrace.ingest.send.pipe import Pipe
from headrace.types.field_types import Struct

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


def ignore(_: str) -> None:
    """Nobody is told."""


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
        The file; None when `content` or `pipe` has it.
    content
        All of what was read from stdin.
    pipe
        What is still being written; it is read once.
    report
        Is told the name of each column that is no field.
    """

    name: str
    format: str
    path: Path | None
    content: bytes = b""
    pipe: Pipe | None = None
    report: Callable[[str], None] = ignore

    def open(self) -> BinaryIO:
        """The bytes, from the start."""
        if self.pipe is not None:
            return io.BufferedReader(self.pipe)
        if self.path is None:
            return io.BytesIO(self.content)
        try:
            return self.path.open("rb")
        except OSError as error:
            raise _unreadable(error, self.path) from error

    @property
    def size(self) -> int | None:
        """How much there is to read, in bytes, where it is known."""
        if self.pipe is not None:
            return None
        try:
            return len(self.content) if self.path is None else self.path.stat().st_size
        except OSError as error:
            raise _unreadable(error, self.path) from error

    def rows(self, schema: Struct) -> Rows:
        """The rows, as the format reads them."""
        if self.format == "csv":
            from headrace.ingest.send import csv_rows

            return csv_rows.rows(self, schema)
        if self.format == "parquet":
            from headrace.ingest.send import parquet_rows

            return parquet_rows.rows(self, schema)
        return lines(self)


def _unreadable(error: OSError, path: Path | None) -> DataError:
    message = f"The file cannot be read: {error.strerror}."
    hint = "Give the path of a file that you may read, or - for stdin."
    return DataError("bad-file", message, got=shown(str(path)), hint=hint)


def source(
    file: str,
    format: str | None = None,
    *,
    interruption: Interruption | None = None,
    report: Callable[[str], None] = ignore,
) -> Source:
    """A source from a path, or from stdin for `-`; the format from the name's ending unless it is given.

    A pipe is read as it is written when there is an `interruption` to end it, and otherwise whole. Parquet cannot be
    read before its end.

    >>> source("payments.csv").format
    'csv'
    """
    path = None if file == STDIN else Path(file)
    name = "stdin" if path is None else path.name
    kind = format or ("jsonl" if path is None else ENDINGS.get(path.suffix.lower()))
    if kind is None:
        hint = f"Say it with --format, or let the name end in one of {', '.join(ENDINGS)}."
        raise UsageError("bad-usage", "The format of the file is not known.", got=shown(file), hint=hint)
    if path is not None and not _is_pipe(path):
        return Source(name, kind, path, report=report)
    opened = _open_stdin() if path is None else _open_pipe(path)
    if interruption is None or kind == "parquet" or not isinstance(opened, io.FileIO):
        with opened:
            return Source(name, kind, None, opened.read(), report=report)
    return Source(name, kind, None, pipe=Pipe(opened, interruption), report=report)


def _is_pipe(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def _open_pipe(path: Path) -> io.FileIO:
    try:
        return io.FileIO(path, "rb")
    except OSError as error:
        raise _unreadable(error, path) from error


def _open_stdin() -> io.FileIO | BinaryIO:
    """Stdin without a buffer of its own; as it is where it is no file of the system's."""
    if sys.stdin is None:
        raise DataError("bad-file", "There is no stdin to read.", hint="Send a file, or pipe rows into it.")
    try:
        return io.FileIO(os.dup(sys.stdin.fileno()), "rb")
    except io.UnsupportedOperation:
        return sys.stdin.buffer


def lines(given: Source) -> Rows:
    """The lines of a file that have something in them."""
    done = 0
    with given.open() as file:
        for number, line in enumerate(file, 1):
            done += len(line)
            text = line.rstrip(b"\r\n")
            if text.strip():
                yield Row(f"{given.name}:{number}", text, None, done)
