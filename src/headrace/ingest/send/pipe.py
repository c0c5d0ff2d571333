"""A file that is still being written: stdin, a named pipe, a terminal. Its bytes come as they are written.

When it is interrupted it ends after the last whole line. What its lines mean is the business of `source` and the
formats; `arrivals` makes batches of them.
"""

from __future__ import annotations

import io
import os
import select
from typing import TYPE_CHECKING

from headrace.ingest.send.interruption import Interruption

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

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
