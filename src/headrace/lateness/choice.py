"""Which lateness to allow: what each choice would make late, the recommended one, the one that survives an outage.

Numbers in, numbers out: the delays come from `lateness.delays`, what a choice costs from `lateness.state_size`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headrace.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND, WEEK
from headrace.lateness.delays import Distribution

LEAST = SECOND
"""The least allowed lateness that is recommended: clocks of one second apart are nothing special."""
LEAST_TIMES, MOST_TIMES = 1.5, 2.0
"""The recommended lateness is between these many times P99."""
ROOM = 1.25
"""How much longer than needed the lateness for an outage may be, to be a round number."""

STEPS = (
    *(WEEK, DAY, 12 * HOUR, 6 * HOUR, HOUR),
    *(30 * MINUTE, 15 * MINUTE, 10 * MINUTE, 5 * MINUTE, MINUTE),
    *(30 * SECOND, 15 * SECOND, 10 * SECOND, 5 * SECOND, SECOND),
    *(step * MILLISECOND for step in (500, 250, 100, 50, 10, 5, 1)),
)
"""From the roundest on: a duration is as round as the first of these that divides it."""
LATENESSES = (
    *(SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, WEEK, 30 * DAY),
)
SKEWS = (SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 10 * MINUTE, HOUR, DAY)


def roundest(low: float, high: float) -> int:
    """The roundest duration in [low, high], the shortest of several; `low` itself, to the microsecond, if none is.

    >>> from headrace.clock import show_duration
    >>> show_duration(roundest(60e6, 80e6)), show_duration(roundest(150e6, 200e6))
    ('1m', '3m')
    """
    for step in STEPS:
        multiple = -int(-low // step) * step
        if 0 < multiple <= high:
            return multiple
    return max(1, -int(-low // 1))


def recommended(delays: Distribution) -> int:
    """A round duration between 1.5 and 2 times P99, and never less than a second."""
    p99 = delays.quantile(0.99)
    return max(LEAST, roundest(LEAST_TIMES * p99, MOST_TIMES * p99)) if p99 > 0 else LEAST


def surviving(delays: Distribution, outage: int) -> int:
    """A round duration that an outage and nearly every delay after it (P99.9) fit in."""
    least = outage + max(0, delays.quantile(0.999))
    return roundest(least, ROOM * least)


def latenesses(delays: Distribution, also: Iterable[int]) -> list[int]:
    """Choices of allowed lateness worth comparing: from about P90 to the first that makes nothing late, and `also`."""
    return _worth(LATENESSES, also, delays.quantile(0.9), delays.beyond)


def skews(delays: Distribution, also: Iterable[int]) -> list[int]:
    """Choices of clock skew worth comparing: to the first that makes nothing future, and `also`."""
    return _worth(SKEWS, also, 0, delays.ahead)


def _worth(ladder: Iterable[int], also: Iterable[int], least: int, share: Callable[[int], float]) -> list[int]:
    chosen = set(also)
    for step in ladder:
        if step >= least:
            chosen.add(step)
            if share(step) == 0:
                break
    return sorted(chosen)
