"""When the share of late or future records of one partition jumps against its own recent past.

The last minute is compared with the hour before it by a test of two proportions. Three things keep it quiet: the jump
must be large (twice the usual, and a percentage point), it must rest on enough records, and the number of standard
deviations is measured by how much the partition wobbles from bucket to bucket anyway, not by coin tosses alone. What is
read during an alarm and shortly after it is not learnt from, until it has lasted so long that it is the usual.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import NamedTuple

from headrace.clock import MINUTE, SECOND


@dataclass(frozen=True)
class Rule:
    """When a rate is an alarm. Lengths are in buckets, times in microseconds.

    Parameters
    ----------
    bucket
        How finely time is cut.
    recent, past
        What is tested, and what it is tested against.
    least_read, least_bad, least_past
        The fewest records, counted records and past records to say anything.
    times, points, deviations
        The least factor over the usual rate, the least difference, and the least number of standard deviations.
    calm
        How many buckets decide that an alarm is over.
    cool_down
        How long after an alarm no new one begins.
    """

    bucket: int = 10 * SECOND
    recent: int = 6
    past: int = 360
    least_read: int = 100
    least_bad: int = 10
    least_past: int = 1_000
    times: float = 2.0
    points: float = 0.01
    deviations: float = 5.0
    calm: int = 3
    cool_down: int = 5 * MINUTE

    def limit(self, usual: float) -> float:
        """The rate from which it can be an alarm.

        >>> Rule().limit(0.1), Rule().limit(0.001)
        (0.2, 0.011)
        """
        return max(self.times * usual, usual + self.points)


class Jump(NamedTuple):
    """A rate far above its usual one, since a moment."""

    kind: str
    rate: float
    usual: float
    since: int


@dataclass
class _Bucket:
    number: int
    read: int = 0
    bad: dict[str, int] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)


class RateWatch:
    """The rates of one partition.

    Examples
    --------
    >>> watch = RateWatch(["late"])
    >>> for second in range(0, 600, 10):
    ...     watch.feed(second * SECOND, 500, {"late": 1})
    >>> watch.jumps()
    []
    >>> watch.feed(610 * SECOND, 500, {"late": 400})
    >>> [(jump.kind, jump.since // SECOND) for jump in watch.jumps()]
    [('late', 610)]
    """

    def __init__(self, kinds: Sequence[str], rule: Rule | None = None) -> None:
        self._kinds, self._rule = tuple(kinds), rule or Rule()
        self._buckets: deque[_Bucket] = deque()
        self._jumps: dict[str, Jump] = {}
        self._quiet: dict[str, int] = {}

    def feed(self, at: int, read: int, bad: Mapping[str, int]) -> None:
        """Count records that arrived at about a moment; moments go forward."""
        rule, number = self._rule, at // self._rule.bucket
        if not self._buckets or number > self._buckets[-1].number:
            self._buckets.append(_Bucket(number))
            while self._buckets[0].number <= number - rule.recent - rule.past:
                self._buckets.popleft()
        newest = self._buckets[-1]
        newest.read += read
        for kind in self._kinds:
            newest.bad[kind] = newest.bad.get(kind, 0) + bad.get(kind, 0)
            if kind in self._jumps:
                newest.left_out.add(kind)
                self._see_whether_over(kind, at)
            elif at < self._quiet.get(kind, at):
                newest.left_out.add(kind)
            else:
                self._see_whether_it_jumps(kind, at)

    def jumps(self) -> list[Jump]:
        """The alarms that last."""
        return list(self._jumps.values())

    def _see_whether_it_jumps(self, kind: str, at: int) -> None:
        rule, newest = self._rule, self._buckets[-1].number
        recent = self._last(rule.recent)
        read, bad = _sums(recent, kind)
        # The cheap questions first: most partitions end here.
        if read < rule.least_read or bad < rule.least_bad or bad < rule.points * read:
            return
        past = [one for one in self._buckets if one.number <= newest - rule.recent and kind not in one.left_out]
        past_read, past_bad = _sums(past, kind)
        if past_read < rule.least_past:
            return
        rate, usual = bad / read, past_bad / past_read
        if rate < rule.limit(usual) or _deviations(past, kind, (read, bad)) < rule.deviations:
            return
        self._jumps[kind] = Jump(kind, rate, usual, at)
        for one in self._last(rule.recent):
            one.left_out.add(kind)

    def _see_whether_over(self, kind: str, at: int) -> None:
        rule, jump = self._rule, self._jumps[kind]
        read, bad = _sums(self._last(rule.recent), kind)
        self._jumps[kind] = jump._replace(rate=bad / read if read else jump.rate)
        if at - jump.since >= rule.past * rule.bucket:
            # It has lasted as long as what we compare with: this is the usual now.
            for one in self._buckets:
                one.left_out.discard(kind)
            self._end(kind, at)
            return
        begun = self._buckets[-1].number * rule.bucket - jump.since >= rule.calm * rule.bucket
        read, bad = _sums(self._last(rule.calm), kind)
        # Half the way back is enough: at the very limit it would flap.
        if begun and read >= rule.least_read / 2 and bad / read < (jump.usual + rule.limit(jump.usual)) / 2:
            self._end(kind, at)

    def _end(self, kind: str, at: int) -> None:
        del self._jumps[kind]
        self._quiet[kind] = at + self._rule.cool_down

    def _last(self, count: int) -> list[_Bucket]:
        first = self._buckets[-1].number - count + 1
        return [one for one in _from_the_end(self._buckets, count) if one.number >= first]


def _from_the_end(buckets: deque[_Bucket], count: int) -> Iterator[_Bucket]:
    for at in range(1, min(count, len(buckets)) + 1):
        yield buckets[-at]


def _sums(buckets: Sequence[_Bucket], kind: str) -> tuple[int, int]:
    return sum(one.read for one in buckets), sum(one.bad.get(kind, 0) for one in buckets)


def _deviations(past: Sequence[_Bucket], kind: str, recent: tuple[int, int]) -> float:
    """By how many standard deviations the recent rate exceeds the past one.

    The variance is that of two proportions, times how much more the past buckets vary than coin tosses would.
    """
    (read, bad), (past_read, past_bad) = recent, _sums(past, kind)
    both = (bad + past_bad) / (read + past_read)
    usual = past_bad / past_read
    spread = 1.0
    if 0 < usual < 1:
        filled = [one for one in past if one.read]
        off = sum((one.bad.get(kind, 0) - one.read * usual) ** 2 / (one.read * usual * (1 - usual)) for one in filled)
        spread = max(1.0, off / max(1, len(filled) - 1))
    variance = both * (1 - both) * (1 / read + 1 / past_read) * spread
    return (bad / read - usual) / sqrt(variance) if variance > 0 else 0.0
