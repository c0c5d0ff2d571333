"""Which events the tiles of a key may lack at a moment, and what its features are without them.

Spark's rows come out tile by tile, each with the first so many of the events of its tile; how far a whole view is, is
said behind them. So a reader may meet any tile ahead of what was said, but none behind it. Late events come later
still, through the lake, and again tile by tile.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from headrace.meaning.equality import close
from headrace.meaning.event import Event
from headrace.meaning.exact import ViewEvents
from headrace.skew.sample import Sample

MOST_STATES = 5_000
"""States of a key that are tried one by one; where there are more, those in which each lane came in order."""
LANES = (False, True)


class KeyEvent(NamedTuple):
    """An event that counts for a key, and whether it travels in the late lane."""

    event: Event
    late: bool


@dataclass(frozen=True)
class KeyHistory:
    """What was known of a key at a sample's moment.

    Parameters
    ----------
    events
        All of it, in the order in which it arrived.
    meaning
        Computes the view's features from events.
    grain
        How long a tile is.
    patience
        How long a late event may be on its way before it must be there, in microseconds.
    """

    sample: Sample
    events: Sequence[KeyEvent]
    meaning: ViewEvents
    grain: int
    patience: int

    @property
    def all(self) -> list[Event]:
        """The events alone."""
        return [each.event for each in self.events]

    def without(self, missing: Iterable[Event]) -> list[Event]:
        """The events but for some."""
        gone = {event.place for event in missing}
        return [event for event in self.all if event.place not in gone]

    def values(self, missing: Iterable[Event] = ()) -> dict[str, Any]:
        """Every feature of the view, without some events."""
        return self.meaning.of(_by_time(self.without(missing)), self.sample.t)

    def differing(self, events: Iterable[Event]) -> list[str]:
        """The features whose value was not what it is from these events."""
        counted = _by_time(events)
        sample, found = self.sample, self.meaning.of(counted, self.sample.t)
        return [
            feature.name
            for feature in sample.view.features
            if feature.name in sample.values
            and not close(feature, sample.values[feature.name], found[feature.name], counted, sample.t)
        ]

    def tile(self, event: Event) -> int:
        """The start of an event's tile."""
        return event.event_time - event.event_time % self.grain

    def lacking(self) -> Iterator[list[Event]]:
        """Every state that the tiles may have been in, as the events they lacked; those that lack least first."""
        groups = self._on_their_way() if self.tried_all else self._in_order()
        for counts in itertools.islice(_counts(groups), MOST_STATES):
            yield [event for group, count in zip(groups, counts, strict=True) for event in group[len(group) - count :]]

    @cached_property
    def tried_all(self) -> bool:
        """Whether `lacking` has every state."""
        return math.prod(len(group) + 1 for group in self._on_their_way()) <= MOST_STATES

    def _in_order(self) -> list[list[Event]]:
        """The events that may not be in their tiles yet, those of a lane in the order in which they arrived."""
        lanes = [[each.event for each in self.events if each.late is late and self._may_wait(*each)] for late in LANES]
        return [lane for lane in lanes if lane]

    def _on_their_way(self) -> list[list[Event]]:
        """The same, but only those of a tile, lane and partition are in order."""
        groups: dict[tuple[int, bool, int], list[Event]] = {}
        for event, late in self.events:
            if self._may_wait(event, late):
                groups.setdefault((self.tile(event), late, event.place[1]), []).append(event)
        return list(groups.values())

    def _may_wait(self, event: Event, late: bool) -> bool:
        arrived, partition, offset = event.place
        if event.place == self.sample.own:
            return False
        if late:
            return self.sample.t - arrived <= self.patience
        if self.sample.positions is None:
            return arrived >= (self.sample.as_of or 0)
        return offset >= self.sample.positions.get(partition, 0)


def _counts(groups: Sequence[Sequence[Event]]) -> Iterator[tuple[int, ...]]:
    """How many each group lacks, in every way there is; few in all come first."""
    sizes = [len(group) for group in groups]
    for whole in range(sum(sizes) + 1):
        yield from _summing(sizes, whole)


def _summing(sizes: Sequence[int], whole: int) -> Iterator[tuple[int, ...]]:
    """Every way to take so many from groups of these sizes.

    >>> list(_summing([1, 2], 2))
    [(0, 2), (1, 1)]
    """
    if not sizes:
        if whole == 0:
            yield ()
        return
    first, rest = sizes[0], sizes[1:]
    for taken in range(max(0, whole - sum(rest)), min(first, whole) + 1):
        yield from ((taken, *more) for more in _summing(rest, whole - taken))


def _by_time(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda event: (event.event_time, event.event_id))
