"""How late events arrive: `arrived_at - event_time` of many records, overall and of each partition.

Fed with arrays, by `lateness.lake` from the lake and by the command line from the log. Up to ten million delays
are kept and everything is exact; beyond that each partition is a KLL sketch, whose ranks are off by less than 0.01 %.
What follows from the numbers is in `lateness.choice`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

import numpy as np

from headrace.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND

EXACT_UP_TO = 10_000_000
SKETCH_K = 65_535
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}

EDGES: tuple[int, ...] = tuple(
    [0]
    + [step * MILLISECOND for step in (1, 3, 10, 30, 100, 300)]
    + [step * SECOND for step in (1, 3, 10, 30)]
    + [step * MINUTE for step in (1, 3, 10, 30)]
    + [step * HOUR for step in (1, 3, 12)]
    + [step * DAY for step in (1, 3, 10, 30)]
)
"""Where the buckets of the histogram begin; before the first are events that are dated after their arrival."""


class Distribution(Protocol):
    """Delays in microseconds, as far as anybody asks for them."""

    @property
    def count(self) -> int: ...

    @property
    def greatest(self) -> int: ...

    def quantile(self, q: float) -> int:
        """The least delay that a share of at least q does not exceed."""
        ...

    def beyond(self, delay: int) -> float:
        """The share of the delays that are longer."""
        ...

    def ahead(self, skew: int) -> float:
        """The share of the delays below minus `skew`: events dated that much after their arrival."""
        ...


class Exact:
    """Every delay, sorted.

    >>> few = Exact(np.array([5, 1, 3, 2, 4]))
    >>> few.quantile(0.5), few.beyond(4), few.greatest
    (3, 0.2, 5)
    """

    def __init__(self, delays: Any) -> None:
        self._sorted = np.sort(delays)
        self.count, self.greatest = len(delays), int(self._sorted[-1])

    def quantile(self, q: float) -> int:
        # Rounded first, as 0.999 * 1000 is a little more than 999 to a float.
        return int(self._sorted[max(0, int(np.ceil(round(q * self.count, 6))) - 1)])

    def beyond(self, delay: int) -> float:
        return float(self.count - np.searchsorted(self._sorted, delay, side="right")) / self.count

    def ahead(self, skew: int) -> float:
        return float(np.searchsorted(self._sorted, -skew, side="left")) / self.count


class Sketched:
    """A KLL sketch of the delays; the longest is exact."""

    def __init__(self) -> None:
        from datasketches import kll_doubles_sketch

        self._sketch = kll_doubles_sketch(SKETCH_K)

    def add(self, delays: Any) -> None:
        """Take delays in."""
        self._sketch.update(delays.astype(np.float64))

    @property
    def count(self) -> int:
        return int(self._sketch.n)

    @property
    def greatest(self) -> int:
        return int(self._sketch.get_max_value())

    def quantile(self, q: float) -> int:
        return int(self._sketch.get_quantile(q, True))

    def beyond(self, delay: int) -> float:
        return 1.0 - float(self._sketch.get_rank(float(delay), True))

    def ahead(self, skew: int) -> float:
        return float(self._sketch.get_rank(float(-skew), False))


class Delays:
    """The delays of a stream.

    Parameters
    ----------
    exact_up_to
        How many delays are kept as they are.

    Examples
    --------
    >>> delays = Delays()
    >>> delays.add(np.array([0, 0, 1]), arrived=np.array([10, 20, 30]), happened=np.array([9, 18, 30]))
    >>> delays.count, delays.overall().greatest, sorted(delays.partitions())
    (3, 2, [0, 1])
    """

    def __init__(self, exact_up_to: int = EXACT_UP_TO) -> None:
        self._limit = exact_up_to
        self._kept: dict[int, list[Any]] = {}
        self._sketches: dict[int | None, Sketched] = {}
        self._buckets = np.zeros(len(EDGES) + 1, dtype=np.int64)
        self._minutes: Counter[int] = Counter()
        self.count = 0
        self.first: int | None = None
        self.last: int | None = None

    @property
    def exact(self) -> bool:
        """Whether every delay is kept."""
        return not self._sketches

    def add(self, partitions: Any, *, arrived: Any, happened: Any) -> None:
        """Take records in: their partitions, and their times in microseconds."""
        if not len(partitions):
            return
        delays = arrived - happened
        self._buckets += np.bincount(np.searchsorted(EDGES, delays, side="right"), minlength=len(self._buckets))
        for minute, count in zip(*np.unique(arrived // MINUTE, return_counts=True), strict=True):
            self._minutes[int(minute)] += int(count)
        least, greatest = int(arrived.min()), int(arrived.max())
        self.first = least if self.first is None else min(self.first, least)
        self.last = greatest if self.last is None else max(self.last, greatest)
        self.count += len(delays)
        for partition in np.unique(partitions):
            self._keep(int(partition), delays[partitions == partition])
        if self.exact and self.count > self._limit:
            kept, self._kept = self._kept, {}
            self._sketches[None] = Sketched()
            for number, parts in kept.items():
                for part in parts:
                    self._keep(number, part)

    def _keep(self, partition: int, delays: Any) -> None:
        if self.exact:
            self._kept.setdefault(partition, []).append(delays)
            return
        for whose in (None, partition):
            self._sketches.setdefault(whose, Sketched()).add(delays)

    def overall(self) -> Distribution:
        """The delays of all partitions together; there must be some."""
        if not self.exact:
            return self._sketches[None]
        return Exact(np.concatenate([part for parts in self._kept.values() for part in parts]))

    def partitions(self) -> dict[int, Distribution]:
        """The delays of each partition that has any."""
        if not self.exact:
            numbers = sorted(number for number in self._sketches if number is not None)
            return {number: self._sketches[number] for number in numbers}
        return {number: Exact(np.concatenate(parts)) for number, parts in sorted(self._kept.items())}

    def histogram(self) -> list[tuple[int | None, int | None, int]]:
        """Buckets as (from, to, records); open ends are None, and empty buckets at the ends are left out."""
        ends = [None, *EDGES, None]
        made = [(ends[at], ends[at + 1], int(count)) for at, count in enumerate(self._buckets)]
        filled = [at for at, (_, _, count) in enumerate(made) if count]
        return made[filled[0] : filled[-1] + 1] if filled else []

    def rate(self, length: int) -> float:
        """Records a second in the busiest stretch of that length; of all there is, when that is shorter."""
        if self.first is None or self.last is None:
            return 0.0
        whole = max(self.last - self.first, SECOND)
        if whole <= length or len(self._minutes) <= 1:
            return self.count / (whole / SECOND)
        minutes = np.array(sorted(self._minutes), dtype=np.int64)
        before = np.concatenate([[0], np.cumsum([self._minutes[int(minute)] for minute in minutes])])
        wide = -(-length // MINUTE)
        ends = np.searchsorted(minutes, minutes + wide)
        return float((before[ends] - before[:-1]).max()) / (wide * MINUTE / SECOND)
