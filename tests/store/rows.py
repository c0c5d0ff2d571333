"""What the store tests share: generated changelog rows, and what they come to by the plainest fold there is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from headrace.store import Store
from headrace.tiles.changelog import Gone, ProgressRow, Row, TileRow

TOPIC = "changelog.cards"
SETS, RUNS = ("aa11", "aa112"), ("r1", "r10")
# Keys that would collide if they were glued together, ordered by text, or longer than LMDB takes.
KEYS: tuple[Any, ...] = ((), ("",), ("a",), ("a", ""), ("", "a"), ("a\x00b",), ("ключ",), (1,), (True,), (-1,), ("1",))
LONG_KEYS = (("x" * 600,), ("x" * 601,), ("x" * 462,), ("é" * 300, 7))
TILES = (0, -1, 1, 60_000_000, -(2**63), 2**63 - 1)

tile_rows = st.builds(
    TileRow,
    tile_set=st.sampled_from(SETS),
    run=st.sampled_from(RUNS),
    key=st.sampled_from(KEYS + LONG_KEYS),
    tile=st.sampled_from(TILES),
    lane=st.sampled_from(["on_time", "late"]),
    version=st.integers(0, 4),
    partials=st.integers(0, 99).map(lambda n: b'{"count_1":%d}' % n),
    positions=st.dictionaries(st.integers(0, 2), st.integers(0, 9), max_size=2),
    max_event_time=st.none() | st.integers(-5, 5),
    max_arrived_at=st.none() | st.integers(0, 5),
)
progress_rows = st.builds(
    ProgressRow,
    tile_set=st.sampled_from(SETS),
    run=st.sampled_from(RUNS),
    positions=st.dictionaries(st.integers(0, 2), st.integers(0, 9), max_size=2),
    as_of=st.integers(0, 9),
    late_as_of=st.none() | st.integers(0, 9),
)
gone_rows = tile_rows.map(lambda row: Gone(row.tile_set, row.run, row.key, row.tile, row.lane))
rows = st.lists(tile_rows | tile_rows | tile_rows | progress_rows | gone_rows, max_size=30)


def identity(row: TileRow | Gone) -> tuple[Any, ...]:
    # In Python (1,) == (True,): the types tell them apart.
    return (row.tile_set, row.run, row.key, tuple(map(type, row.key)), row.tile, row.lane)


def fold(given: Iterable[Row]) -> tuple[dict[Any, TileRow], dict[Any, ProgressRow]]:
    """Rows by identity and progress by run, after all of them."""
    tiles: dict[Any, TileRow] = {}
    progress: dict[Any, ProgressRow] = {}
    for row in given:
        match row:
            case TileRow():
                held = tiles.get(identity(row))
                if held is None or held.version <= row.version:
                    tiles[identity(row)] = row
            case Gone():
                tiles.pop(identity(row), None)
            case ProgressRow():
                progress[row.tile_set, row.run] = row
    return tiles, progress


def contents(store: Store) -> tuple[dict[Any, TileRow], dict[Any, ProgressRow]]:
    """All a store holds of the sets, runs and keys above, in the same form."""
    tiles = {}
    for tile_set in SETS:
        for run in RUNS:
            for key in KEYS + LONG_KEYS:
                for held in store.tiles(tile_set, run, key):
                    fields = {name: getattr(held, name) for name in held.__struct_fields__}
                    row = TileRow(tile_set, run, key, **fields)
                    tiles[identity(row)] = row
    progress = {(tile_set, run): said for tile_set in SETS for run, said in store.progress(tile_set).items()}
    return tiles, progress
