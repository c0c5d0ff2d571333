"""Events that are in the log and may not be in the tiles yet, by key: what a score needs beside the store.

A tile's row names the next offset of each partition that is not in it. An event is in its tile exactly when it stands
before that, so each is folded in once, however far Spark is. When the tile set as a whole has passed an event, it goes
from here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.aggregate import State
from headrace.meaning.event import Event
from headrace.meaning.value import Tile
from headrace.plan.model import TileSet
from headrace.store.protocol import StoredTile
from headrace.tiles.changelog import HandOver, Key

MOST = 500_000
"""Events that are kept at the most: a pipeline that is further behind is told of, and what it lacks is missing."""


class TailEvent(NamedTuple):
    """An event that may not be in its tile yet."""

    partition: int
    offset: int
    tile: int
    event: Event


class Bucket:
    """The events of one key and tile, and the fold of those that its row lacks: each is looked at and folded once.

    Attributes
    ----------
    without
        The positions of the row that it was folded for.
    seen, lacking
        How many events have been looked at for it, and how many of these it lacks.
    states
        The fold of these; None while there are none.
    """

    __slots__ = ("events", "lacking", "seen", "states", "without")

    def __init__(self, events: list[TailEvent]) -> None:
        self.events = events
        self.seen = self.lacking = 0
        self.states: dict[str, State] | None = None
        self.without: Mapping[int, int] = {}


class Tail:
    """The events of one tile set.

    Attributes
    ----------
    dropped
        Events that went before the tiles had them, because there were too many.
    """

    def __init__(self, tile_set: TileSet, most: int = MOST) -> None:
        self.tile_set, self._most = tile_set, most
        self._wanted = tile_set.where.python() if tile_set.where else None
        self._parts = [column.python() for _, column in tile_set.key]
        self._columns = [(each.name, each.monoid, each.value.python()) for each in tile_set.partials]
        self._by_key: dict[Key, dict[int, Bucket]] = {}
        self._order: dict[int, deque[tuple[int, Key, int]]] = {}
        self._lost: dict[int, int] = {}
        self.events = self.dropped = 0

    def add(self, event: Event) -> None:
        """Keep an event, if it is one that the tile set counts."""
        if self._wanted is not None and self._wanted(event.row) is not True:
            return
        key, waiting = tuple(part(event.row) for part in self._parts), self.waiting(event)
        self._by_key.setdefault(key, {}).setdefault(waiting.tile, Bucket([])).events.append(waiting)
        self._order.setdefault(waiting.partition, deque()).append((waiting.offset, key, waiting.tile))
        self.events += 1
        if self.events > self._most:
            longest = max(self._order, key=lambda each: len(self._order[each]))
            self._lost[longest] = self._drop(longest) + 1
            self.dropped += 1

    def forget(self, positions: Mapping[int, int]) -> None:
        """Let go of what is in the tiles: all before these positions."""
        for partition, held in self._order.items():
            passed, end = set(), positions.get(partition, 0)
            while held and held[0][0] < end:
                passed.add(held.popleft()[1:])
            for key, tile in passed:
                self._let_go(key, tile, partition, end)

    def whole(self, positions: Mapping[int, int]) -> bool:
        """Whether everything is here that the tiles lack, being as far as these positions."""
        return all(positions.get(partition, 0) >= end for partition, end in self._lost.items())

    def _drop(self, partition: int) -> int:
        """Let go of the first event of a partition; its offset."""
        offset, key, tile = self._order[partition].popleft()
        self._let_go(key, tile, partition, offset + 1)
        return offset

    def _let_go(self, key: Key, tile: int, partition: int, end: int) -> None:
        """Let go of the events of a key and tile that stand before an offset; what was folded is folded anew."""
        buckets = self._by_key[key]
        held = buckets[tile].events
        left = [each for each in held if each.partition != partition or each.offset >= end]
        buckets[tile] = Bucket(left)
        self.events -= len(held) - len(left)
        if not left:
            del buckets[tile]
            if not buckets:
                del self._by_key[key]

    def span(self, key: Key) -> tuple[int, int] | None:
        """The first tile of a key that has events here, and the end of the last; None when there are none."""
        buckets = self._by_key.get(key)
        return None if not buckets else (min(buckets), max(buckets) + 1)

    def waiting(self, event: Event) -> TailEvent:
        """An event as one that may not be in its tile."""
        _, partition, offset = event.place
        return TailEvent(partition, offset, event.event_time - event.event_time % self.tile_set.grain, event)

    def outside(self, key: Key, held: Iterable[StoredTile], hand_over: HandOver | None) -> tuple[list[Tile], int]:
        """What the tiles of a run lack, as tiles, and of how many events; `held` are the run's rows of these tiles.

        What happened before a run's hand-over is not its stream's: it comes from the lake, in the late lane.
        """
        rows = {row.tile: row.positions for row in held if row.lane == "on_time"}
        point = None if hand_over is None else hand_over.point
        found, count = list[Tile](), 0
        for tile, bucket in self._by_key.get(key, {}).items():
            if point is not None and tile < point:
                continue
            self._fold(bucket, rows.get(tile, {}))
            if bucket.states is not None:
                found.append((tile, bucket.states))
                count += bucket.lacking
        return found, count

    def _fold(self, bucket: Bucket, positions: Mapping[int, int]) -> None:
        """Fold what a row lacks: with what was folded before for the same row, only what has come since."""
        if bucket.without != positions:
            bucket.without, bucket.seen, bucket.lacking, bucket.states = dict(positions), 0, 0, None
        for each in bucket.events[bucket.seen :]:
            if each.offset >= positions.get(each.partition, 0):
                one, before = self.states(each.event), bucket.states
                bucket.states = one if before is None else self._merged(before, one)
                bucket.lacking += 1
        bucket.seen = len(bucket.events)

    def _merged(self, before: Mapping[str, State], one: Mapping[str, State]) -> dict[str, State]:
        return {name: monoid.merge(before[name], one[name]) for name, monoid, _ in self._columns}

    def states(self, event: Event) -> dict[str, State]:
        """The partial columns of an event."""
        row, at, name = event.row, event.event_time, event.event_id
        return {column: monoid.lift(eaten(row), at, name) for column, monoid, eaten in self._columns}
