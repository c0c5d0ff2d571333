"""Signals as a terminal hands them out, however pytest was started.

`nohup make test` ignores SIGHUP, and `make test &` in a script ignores SIGINT. A process inherits what is ignored, so
children of a test would ignore it too. A signal with a handler is different: the child has the system's default.
"""

from __future__ import annotations

import signal
from types import FrameType


def restore_signals() -> None:
    """Handle what was ignored, so that children have the default; a hangup still does not end the run."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _do_nothing)


def _do_nothing(number: int, frame: FrameType | None) -> None:
    pass
