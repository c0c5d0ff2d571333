"""What every store does. The conformance suite (`tests/store/test_conformance.py`) is this file as tests.

Applying is a fold: of two rows of one identity the greater version stays, of equal versions the later one. Rows and
the position they lead to are kept together or not at all, so a reader that starts again at the store's own position
misses nothing, and applying any part of the changelog a second time, in order, ends in the same tiles.

Levels (`levels`) are made beside the tiles by `compact` and never change what is read: a band read with them holds the
same tiles as one read without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from headrace.tiles.changelog import HandOver, Key, ProgressRow, Row
from headrace.tiles.levels import END, FIRST, Band, Fold, LevelLayout, ReadPiece


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
    levels
        Rows of coarser levels, beside those of tiles.
    """

    keys: int
    tiles: int
    bytes: int
    levels: int = 0


class StoreRead(msgspec.Struct, frozen=True, gc=False):
    """What one look into a store gives, all of one moment.

    Parameters
    ----------
    run
        The run that was read; None when none has said anything.
    said
        How far that run has come.
    keys
        The pieces of each key that was asked for; None for a key of which there is no tile at all. A band that begins
        at `levels.EVER` has the key's base for its first piece, if there is one.
    expired
        Tiles that begin before may be missing; None when none are.
    filling
        Whether the store was empty and has not been filled to the end of the changelog since: anything may be missing.
    """

    run: str | None
    said: ProgressRow | None
    keys: list[list[ReadPiece] | None]
    expired: int | None = None
    filling: bool = False


class Store(Protocol):
    """The newest tiles of every key. One writer, any number of readers."""

    @property
    def bulk(self) -> int:
        """How many times as much as usual is best applied in one go while the store is filled."""
        ...

    def apply(self, rows: Iterable[Row], topic: str, positions: Mapping[int, int]) -> None:
        """Fold rows in and remember where their topic goes on, all or none.

        Positions are taken as given, also when they lie further back: a replay that is cut short must go on where it
        was, because of two rows of one version the later one is the right one.
        """
        ...

    def position(self, topic: str) -> dict[int, int]:
        """The next offset of each partition; empty for a topic that was never applied."""
        ...

    def snapshot(self) -> AbstractContextManager[bool]:
        """While entered, all reads are of one state, and it gives true; false from a store that cannot do that."""
        ...

    def tiles(self, tile_set: str, run: str, key: Key, low: int = FIRST, high: int = END) -> list[StoredTile]:
        """The tiles of a key that start in [low, high), by start, then lane."""
        ...

    def read(
        self,
        tile_set: str,
        keys: Sequence[Key],
        bands: Sequence[Band],
        *,
        run: str | None = None,
        layout: LevelLayout | None = None,
    ) -> StoreRead:
        """The tiles of some keys that start in some bands, with level rows in the place of tiles where there are any.

        Parameters
        ----------
        bands
            In order, without overlap, their ends on the edges of tiles.
        run
            The run to read; by default the newest that has caught up.
        layout
            How the reader knows levels to be cut. Without one, and while the store has another, tiles alone are read.
        """
        ...

    def fold_with(self, folds: Mapping[str, Fold]) -> None:
        """Keep levels of these tile sets from now on; what there is of another layout is removed first."""
        ...

    def compact(self, most: int = ...) -> int:
        """Make level rows where it is time to, out of about so many tiles; how many there were, 0 when none is left."""
        ...

    def mark_filling(self, filling: bool) -> None:
        """Take note that an empty store begins to be filled, or that it is as full as the changelog."""
        ...

    def expire(self, most: int = ...) -> int:
        """Go on to remove tiles that nobody can ask for any more, looking at about so many rows; 0 when all were.

        Only to be called once everything that the changelog holds has been applied: of a tile that is folded into a
        key's base, no row is taken any more.
        """
        ...

    def check(self) -> None:
        """Refuse to go on with a store that is damaged or gone, and empty it when that was asked for."""
        ...

    def clear(self) -> None:
        """Forget everything, as if nothing had ever been applied."""
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
