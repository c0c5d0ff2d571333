"""How old the newest event of a key was when its features were used: served, and in a training set.

Two ages: since the event happened, and since it arrived. A model that was trained on rows whose newest event is younger
than what serving sees has learnt from what it will not be given.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable
from itertools import accumulate
from typing import Any, NamedTuple

from headrace.asof.lake import PastEvents
from headrace.clock import SECOND, show_time
from headrace.meaning.event import Event, Place
from headrace.meaning.exact import Key, Moment

KEPT = 50_000
"""The newest samples whose ages are known."""
BUCKETS = 12
"""Stretches of time for which ages are told."""
FAR, ENOUGH = 0.2, 100
"""How far apart two distributions are that are told to differ, by Kolmogorov and Smirnov, and of how many samples."""


class Age(NamedTuple):
    """A moment, and how long before it the newest event had happened and arrived, in microseconds."""

    t: int
    happened: int
    arrived: int


class Ages:
    """The ages of the newest events of keys at past moments."""

    def __init__(self, past: PastEvents) -> None:
        self._past = past
        self._keys: dict[Key, tuple[list[Place], list[int]]] = {}

    def at(self, key: Key, moment: Moment, missing: Collection[Event] = ()) -> Age | None:
        """The age at a moment, without events that were not there yet; None when there was none."""
        t = moment[0]
        if missing:
            gone = {event.place for event in missing}
            there = [e for e in self._past.held.get(key, ()) if e.place < moment and e.place not in gone]
            return _age(t, there)
        places, newest = self._places_of(key)
        count = bisect_left(places, moment)
        return Age(t, t - newest[count - 1], t - places[count - 1][0]) if count else None

    def _places_of(self, key: Key) -> tuple[list[Place], list[int]]:
        """The places of a key's events in order, and at each the newest event time so far."""
        found = self._keys.get(key)
        if found is None:
            events = sorted(self._past.held.get(key, ()), key=lambda event: event.place)
            newest = list(accumulate((event.event_time for event in events), max))
            found = self._keys[key] = [event.place for event in events], newest
        return found


def _age(t: int, events: Iterable[Event]) -> Age | None:
    listed = list(events)
    if not listed:
        return None
    return Age(t, t - max(e.event_time for e in listed), t - max(e.arrived_at for e in listed))


class Profile:
    """The ages of a view's values."""

    def __init__(self) -> None:
        self.ages: deque[Age] = deque(maxlen=KEPT)

    def as_json(self) -> dict[str, Any]:
        """Both distributions, and how they went over time."""
        return self._spread(self.ages) | {"over_time": [self._spread(part) for part in self._parts()]}

    def _parts(self) -> list[list[Age]]:
        if not self.ages:
            return []
        first, last = min(self.ages).t, max(self.ages).t
        length = max(1, -(-(last + 1 - first) // BUCKETS))
        parts: dict[int, list[Age]] = {}
        for age in self.ages:
            parts.setdefault((age.t - first) // length, []).append(age)
        return [parts[number] for number in sorted(parts)]

    @staticmethod
    def _spread(ages: Collection[Age]) -> dict[str, Any]:
        return {
            "from": show_time(min(ages).t) if ages else None,
            "count": len(ages),
            "since_it_happened_s": _percentiles([age.happened for age in ages]),
            "since_it_arrived_s": _percentiles([age.arrived for age in ages]),
        }


def _percentiles(micros: Collection[int]) -> dict[str, float | None]:
    ordered = sorted(micros)
    return {
        name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] / SECOND if ordered else None
        for name, share in (("p50", 0.5), ("p99", 0.99))
    }


def apart(a: Collection[int], b: Collection[int]) -> float:
    """How far two distributions are apart: the greatest difference of their shares below any value.

    >>> apart([1, 2, 3, 4], [1, 2, 3, 4]), apart([1, 2], [3, 4])
    (0.0, 1.0)
    """
    first, second = sorted(a), sorted(b)
    values = sorted({*first, *second})
    shares = ((bisect_left(first, v + 1) / len(first), bisect_left(second, v + 1) / len(second)) for v in values)
    return max(abs(one - other) for one, other in shares)


def warning(view: str, served: Collection[Age], trained: Collection[Age]) -> str | None:
    """That a model is given values of another age than it has learnt from, if it is so."""
    if min(len(served), len(trained)) < ENOUGH:
        return None
    if apart([age.happened for age in served], [age.happened for age in trained]) <= FAR:
        return None
    then, now = (_percentiles([age.happened for age in ages])["p50"] for ages in (trained, served))
    return (
        f"The newest event of {view} was {now:,.1f} s old in the median when it was served, "
        f"and {then:,.1f} s in the training set."
    )
