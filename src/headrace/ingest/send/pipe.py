"""What `headrace send` reads: a file, or one that is still being written, as stdin, a named pipe or a terminal is.

The bytes of a pipe come as they are written. When it is interrupted it ends after the last whole line. What its lines
mean is the business of `ingest.files`; `pipe_batches` makes batches of its rows.
"""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from headrace.errors import DataError
from headrace.ingest.files.source import JSONL, PARQUET, Source, find_source, format_of, ignore_column, unreadable
from headrace.ingest.send.interruption import Interruption

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STDIN = "-"
CHUNK = 64 * 1024
GRACE = 0.1
"""Seconds to wait for a Ctrl-C that may have cut off the last line."""


class Pipe(io.RawIOBase):
    """The bytes of a file. A line is handed on when it is whole, or when the writer has closed the file.

    An interruption ends it: what the writer has written so far still counts, and half a line does not.

    >>> read, write = os.pipe()
    >>> with Interruption() as interruption, Pipe(open(read, "rb", buffering=0), interruption) as pipe:
    ...     _ = os.write(write, b"whole\\nhal")
    ...     interruption.end()
    ...     pipe.read(100), pipe.read(100)
    (b'whole\\n', b'')
    >>> os.close(write)
    """

    def __init__(self, file: io.FileIO, interruption: Interruption) -> None:
        self._file, self.interruption = file, interruption
        self._whole, self._rest, self._ended = bytearray(), bytearray(), False
        self._done = 0

    def readable(self) -> bool:
        """It can be read, and nothing else."""
        return True

    def tell(self) -> int:
        """How many bytes were handed on."""
        return self._done

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a buffer with bytes of whole lines; 0 at the end."""
        while not self._whole and not self._ended:
            self._read()
        view = memoryview(buffer).cast("B")
        count = min(len(view), len(self._whole))
        view[:count] = self._whole[:count]
        del self._whole[:count]
        self._done += count
        return count

    def _read(self) -> None:
        descriptor = self._file.fileno()
        ready, _, _ = select.select([descriptor, self.interruption.wakes], [], [])
        interrupted = self.interruption.wakes in ready and self.interruption.is_over()
        if descriptor not in ready and not interrupted:
            return
        chunk = os.read(descriptor, CHUNK) if descriptor in ready else b""
        cut = chunk.rfind(b"\n") + 1
        if cut:
            self._whole += self._rest + chunk[:cut]
            self._rest.clear()
        self._rest += chunk[cut:]
        self._ended = interrupted or not chunk
        # Ctrl-C ends the writer as well, and perhaps before it is heard of here.
        if self._rest and not chunk and not interrupted and not self.interruption.wait(GRACE):
            self._whole += self._rest


def open_source(
    file: str,
    format: str | None = None,
    *,
    interruption: Interruption | None = None,
    report: Callable[[str], None] = ignore_column,
) -> Source:
    """A source from the path of a file, or from stdin for `-`, which holds JSON lines unless the format is given.

    A pipe is read as it is written when there is an `interruption` to end it, and otherwise whole. Parquet cannot be
    read before its end.
    """
    path = None if file == STDIN else Path(file)
    mode = _mode(path)
    if path is not None and stat.S_ISDIR(mode):
        raise unreadable(IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)), file)
    if path is not None and not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)):
        return replace(find_source(file, format), report=report)
    name = "stdin" if path is None else path.name
    kind = format or (JSONL if path is None else format_of(file, None))
    opened = _open_stdin() if path is None else _open_pipe(path)
    if interruption is None or kind == PARQUET or not isinstance(opened, io.FileIO):
        with opened:
            return Source(name, kind, content=opened.read(), report=report)
    return Source(name, kind, pipe=Pipe(opened, interruption), report=report)


def _mode(path: Path | None) -> int:
    """How the system marks a file; 0 when it cannot say."""
    try:
        return 0 if path is None else path.stat().st_mode
    except (OSError, ValueError):
        return 0


def _open_pipe(path: Path) -> io.FileIO:
    try:
        return io.FileIO(path, "rb")
    except OSError as error:
        raise unreadable(error, str(path)) from error


def _open_stdin() -> io.FileIO | BinaryIO:
    """Stdin without a buffer of its own; as it is where it is no file of the system's."""
    if sys.stdin is None:
        raise DataError("bad-file", "There is no stdin to read.", hint="Send a file, or pipe rows into it.")
    try:
        return io.FileIO(os.dup(sys.stdin.fileno()), "rb")
    except io.UnsupportedOperation:
        return sys.stdin.buffer
