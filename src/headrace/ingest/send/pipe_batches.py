"""Rows of a file that is still being written, in batches: a row waits for others only so long.

A thread reads the rows, because a reader cannot wait for its writer and look at the clock. How many rows are due is
decided by `deliver`.
"""

from __future__ import annotations

import queue
import threading
import time

from headrace.errors import HeadraceError
from headrace.ingest.files.rows import Rows, SourceRow
from headrace.ingest.send.interruption import Interruption

AHEAD = 2_000
"""The most rows that are read and not yet taken."""


class Arrivals:
    """Rows as they come.

    Parameters
    ----------
    rows
        What is read.
    interruption
        What ends the reading early.
    linger
        Seconds that a row may wait for others.
    """

    def __init__(self, rows: Rows, interruption: Interruption, linger: float) -> None:
        self._rows, self._interruption, self._linger = rows, interruption, linger
        self._queue: queue.Queue[SourceRow | Exception | None] = queue.Queue(AHEAD)
        self._error: Exception | None = None
        self._ended = self._closed = False
        threading.Thread(target=self._run, name="headrace-arrivals", daemon=True).start()

    def take(self, most: int) -> list[SourceRow]:
        """Wait for a row, and a moment for others; nothing at the end. An error comes after all rows before it."""
        batch: list[SourceRow] = []
        until: float | None = None
        while len(batch) < most and not self._ended:
            try:
                found = self._queue.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            if isinstance(found, SourceRow):
                batch.append(found)
                until = until or time.monotonic() + self._linger
            else:
                self._ended, self._error = True, found
        if not batch and self._error is not None:
            raise self._error
        return batch

    def close(self) -> None:
        """End the reading; rows that nobody took are dropped."""
        self._closed = True
        self._interruption.end()
        while not self._ended:
            self._ended = not isinstance(self._queue.get(), SourceRow)

    def _run(self) -> None:
        end: Exception | None = None
        try:
            for row in self._rows:
                self._queue.put(row)
                if self._closed:
                    break
        except HeadraceError as error:
            # What was cut off by Ctrl-C need not be what its format says.
            end = None if self._interruption.is_over() else error
        except Exception as error:
            end = error
        finally:
            self._rows.close()
            self._queue.put(end)
