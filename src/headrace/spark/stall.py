"""Notices a query that is active and takes nothing although records wait: Spark reports no error for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.clock import SECOND, show_duration
from headrace.errors import MachineError

EVERY = 10 * SECOND
"""How often it is looked: asking a log for its ends costs a request."""


@dataclass
class StallDetector:
    """Follows the offsets that queries have reached.

    Examples
    --------
    >>> detector = StallDetector()
    >>> detector.check("cards", {0: 5}, {0: 9}, now=0, limit=60 * SECOND)
    >>> detector.check("cards", {0: 5}, {0: 9}, now=60 * SECOND, limit=60 * SECOND)
    Traceback (most recent call last):
    ...
    headrace.errors.MachineError: A query has taken nothing for 1m, and records wait.
      code: component-hung
      got: cards
      hint: It is started again. `headrace logs spark` shows what Spark said.
    """

    _reached: dict[str, tuple[dict[int, int], int]] = field(default_factory=dict)

    def check(self, name: str, reached: Mapping[int, int], ends: Mapping[int, int], *, now: int, limit: int) -> None:
        """Raise when a query with records before it has not moved for `limit` microseconds."""
        waiting = any(end > reached.get(partition, 0) for partition, end in ends.items())
        before, since = self._reached.get(name, ({}, now))
        if not waiting or dict(reached) != before or name not in self._reached:
            self._reached[name] = (dict(reached), now)
        elif now - since >= limit:
            del self._reached[name]
            message = f"A query has taken nothing for {show_duration(limit)}, and records wait."
            hint = "It is started again. `headrace logs spark` shows what Spark said."
            raise MachineError("component-hung", message, got=name, hint=hint)
