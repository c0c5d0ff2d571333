"""How long events take to become servable, step by step, told from the records themselves.

    happened ──► arrived in the log ──► emitted into the changelog ──► servable

Counts in buckets, a few seconds at a time: what is told is of the last minutes, whatever the rate, and exact to the
width of a bucket.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from headrace.clock import MINUTE, SECOND

KEPT = 5 * MINUTE
"""How far back percentiles look."""

SLOT = 5 * SECOND
"""How much time is counted together."""

STEPS = ("happened_to_arrival", "arrival_to_emitted", "emitted_to_servable", "arrival_to_servable")
SHARES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
# From ten microseconds to about three hours, each bucket 2 % wider than the one before.
EDGES = 10 * 1.02 ** np.arange(1_050)

Times = tuple[int, int, int]
"""When the newest event of a row happened and arrived, and when the row was emitted."""


class Latency:
    """Latencies of the last minutes.

    Attributes
    ----------
    run
        The run whose rows are to be counted: the one that serves, once it is warm. None when there is none.

    Examples
    --------
    >>> seen = Latency()
    >>> seen.add([(0, 1_000, 9_000)], now=10_000)
    >>> {step: round(found["p50_ms"]) for step, found in summarize_latency([seen], 10_000).items()}
    {'happened_to_arrival': 1, 'arrival_to_emitted': 8, 'emitted_to_servable': 1, 'arrival_to_servable': 9}
    """

    def __init__(self) -> None:
        self.run: str | None = None
        self._slots: deque[tuple[int, npt.NDArray[np.int64]]] = deque()

    def add(self, rows: Iterable[Times], now: int) -> None:
        """Take in rows that became servable now."""
        times = np.array(list(rows), dtype=np.int64).reshape(-1, 3)
        if not len(times):
            return
        slot = now - now % SLOT
        if not self._slots or self._slots[-1][0] != slot:
            self._slots.append((slot, np.zeros((len(STEPS), len(EDGES) + 1), dtype=np.int64)))
        happened, arrived, emitted = times.T
        counts = self._slots[-1][1]
        for place, took in enumerate((arrived - happened, emitted - arrived, now - emitted, now - arrived)):
            counts[place] += np.bincount(np.searchsorted(EDGES, took), minlength=counts.shape[1])
        while self._slots[0][0] < now - KEPT:
            self._slots.popleft()

    def counts(self, now: int) -> list[npt.NDArray[np.int64]]:
        """How many rows fell into each bucket of each step, in the slots that are not too old."""
        return [counts for slot, counts in list(self._slots) if slot >= now - KEPT]


def summarize_latency(seen: Iterable[Latency], now: int) -> dict[str, dict[str, float | None]]:
    """Percentiles of every step, of several latencies together, in milliseconds; None of nothing."""
    held = [counts for each in seen for counts in each.counts(now)]
    if not held:
        return {step: dict.fromkeys(SHARES) for step in STEPS}
    summed = np.sum(held, axis=0).cumsum(axis=1)
    return {
        step: {name: _edge(summed[place], share) for name, share in SHARES.items()} for place, step in enumerate(STEPS)
    }


def _edge(counts: npt.NDArray[np.int64], share: float) -> float:
    bucket = min(int(np.searchsorted(counts, share * counts[-1])), len(EDGES) - 1)
    return round(float(EDGES[bucket]) / 1_000, 3)
