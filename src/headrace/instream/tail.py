"""Events that are in the log and may not be in the tiles yet, by key: what a score needs beside the store.

A tile's row names the next offset of each partition that is not in it. An event is in its tile exactly when it stands
before that, so each is folded in once, however far Spark is. When the tile set as a whole has passed an event, it goes
from here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headrace.define.event import Event
from headrace.plan.model import TileSet
from headrace.plan.value import Tile
from headrace.store.changelog import HandOver, Key
from headrace.store.protocol import StoredTile

MOST = 500_000
"""Events that are kept at the most: a pipeline that is further behind is told of, and what it lacks is missing."""


class Waiting(NamedTuple):
    """An event that may not be in its tile yet."""

    partition: int
    offset: int
    tile: int
    event: Event


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
        self._by_key: dict[Key, deque[Waiting]] = {}
        self._order: dict[int, deque[tuple[int, Key]]] = {}
        self._lost: dict[int, int] = {}
        self.events = self.dropped = 0

    def add(self, event: Event) -> Key | None:
        """Keep an event, if it is one that the tile set counts; its key."""
        if self._wanted is not None and self._wanted(event.row) is not True:
            return None
        _, partition, offset = event.place
        key = tuple(part(event.row) for part in self._parts)
        tile = event.event_time - event.event_time % self.tile_set.grain
        self._by_key.setdefault(key, deque()).append(Waiting(partition, offset, tile, event))
        self._order.setdefault(partition, deque()).append((offset, key))
        self.events += 1
        if self.events > self._most:
            longest = max(self._order, key=lambda each: len(self._order[each]))
            self._lost[longest] = self._drop(longest) + 1
            self.dropped += 1
        return key

    def forget(self, positions: Mapping[int, int]) -> None:
        """Let go of what is in the tiles: all before these positions."""
        for partition, held in self._order.items():
            end = positions.get(partition, 0)
            while held and held[0][0] < end:
                self._drop(partition)

    def whole(self, positions: Mapping[int, int]) -> bool:
        """Whether everything is here that the tiles lack, being as far as these positions."""
        return all(positions.get(partition, 0) >= end for partition, end in self._lost.items())

    def _drop(self, partition: int) -> int:
        offset, key = self._order[partition].popleft()
        held = self._by_key[key]
        left = deque(each for each in held if (each.partition, each.offset) != (partition, offset))
        if left:
            self._by_key[key] = left
        else:
            del self._by_key[key]
        self.events -= 1
        return offset

    def of(self, key: Key, extra: Waiting | None = None) -> list[Waiting]:
        """The events of a key, and one more that is not kept."""
        return [*self._by_key.get(key, ()), *([] if extra is None else [extra])]

    def waiting(self, event: Event) -> Waiting:
        """An event as one that may not be in its tile."""
        _, partition, offset = event.place
        return Waiting(partition, offset, event.event_time - event.event_time % self.tile_set.grain, event)

    def tiles(self, events: Iterable[Waiting]) -> list[Tile]:
        """Some events as tiles."""
        found: dict[int, list[Event]] = {}
        for each in events:
            found.setdefault(each.tile, []).append(each.event)
        return [(start, self._columns_of(held)) for start, held in found.items()]

    def _columns_of(self, events: Sequence[Event]) -> dict[str, object]:
        return {
            name: monoid.fold(monoid.lift(eaten(each.row), each.event_time, each.event_id) for each in events)
            for name, monoid, eaten in self._columns
        }


def outside(events: Iterable[Waiting], held: Iterable[StoredTile], hand_over: HandOver | None) -> list[Waiting]:
    """The events that are not in the tiles of a run; `held` are its rows of the tiles that they belong to.

    What happened before a run's hand-over is not its stream's: it comes from the lake, in the late lane.
    """
    rows = {row.tile: row.positions for row in held if row.lane == "on_time"}
    point = None if hand_over is None else hand_over.point
    return [
        each
        for each in events
        if each.offset >= rows.get(each.tile, {}).get(each.partition, 0)
        and (point is None or each.event.event_time >= point)
    ]
