"""All alarms of one stream, fed with what each batch saw of each partition.

What is remembered goes with the process: after a restart the usual rates are learnt anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headrace.alarms.alarm import StreamAlarm, rate_alarm, went_back_alarm
from headrace.alarms.rate import RateWatch, Rule
from headrace.clock import HOUR

KINDS = ("late", "future")
REMEMBERED = HOUR
"""How long, in arrival time, a step back stays an alarm."""


class PartitionCounts(NamedTuple):
    """What a batch saw of one partition: counts, and the log's arrival times in microseconds.

    `first` and `last` are those of the first and the last record, `least` and `greatest` of all.
    """

    partition: int
    read: int
    late: int
    future: int
    first: int
    last: int
    least: int
    greatest: int


class _StepBack(NamedTuple):
    by: int
    since: int
    until: int


class StreamWatch:
    """The alarms of a stream.

    Examples
    --------
    >>> watch = StreamWatch("payments")
    >>> watch.batch([PartitionCounts(0, 10, 0, 0, first=5, last=9, least=5, greatest=9)])
    >>> watch.alarms()
    []
    >>> watch.batch([PartitionCounts(0, 10, 0, 0, first=7, last=12, least=7, greatest=12)])
    >>> [alarm.kind for alarm in watch.alarms()]
    ['arrival_went_back']
    """

    def __init__(self, stream: str, rule: Rule | None = None) -> None:
        self.stream, self._rule = stream, rule
        self._rates: dict[int, RateWatch] = {}
        self._greatest: dict[int, int] = {}
        self._back: dict[int, _StepBack] = {}

    def batch(self, seen: Iterable[PartitionCounts]) -> None:
        """Take in what a batch saw; batches come in order."""
        for each in seen:
            if each.read:
                self._arrivals(each)
                rates = self._rates.setdefault(each.partition, RateWatch(KINDS, self._rule))
                at = max(each.greatest, self._greatest[each.partition])
                rates.feed(at, each.read, {"late": each.late, "future": each.future})

    def _arrivals(self, seen: PartitionCounts) -> None:
        """Notice times that go back between batches, or within one as far as its ends and extremes show it."""
        where = seen.partition
        before = self._greatest.get(where, seen.least)
        self._greatest[where] = max(before, seen.greatest)
        back = max(before - seen.least, seen.first - seen.least, seen.greatest - seen.last)
        if where in self._back and seen.greatest > self._back[where].until:
            del self._back[where]
        if back > 0:
            earlier = self._back.get(where, _StepBack(0, seen.least, 0))
            self._back[where] = _StepBack(max(earlier.by, back), earlier.since, self._greatest[where] + REMEMBERED)

    def alarms(self) -> list[StreamAlarm]:
        """What is wrong now, by partition."""
        jumps = [
            rate_alarm(self.stream, where, jump.kind, jump.rate, jump.usual, jump.since)
            for where, rates in self._rates.items()
            for jump in rates.jumps()
        ]
        steps = [went_back_alarm(self.stream, where, step.by, step.since) for where, step in self._back.items()]
        return sorted([*jumps, *steps], key=lambda alarm: (alarm.partition or 0, alarm.kind))
