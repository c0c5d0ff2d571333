"""A clock that never goes back: the moments of answers follow each other, whatever is done to the machine's clock.

When the clock is set back, answers stay at the latest moment there was, as the embedded log's arrival times do, until
it has caught up; until then they are flagged as stale, because nobody knows how old they are.
"""

from __future__ import annotations

import logging

from headrace.clock import SECOND, Clock, show_duration

TOLERATED = SECOND
"""A step back that is not worth a word: clocks are corrected by milliseconds all day."""

_logger = logging.getLogger(__name__)


class MonotonicClock:
    """A clock over another one.

    Attributes
    ----------
    behind
        Microseconds that the clock lay behind the latest moment when it was last asked.

    Examples
    --------
    >>> from headrace.testing import FakeClock
    >>> under = FakeClock(5_000_000)
    >>> steady = MonotonicClock(under)
    >>> steady.now(), steady.back
    (5000000, False)
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._latest, self.behind = clock, clock.now(), 0

    @property
    def back(self) -> bool:
        """Whether the clock was set back, and has not caught up yet."""
        return self.behind > TOLERATED

    def now(self) -> int:
        """The time, or the latest moment there was when that is later."""
        now = self._clock.now()
        if now >= self._latest:
            self._latest, self.behind = now, 0
            return now
        if not self.back and self._latest - now > TOLERATED:
            _logger.warning("the clock went back by %s: answers stay where they are", show_duration(self._latest - now))
        self.behind = self._latest - now
        return self._latest
