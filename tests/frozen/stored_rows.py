"""What is written to a store before its bytes are looked at: tiles of four hours, both lanes, level rows and a base."""

from __future__ import annotations

from headrace.store import Store
from headrace.tiles.changelog import Gone, HandOver, ProgressRow, Row, TileRow
from headrace.tiles.fold import folds
from headrace.tiles.identity import LONGEST
from tests.frozen.shop import BASE, MINUTE, TOPIC, by_card, plan

HOUR = 60 * MINUTE
DAY = 24 * HOUR
LONG_KEY = "x" * (LONGEST + 1)
FOLDS = {by_card.fingerprint: folds(plan)[by_card.fingerprint]}
PARTIALS = (
    b'{"count_a66442ec":%d,"greatest_f2e11490":%d,"span_f57eba66":{"n":1,"min":%d,"max":%d},'
    b'"total_22287647":{"hi":0,"lo":%d},"total_29627a76":1.5}'
)


def tile(number: int, *, key: str = "42", run: str = "1", lane: str = "on_time", version: int = 1) -> TileRow:
    """The tile that starts so many times ten minutes after `BASE`."""
    start = BASE + number * 10 * MINUTE
    partials = PARTIALS % (version, number, start, start, number)
    return TileRow(by_card.fingerprint, run, (key,), start, lane, version, partials, {0: number}, start, start + 1)


def fill(store: Store) -> None:
    """Everything that a store can hold: rows, what runs have said, levels with a hole, and tiles that were removed."""
    tile_set = by_card.fingerprint
    store.fold_with(FOLDS)
    first: list[Row] = [tile(number) for number in range(40)]
    first += [tile(3, lane="late"), tile(0, key="a\u00e9"), tile(0, key=LONG_KEY), tile(0, run="2")]
    first += [ProgressRow(tile_set, "1", {0: 40, 1: 2}, BASE + DAY, late_as_of=BASE + HOUR)]
    first += [HandOver(tile_set, "2", BASE, {0: 9}, {0: 8}, 7, filled=BASE)]
    store.apply(first, TOPIC, {0: 45, 1: 3})
    while store.compact():
        pass
    second = [tile(5, version=2), tile(41), Gone(tile_set, "1", ("42",), BASE + 70 * MINUTE, "on_time")]
    store.apply(second, TOPIC, {0: 48})
    store.mark_filling(True)


def forget_old_tiles(store: Store) -> None:
    """Remove what no window can reach any more: the on-time tiles of two hours go into the key's base."""
    (fold,) = FOLDS.values()
    known_until = BASE + 2 * HOUR + fold.layout.keep
    store.apply([ProgressRow(by_card.fingerprint, "1", {0: 50}, known_until)], TOPIC, {0: 51})
    while store.expire():
        pass
