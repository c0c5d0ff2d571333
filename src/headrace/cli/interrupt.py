"""Ctrl-C while a verb is at work: a `KeyboardInterrupt` in the main thread that is neither lost nor harmful.

Python drops one that is raised in a finalizer or a callback, and a library that is interrupted while it is imported may
show a traceback of its own. The first is raised again, the second waits for the end of the import. What the work so far
is worth is said by the verb (`if_interrupted`), in the line that ends the command.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

AGAIN = 0.005
"""Seconds until an interrupt that came at a bad moment is tried again."""
PATIENCE = 2.0
"""Seconds after which it is raised all the same: a user's own code may be what is imported."""
CRITICAL = 50
"""The level of `logging`, which need not be loaded."""
IMPORTING = "<frozen importlib._bootstrap>"


class Interrupts:
    """While entered, Ctrl-C raises `KeyboardInterrupt` where it does no harm.

    Attributes
    ----------
    happened
        Whether there was one.
    is_pending
        Whether one waits for the end of an import.

    Examples
    --------
    >>> with Interrupts() as interrupts:
    ...     interrupts.happened
    False
    """

    def __init__(self) -> None:
        self.happened = self.is_pending = False
        self._first = 0.0
        self._before: Any = None
        self._lost_before = sys.unraisablehook

    def __enter__(self) -> Self:
        # Only the main thread is told of signals; one that is ignored stays so, as `nohup` wants it.
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if before is not None and before is not signal.SIG_IGN:
                self._before = signal.signal(signal.SIGINT, self._interrupt)
                self._lost_before, sys.unraisablehook = sys.unraisablehook, self._raise_again
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            sys.unraisablehook = self._lost_before
            if self.happened:
                _log(0)

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self.happened:
            self.happened, self._first = True, now
        self.is_pending = _is_importing(frame) and now - self._first < PATIENCE
        if self.is_pending:
            _thread.start_new_thread(_try_again, ())
            return
        _log(CRITICAL)
        raise KeyboardInterrupt

    def _raise_again(self, lost: UnraisableHookArgs) -> None:
        """Python's hook for errors that it must drop."""
        if lost.exc_type is KeyboardInterrupt:
            _thread.start_new_thread(_try_again, ())
        else:
            self._lost_before(lost)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != IMPORTING:
        frame = frame.f_back
    return frame is not None


def _log(above: int) -> None:
    """Have libraries log only what is above a level: Py4J tells of the interrupt with a traceback."""
    if (logging := sys.modules.get("logging")) is not None:
        logging.disable(above)


def _try_again() -> None:
    time.sleep(AGAIN)
    os.kill(os.getpid(), signal.SIGINT)


@contextlib.contextmanager
def if_interrupted(stands: Callable[[], str]) -> Iterator[None]:
    """While entered, an interrupt says in a sentence what stands of the work.

    >>> try:
    ...     with if_interrupted(lambda: "Two rows stay."):
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt as interrupt:
    ...     interrupt_line(interrupt)
    'Interrupted. Two rows stay.'
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(stands())
        raise


def interrupt_line(error: BaseException | None) -> str:
    """What is said of an interrupt in the end: with what verbs have said of their work, wherever it is in the chain."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return " ".join(["Interrupted.", *getattr(error, "__notes__", ())])
