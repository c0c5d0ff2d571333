"""Which keys of a tile set are hot: those that much of what was read lately belongs to.

It is fed with the most frequent keys of each batch, which Spark finds on its way (`spark.pipeline.hot_keys`), and adds
them up in two frequent-items sketches: one for the current stretch of time and one for the stretch before. So it looks
back between one and two stretches, a key that was hot yesterday is forgotten, and memory is bounded. It decides
nothing: a hot key is told of (`spark.status`), and computed like any other.

A share is at most half a percentage point too high (both sketches), and at most 3.1 points too low (a key that is not
among the 32 most frequent of a batch is not counted in it, and has less than a 33rd of its events).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from headrace.aggregate.sketch import datasketches
from headrace.clock import MINUTE

STRETCH = MINUTE
HOT = 0.2
"""The share from which a key is hot."""
TIMES = 5
"""How many times the mean share that must be as well: of three countries one always has a third."""
STILL = 0.8
"""A key stays hot until its share falls below this part of what made it hot: at the very limit it would flap."""
LEAST = 100
"""Events below which nothing is said: of three events one key always has a third."""
_LG_SIZE = 10


class HotKey(NamedTuple):
    """A key, as JSON text, and the share of the recent events that are of it."""

    key: str
    share: float


class HotKeys:
    """The hot keys of one tile set.

    Examples
    --------
    >>> keys = HotKeys()
    >>> keys.feed(0, 1_000, {'{"card":"42"}': 510, '{"card":"7"}': 20})
    >>> keys.top(0, most=1)
    [HotKey(key='{"card":"42"}', share=0.51)]
    >>> keys.top(2 * STRETCH)
    []
    """

    def __init__(self) -> None:
        self._stretch = 0
        self._parts = [_Part(), _Part()]
        self._since: dict[str, int] = {}
        self._lock = threading.Lock()

    def feed(self, at: int, events: int, counts: Mapping[str, int]) -> None:
        """Take in a batch that was read at about a moment: how many events it had, and its most frequent keys."""
        with self._lock:
            self._turn(at)
            self._parts[0].add(events, counts)

    def events(self, at: int) -> int:
        """How many events the shares are of."""
        with self._lock:
            self._turn(at)
            return sum(part.events for part in self._parts)

    def top(self, at: int, most: int = 10) -> list[HotKey]:
        """The keys with the greatest shares now; none while there are few events."""
        with self._lock:
            return self._ranked(at)[:most]

    def hot(self, at: int) -> dict[HotKey, int]:
        """The keys that are hot now, and since when each is."""
        with self._lock:
            ranked = self._ranked(at)
            limit = max(HOT, TIMES / len(ranked)) if ranked else 1.0
            found = [one for one in ranked if one.share >= (STILL if one.key in self._since else 1) * limit]
            self._since = {one.key: self._since.get(one.key, at) for one in found}
            return {one: self._since[one.key] for one in found}

    def _ranked(self, at: int) -> list[HotKey]:
        self._turn(at)
        events = sum(part.events for part in self._parts)
        if events < LEAST:
            return []
        counts: dict[str, int] = {}
        for part in self._parts:
            for key, count in part.counts():
                counts[key] = counts.get(key, 0) + count
        # A sketch may say more than there is.
        shares = [HotKey(key, min(1.0, count / events)) for key, count in counts.items()]
        return sorted(shares, key=lambda one: (-one.share, one.key))

    def _turn(self, at: int) -> None:
        """Begin a new stretch when its time has come; what is two stretches old is forgotten."""
        stretch = at // STRETCH
        if stretch == self._stretch + 1:
            self._parts = [_Part(), self._parts[0]]
        elif stretch > self._stretch:
            self._parts = [_Part(), _Part()]
        self._stretch = max(self._stretch, stretch)


class _Part:
    """What one stretch of time has seen."""

    def __init__(self) -> None:
        self.events = 0
        self._sketch: Any = None

    def add(self, events: int, counts: Mapping[str, int]) -> None:
        self.events += events
        if self._sketch is None:
            self._sketch = datasketches().frequent_strings_sketch(_LG_SIZE)
        for key, count in counts.items():
            self._sketch.update(key, count)

    def counts(self) -> list[tuple[str, int]]:
        if self._sketch is None:
            return []
        kind = datasketches().frequent_items_error_type.NO_FALSE_NEGATIVES
        return [(key, estimate) for key, estimate, *_ in self._sketch.get_frequent_items(kind)]
