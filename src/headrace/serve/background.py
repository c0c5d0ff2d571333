"""Work in threads of its own, beside what a process is for. A thread that fails takes the process with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

JOIN = 5.0
Work = Callable[[threading.Event], None]
"""Does something until told to stop."""


class BackgroundThreads:
    """Threads that run until `end`; `failed` is called when one of them fails."""

    def __init__(self, works: Sequence[Work], failed: Callable[[], None]) -> None:
        self._ended, self._failed = threading.Event(), failed
        self._failures: list[BaseException] = []
        self._threads = [self._started(work) for work in works]

    def _started(self, work: Work) -> threading.Thread:
        def run() -> None:
            try:
                work(self._ended)
            except BaseException as failure:
                self._failures.append(failure)
                self._failed()

        thread = threading.Thread(target=run, name=getattr(work, "__qualname__", "beside"), daemon=True)
        thread.start()
        return thread

    def end(self, within: float = JOIN) -> None:
        """Tell them to stop, and wait for them."""
        self._ended.set()
        for thread in self._threads:
            thread.join(within)

    def refuse_failure(self) -> None:
        """Raise what the first one failed with."""
        if self._failures:
            raise self._failures[0]


def call_when_set(told: threading.Event, call: Callable[[], None]) -> None:
    """Call something as soon as an event is set, in a thread that keeps no process alive."""

    def wait() -> None:
        told.wait()
        call()

    threading.Thread(target=wait, name="once", daemon=True).start()
