"""What a backfill does at a moment: its steps follow each other without a gap, so their times add up to all of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

SPARK, BEGIN, LATE, END, WAIT = "starting Spark", "new runs", "late lanes", "ending Spark", "catching up"
"""The steps beside the tile sets, each of which is a step of its own."""


@dataclass(frozen=True)
class BackfillStep:
    """One step, told when it begins and again as it goes on.

    Parameters
    ----------
    name
        One of the names above, or the id of a tile set.
    rows
        How many rows it has written so far.
    share
        How much of all history is done, from 0 to 1.
    note
        What else there is to say of it, such as "2 of 5 lanes".
    """

    name: str
    rows: int = 0
    share: float = 0.0
    note: str = ""


BackfillProgress = Callable[[BackfillStep], None]


class StepTimes:
    """The seconds of each step and the rows it wrote, in the order of the steps.

    Examples
    --------
    >>> times = StepTimes(iter([0.0, 2.0, 5.0, 6.0]).__next__)
    >>> for name in ("tiles", "late lanes"):
    ...     times.take(BackfillStep(name, rows=3))
    >>> times.end()
    >>> times.seconds
    {'starting Spark': 2.0, 'tiles': 3.0, 'late lanes': 1.0}
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._name, self._since = clock, SPARK, clock()
        self.seconds: dict[str, float] = {SPARK: 0.0}
        self.rows: dict[str, int] = {}

    def take(self, step: BackfillStep) -> None:
        """Hear of a step: the one before ends when another begins."""
        self.rows[step.name] = step.rows
        if step.name != self._name:
            self.end()
            self._name = step.name

    def end(self) -> None:
        """End the step under way."""
        now = self._clock()
        self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._since
        self._since = now
