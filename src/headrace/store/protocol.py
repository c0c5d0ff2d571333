"""What every store does. The conformance suite (`tests/store/test_conformance.py`) is this file as tests.

Applying is a fold: of two rows of one identity the greater version stays, of equal versions the later one. Rows and
the position they lead to are kept together or not at all, so a reader that starts again at the store's own position
misses nothing, and applying any part of the changelog a second time, in order, ends in the same tiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from headrace.store.changelog import HandOver, Key, ProgressRow, Row

FIRST, END = -(2**63), 2**63
"""Every tile's start lies in [FIRST, END)."""


class StoredTile(msgspec.Struct, frozen=True, gc=False):
    """What a store holds of one (tile, lane) of a key; see `changelog.TileRow`.

    >>> StoredTile(0, "on_time", 3, b'{"count_1":3}').version
    3
    """

    tile: int
    lane: str
    version: int
    partials: bytes
    positions: Mapping[int, int] = {}
    max_event_time: int | None = None
    max_arrived_at: int | None = None


class Stats(msgspec.Struct, frozen=True):
    """How much a store holds.

    Parameters
    ----------
    keys
        Different keys, counted once per tile set and run.
    tiles
        Rows.
    bytes
        What the rows take: memory, or pages of a file.
    """

    keys: int
    tiles: int
    bytes: int


class Store(Protocol):
    """The newest tiles of every key. One writer, any number of readers."""

    def apply(self, rows: Iterable[Row], topic: str, positions: Mapping[int, int]) -> None:
        """Fold rows in and remember where their topic goes on, all or none.

        Positions are taken as given, also when they lie further back: a replay that is cut short must go on where it
        was, because of two rows of one version the later one is the right one.
        """
        ...

    def position(self, topic: str) -> dict[int, int]:
        """The next offset of each partition; empty for a topic that was never applied."""
        ...

    def tiles(self, tile_set: str, run: str, key: Key, low: int = FIRST, high: int = END) -> list[StoredTile]:
        """The tiles of a key that start in [low, high), by start, then lane."""
        ...

    def holds(self, tile_set: str, run: str, key: Key) -> bool:
        """Whether there is any tile of a key."""
        ...

    def progress(self, tile_set: str) -> dict[str, ProgressRow]:
        """The progress of every run of a tile set, by the run's name."""
        ...

    def hand_overs(self, tile_set: str) -> dict[str, HandOver]:
        """The hand-over of every run of a tile set that has one, by the run's name."""
        ...

    def stats(self) -> Stats:
        """How much there is."""
        ...

    def close(self) -> None:
        """Give back files and memory."""
        ...
