"""Tiles that nobody can ask for go, on every store; what a lifetime needs of them stays, and is counted once."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import HeadraceError
from headrace.tiles.changelog import Gone, HandOver, ProgressRow, TileRow
from headrace.tiles.levels import EVER, Band
from tests.store.folds import GRAIN, Counting, told
from tests.store.rows import TOPIC, fold

SET, KEY, KEEP = "aa11", ("42",), 500
offsets = count(1)


def row(place, n=1, *, lane="on_time", version=1, key=KEY, run="1"):
    return TileRow(SET, run, key, place * GRAIN, lane, version, b'{"count_1":%d}' % n)


def put(store, *rows):
    store.apply(rows, TOPIC, {0: next(offsets)})


def said(as_of, run="1"):
    return ProgressRow(SET, run, {0: 1}, as_of)


def swept(store):
    while store.compact():
        pass
    while store.expire():
        pass
    return store


def opened(store, *, base="", keep=KEEP):
    store.fold_with({SET: Counting(keep=keep, base=base)})
    return store


def read(store, low, high, *, key=KEY, base="", keep=KEEP):
    found = store.read(SET, [key], [Band(low, high, 99)], layout=Counting(keep=keep, base=base).layout)
    return found.keys[0], found.expired


def starts(store, key=KEY):
    return [tile.tile // GRAIN for tile in store.tiles(SET, "1", key)]


def test_tiles_go_when_the_run_has_come_so_far_that_nothing_can_ask_for_them(store):
    opened(store)
    put(store, *(row(place) for place in range(100)), said(1_000))
    swept(store)
    # As of 1000 with 500 to keep, a tile that begins at 500 may be asked for.
    assert starts(store) == list(range(50, 100))
    assert read(store, 500, 2_000)[1] == 500
    assert told(read(store, 500, 2_000)[0])["total"] == 50
    assert store.stats().tiles == 50
    put(store, said(1_010))
    assert starts(swept(store))[0] == 51


def test_nothing_goes_that_is_to_be_kept_for_ever_or_of_a_run_that_has_said_nothing(store):
    opened(store, keep=0)
    put(store, *(row(place) for place in range(100)), said(1_000))
    assert len(starts(swept(store))) == 100
    assert read(store, 0, 2_000, keep=0)[1] is None


def test_a_run_whose_history_is_being_filled_in_keeps_everything(store):
    opened(store)
    begun = HandOver(SET, "2", 0, {}, {}, 1)
    put(store, *(row(place, run="2") for place in range(60)), said(1_000, "2"), begun)
    swept(store)
    assert len(store.tiles(SET, "2", KEY)) == 60
    put(store, HandOver(SET, "2", 0, {}, {}, 1, stage="serving"))
    assert len(swept(store).tiles(SET, "2", KEY)) == 10


def test_a_key_of_which_all_has_gone_is_no_more(store):
    opened(store)
    put(store, *(row(place, key=("old",)) for place in range(45)), row(90), said(1_000))
    swept(store)
    assert (store.holds(SET, "1", ("old",)), store.holds(SET, "1", KEY)) == (False, True)
    assert (store.stats().keys, store.stats().tiles, store.stats().levels) == (1, 1, 0)


def test_a_row_of_a_tile_that_has_gone_is_not_taken_again(store):
    opened(store)
    rows = [row(place) for place in range(100)]
    put(store, *rows, said(1_000))
    swept(store)
    put(store, *rows)
    assert starts(store) == list(range(50, 100))


def test_a_row_of_the_oldest_tile_that_is_kept_is_taken(store):
    opened(store)
    put(store, *(row(place) for place in range(100)), said(1_000))
    swept(store)
    put(store, row(50, 7, version=2))
    assert store.tiles(SET, "1", KEY)[0].partials == b'{"count_1":7}'


def test_levels_of_what_has_gone_go_too_and_the_others_stay_right(store):
    opened(store)
    put(store, *(row(place, n=place) for place in range(200)), said(1_500))
    swept(store)
    assert told(read(store, 1_000, 2_000)[0])["total"] == sum(range(100, 200))
    assert len(read(store, 1_000, 2_000)[0]) < 20
    put(store, row(120, n=1_120, version=2))
    assert told(read(store, 1_000, 2_000)[0])["total"] == sum(range(100, 200)) + 1_000


def test_a_lifetime_goes_on_to_hold_tiles_that_have_gone(store):
    opened(store, base="b")
    put(store, *(row(place, n=place) for place in range(100)), said(700))
    swept(store)
    assert starts(store) == list(range(20, 100))
    pieces, _ = read(store, EVER, 2_000, base="b")
    assert told(pieces)["total"] == sum(range(100))
    assert (pieces[0].start, pieces[0].level) == (EVER, -1)
    put(store, said(1_000))
    assert starts(swept(store)) == list(range(50, 100))
    assert told(read(store, EVER, 2_000, base="b")[0])["total"] == sum(range(100))
    put(store, said(10_000))
    assert (starts(swept(store)), store.holds(SET, "1", KEY), store.stats().keys) == ([], True, 1)
    assert told(read(store, EVER, 20_000, base="b")[0])["total"] == sum(range(100))


def test_a_changelog_that_is_read_again_counts_nothing_twice(store):
    opened(store, base="b")
    rows = [row(place, n=place) for place in range(100)]
    put(store, *rows, said(1_000))
    swept(store)
    for start in range(0, 100, 30):
        put(store, *rows[start : start + 30])
        assert told(read(store, EVER, 2_000, base="b")[0])["total"] == sum(range(100))
    assert told(read(swept(store), EVER, 2_000, base="b")[0])["total"] == sum(range(100))


def test_a_tile_that_no_base_holds_is_taken_however_old_it_is(store):
    opened(store, base="b")
    put(store, *(row(place) for place in (*range(10), 60)), *(row(place, key=("7",)) for place in range(60)), said(700))
    swept(store)
    put(store, said(1_000))
    swept(store)
    assert (read(store, EVER, 2_000, base="b")[1], starts(store)) == (500, [60])
    put(store, row(30, n=5))
    assert told(read(swept(store), EVER, 2_000, base="b")[0])["total"] == 16


def test_the_late_lane_stays_beside_the_base_and_may_change(store):
    opened(store, base="b")
    put(store, *(row(place) for place in range(100)), row(3, n=10, lane="late"), said(1_000))
    swept(store)
    assert starts(store)[:2] == [3, 50]
    put(store, row(3, n=20, lane="late", version=2), row(4, n=5, lane="late"))
    assert told(read(swept(store), EVER, 2_000, base="b")[0])["total"] == 125
    put(store, Gone(SET, "1", KEY, 30, "late"))
    assert told(read(store, EVER, 2_000, base="b")[0])["total"] == 105


def test_a_run_that_is_removed_takes_its_base_with_it(store):
    opened(store, base="b")
    put(store, *(row(place) for place in range(100)), row(3, lane="late"), said(1_000))
    swept(store)
    put(store, *(Gone(SET, "1", KEY, place * GRAIN, "on_time") for place in range(100)))
    put(store, Gone(SET, "1", KEY, 3 * GRAIN, "late"), said(1_000))
    assert (store.holds(SET, "1", KEY), read(store, EVER, 2_000, base="b")[0]) == (False, None)
    stats = store.stats()
    assert (stats.keys, stats.tiles, stats.levels) == (0, 0, 0)


def test_a_reader_that_wants_other_columns_of_all_that_ever_was_is_refused(store):
    opened(store, base="b")
    put(store, *(row(place) for place in range(100)), said(1_000))
    swept(store)
    with pytest.raises(HeadraceError) as refused:
        read(store, EVER, 2_000, base="other")
    assert refused.value.code == "store-expired"


@pytest.mark.parametrize("more", [{"keep": 600}, {"keep": 0}, {"keep": KEEP, "base": "b"}])
def test_when_more_is_wanted_than_was_kept_the_store_begins_again(shelves, more):
    with shelves() as shelf:
        opened(shelf.store)
        put(shelf.store, *(row(place) for place in range(100)), said(1_000))
        swept(shelf.store)
        shelf.reopen()
        opened(shelf.store, **more)
        assert (shelf.store.position(TOPIC), shelf.store.stats().tiles) == ({}, 0)
        put(shelf.store, *(row(place) for place in range(100)))
        assert shelf.store.stats().tiles == 100


@pytest.mark.parametrize("less", [{"keep": 400}, {"keep": KEEP}])
def test_when_no_more_is_wanted_nothing_is_lost(shelves, less):
    with shelves() as shelf:
        opened(shelf.store, base="b")
        put(shelf.store, *(row(place) for place in range(100)), said(1_000))
        swept(shelf.store)
        shelf.reopen()
        opened(shelf.store, **less)
        assert shelf.store.stats().tiles == 50


def test_a_tile_that_cannot_be_merged_stays_where_it_is(store):
    class Failing(Counting):
        def merge(self, level, pieces):
            if any(b"666" in piece.partials for piece in pieces):
                raise HeadraceError("bad-changelog", "A tile cannot be read.")
            return super().merge(level, pieces)

    store.fold_with({SET: Failing(keep=KEEP, base="b")})
    put(
        store, *(row(place, n=666 if place == 7 else 1) for place in range(60)), *(row(n, key=("7",)) for n in range(9))
    )
    put(store, said(1_000))
    swept(store)
    assert (len(starts(store)), starts(store, ("7",))) == (60, [])


stretch = st.tuples(st.integers(0, 120), st.integers(1, 40))
actions = st.lists(
    st.one_of(
        st.tuples(st.just("late"), stretch),
        st.tuples(st.just("again"), stretch),
        st.tuples(st.just("on"), stretch),
        st.tuples(st.just("sweep"), st.integers(1, 60)),
        st.tuples(st.just("compact"), st.integers(1, 100)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    max_size=14,
)


@given(steps=actions)
def test_a_lifetime_is_the_sum_of_all_tiles_after_any_history(shelves, steps):
    """On-time tiles come in order of time and are final once progress has passed them; late ones come as they like."""
    with shelves() as shelf:
        opened(shelf.store, base="b")
        applied, head, turn = [row(0)], 1, count(2)
        put(shelf.store, *applied)
        for what, how in steps:
            match what:
                case "on":
                    fresh = [row(head + place, n=next(turn)) for place in range(how[1])]
                    head += how[1]
                    applied += fresh
                    put(shelf.store, *fresh, said(head * GRAIN))
                case "late":
                    late = [row(how[0] + at, n=next(turn), lane="late", version=next(turn)) for at in range(how[1])]
                    applied += late
                    put(shelf.store, *late)
                case "again":
                    put(shelf.store, *applied[how[0] : how[0] + how[1]], *applied[how[0] :])
                case "sweep":
                    shelf.store.expire(how)
                case "compact":
                    shelf.store.compact(how)
                case "reopen":
                    shelf.reopen()
                    opened(shelf.store, base="b")
            found = shelf.store.read(
                SET, [KEY], [Band(EVER, 9_999_990, 99)], run="1", layout=Counting(keep=KEEP, base="b").layout
            )
            tiles, _ = fold(applied)
            assert told(found.keys[0])["total"] == sum(int(each.partials[11:-1]) for each in tiles.values())
