"""When a version counts as failing: often enough, and for most of those who ask.

A breaker is told of outcomes and says whether it has tripped. It does nothing about it: who asks it rolls back
(`Registry.rollback`). A row that was refused for its own values is no outcome of the model, and is not told.
"""

from __future__ import annotations

import threading
from collections import deque

LAST = 20
"""How many of the latest outcomes count."""
FEWEST = 5
"""How many of them must have failed, so that one bad row of two does not count as half."""
PART = 0.5
"""The part of them that must have failed."""


class Breaker:
    """The latest outcomes of one version.

    Examples
    --------
    >>> breaker = Breaker()
    >>> breaker.failed(4)
    >>> breaker.tripped
    False
    >>> breaker.failed()
    >>> breaker.tripped
    True
    """

    def __init__(self) -> None:
        self._failed: deque[bool] = deque(maxlen=LAST)
        self._lock = threading.Lock()

    def ok(self, count: int = 1) -> None:
        """So many rows got their score."""
        self._record_outcomes(count, failed=False)

    def failed(self, count: int = 1) -> None:
        """For so many rows the model raised, or gave what is no score."""
        self._record_outcomes(count, failed=True)

    def _record_outcomes(self, count: int, *, failed: bool) -> None:
        with self._lock:
            self._failed.extend([failed] * min(count, LAST))

    @property
    def tripped(self) -> bool:
        """Whether at least `FEWEST` and at least `PART` of the latest outcomes failed."""
        with self._lock:
            failures, outcomes = sum(self._failed), len(self._failed)
        return failures >= FEWEST and failures >= PART * outcomes
