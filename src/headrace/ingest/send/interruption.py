"""Ctrl-C while events are sent: the first asks for an orderly end, the second ends the program.

A handler that raises could strike between an append and its count. So the first Ctrl-C is noted and wakes whoever
waits: then `Pace` gives no more turns, and a `Pipe` ends after its last whole line.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from types import FrameType
from typing import Any, Self

END = b"\0"
"""What `end` writes into the pipe; Python's own handler writes numbers of signals."""


class Interruption:
    """While entered, Ctrl-C is noted. Only the main thread may enter it.

    >>> with Interruption() as interruption:
    ...     os.kill(os.getpid(), signal.SIGINT)
    ...     interruption.wait(60.0), interruption.has_come()
    (True, True)
    """

    def __init__(self) -> None:
        self._has_come = self._has_ended = False
        self._before: Any = None

    def __enter__(self) -> Self:
        self.wakes, self._wake = os.pipe()
        os.set_blocking(self.wakes, False)
        os.set_blocking(self._wake, False)
        # Who starts a program in the background may have it ignore Ctrl-C.
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, self._note)
        # A thread that is about to wait for a lock runs no handler until it has the lock.
        self._wakeup_before = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup_before)
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        os.close(self.wakes)
        os.close(self._wake)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self._has_come:
            raise KeyboardInterrupt
        self._has_come = True

    def has_come(self) -> bool:
        """Whether somebody pressed Ctrl-C."""
        return self._has_come

    def end(self) -> None:
        """End every wait, and those to come as well."""
        os.write(self._wake, END)

    def is_over(self) -> bool:
        """Whether Ctrl-C or `end` is the reason that `wakes` can be read. If so, it stays readable."""
        with contextlib.suppress(BlockingIOError):
            found = os.read(self.wakes, 4_096)
            if END in found or signal.SIGINT in found:
                self._has_ended = True
        if self._has_ended:
            self.end()
        return self._has_ended

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until it is over; true when it is."""
        until = time.monotonic() + seconds
        while select.select([self.wakes], [], [], max(0.0, until - time.monotonic()))[0]:
            if self.is_over():
                return True
        return False
