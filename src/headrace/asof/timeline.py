"""Events of some keys in the order of time, and which of them were known at a moment.

Events mostly become known in the order in which they happen. So at a moment all events of a key up to some place are
known but for a few stragglers that are still under way, and after it single ones: a few ranges (`Chosen`), whatever the
window and however long it is.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.aggregate.columns import Array


class _Places:
    """A sequence of (key, number) pairs in order, in which many pairs can be looked for at once."""

    def __init__(self, keys: Array, numbers: Array, *, highest: bool = False) -> None:
        ordered = np.sort(numbers)
        self._known = ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
        places = self._placed(keys, numbers)
        # Keys rise, so that the highest so far is always one of the same key.
        self._places = np.maximum.accumulate(places) if highest else places

    def _placed(self, keys: Array, numbers: Array) -> Array:
        return keys * (len(self._known) + 1) + np.searchsorted(self._known, numbers)

    def first(self, keys: Array, numbers: Array) -> Array:
        """The first place that has the key and at least the number, or where it would be."""
        return np.searchsorted(self._places, self._placed(keys, numbers))


class Timeline:
    """Events in the order of their key, event time and event id.

    Parameters
    ----------
    keys
        Of each event the number of its key.
    times
        When it happened, in microseconds.
    known
        Since when it is known.
    ids
        Event ids; without them, events of one time are in any order.

    Attributes
    ----------
    order
        The place of each event in what was given.
    """

    def __init__(self, keys: Array, times: Array, known: Array, ids: pa.Array | None = None) -> None:
        self.order = _ordered(keys, times, ids)
        self.keys, self.times, self.known = keys[self.order], times[self.order], known[self.order]
        self._happened = _Places(self.keys, self.times)
        delays = self.known - self.times
        # Whatever the bound is, the result is the same; this one leaves few events on either side.
        self.straggles = delays > (2 * np.quantile(delays, 0.9) if len(delays) else 0)
        self._steady = np.flatnonzero(~self.straggles)
        self._settled = _Places(self.keys[self._steady], self.known[self._steady], highest=True)

    def before(self, keys: Array, moments: Array) -> Array:
        """How many events come before the first one of a key that happened at a moment or later."""
        return self._happened.first(keys, moments)

    def settled(self, keys: Array, moments: Array) -> Array:
        """The first event of a key, stragglers aside, that was not known before a moment; all before it were."""
        found: Array = np.append(self._steady, len(self.times))[self._settled.first(keys, moments)]
        return found

    def chained(self, gap: int) -> Array:
        """Of each event the first one of its key from which no pause up to it is longer than a gap."""
        places = np.arange(len(self.times))
        begins = np.ones(len(self.times), dtype=bool)
        begins[1:] = (self.keys[1:] != self.keys[:-1]) | (np.diff(self.times) > gap)
        return np.maximum.accumulate(np.where(begins, places, 0))


def _ordered(keys: Array, times: Array, ids: pa.Array | None) -> Array:
    order = np.lexsort((times, keys))
    if ids is None or len(order) < 2:
        return order
    same = (np.diff(keys[order]) == 0) & (np.diff(times[order]) == 0)
    tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
    if len(tied):
        groups = np.cumsum(~np.insert(same, 0, False))[tied].tolist()
        names = ids.take(pa.array(order[tied])).to_pylist()
        by = sorted(range(len(tied)), key=lambda at: (groups[at], names[at]))
        order[tied] = order[tied][by]
    return order
