"""Signals as a supervisor takes them: noted, and a reason to wake up. Nothing is done inside a handler."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from types import FrameType
from typing import Any, Self

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """While entered, Ctrl-C, SIGTERM, a lost terminal and the exit of a child end a `wait`.

    >>> import os, signal
    >>> with Signals() as signals:
    ...     os.kill(os.getpid(), signal.SIGTERM)
    ...     signals.wait(10), signals.interrupted
    (True, False)
    """

    def __init__(self) -> None:
        self.ending: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._awake, wake = os.pipe()
        os.set_blocking(self._awake, False)
        os.set_blocking(wake, False)
        self._wake, self._wakeup_before = wake, signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (*ENDING, signal.SIGCHLD):
            # `nohup` ignores SIGHUP, and means it.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._awake)
        os.close(self._wake)

    def _note(self, number: int, _: FrameType | None) -> None:
        if number in ENDING:
            self.ending.append(number)

    @property
    def interrupted(self) -> bool:
        """Whether the first request to end was a Ctrl-C."""
        return self.ending[:1] == [signal.SIGINT]

    def wait(self, seconds: float) -> bool:
        """Wait until something happens, at most so long; true when an end was asked for."""
        if not self.ending:
            select.select([self._awake], [], [], seconds)
            with contextlib.suppress(BlockingIOError):
                os.read(self._awake, 4096)
        return bool(self.ending)
