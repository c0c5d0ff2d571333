"""Coarser levels on every store: made, removed and made again, and never another value than the tiles give."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import DataError
from headrace.store import LmdbStore
from headrace.store.lmdb import relayout
from headrace.tiles.changelog import Gone, ProgressRow, TileRow
from headrace.tiles.levels import Band, LevelLayout, ReadPiece, widths
from tests.store.folds import GRAIN, Counting, bands_of, told
from tests.store.rows import TOPIC, fold

SET, KEY = "aa11", ("42",)
offsets = count(1)


def row(place, n=1, *, lane="on_time", version=1, key=KEY, run="1"):
    return TileRow(SET, run, key, place * GRAIN, lane, version, b'{"count_1":%d}' % n)


def put(store, *rows):
    store.apply(rows, TOPIC, {0: next(offsets)})


def compacted(store):
    while store.compact():
        pass
    return store


def filled(store, places=range(200), **more):
    """A store with many tiles of a key, and their levels."""
    store.fold_with({SET: Counting()})
    put(store, *(row(place, n=place, **more) for place in places))
    return compacted(store)


def pieces(store, bands, key=KEY, *, run="1", layout=None):
    found = store.read(SET, [key], bands, run=run, layout=layout or Counting().layout)
    return found.keys[0]


def test_a_long_range_is_read_in_few_pieces_and_holds_every_tile_once(store):
    filled(store)
    found = pieces(store, [Band(0, 200 * GRAIN, 99)])
    assert len(found) < 20
    assert told(found) == {"total": sum(range(200)), "tiles": {str(place * GRAIN): 1 for place in range(200)}}
    assert store.stats().tiles == 200
    assert store.stats().levels > 50


@pytest.mark.parametrize(("low", "high"), [(0, 1), (3, 5), (4, 8), (3, 150), (16, 80), (1, 199), (-9, 400), (64, 128)])
def test_whatever_its_edges_a_range_holds_its_tiles_and_no_others(store, low, high):
    filled(store)
    wanted = [place for place in range(200) if low <= place < high]
    assert told(pieces(store, [Band(low * GRAIN, high * GRAIN, 99)]))["total"] == sum(wanted)


def test_a_band_for_tiles_alone_is_read_from_tiles_alone(store):
    filled(store)
    assert {piece.level for piece in pieces(store, [Band(0, 2_000, 0)])} == {0}
    assert {piece.level for piece in pieces(store, [Band(0, 2_000, 2)])} == {0, 1, 2}


def test_a_reader_that_knows_another_layout_reads_tiles_alone(store):
    filled(store)
    for layout in (LevelLayout("other", (40, 160, 640)), LevelLayout("one", (80,))):
        assert {piece.level for piece in pieces(store, [Band(0, 2_000, 99)], layout=layout)} == {0}
    assert {piece.level for piece in store.read(SET, [KEY], [Band(0, 2_000, 99)], run="1").keys[0]} == {0}


@pytest.mark.parametrize(
    "change",
    [row(70, n=1_000, version=2), row(70, n=930, lane="late"), Gone(SET, "1", KEY, 700, "on_time")],
    ids=["another version", "late lane", "tombstone"],
)
def test_a_tile_that_changes_takes_the_rows_that_hold_it_with_it_at_once(store, change):
    filled(store)
    before = store.stats().levels
    put(store, change)
    expected = sum(range(200)) - 70 if isinstance(change, Gone) else sum(range(200)) + 930
    assert told(pieces(store, [Band(0, 2_000, 99)]))["total"] == expected
    assert store.stats().levels == before - 3
    assert told(pieces(store, [Band(0, 700, 99), Band(710, 2_000, 99)]))["total"] == sum(range(200)) - 70


def test_rows_that_were_lost_are_made_again_in_time(store):
    before = filled(store).stats().levels
    for place in (10, 30, 70, 110, 150):
        put(store, row(place, n=place, version=2))
    assert store.stats().levels < before - 5
    compacted(store)
    assert store.stats().levels == before
    assert told(pieces(store, [Band(0, 2_000, 99)]))["total"] == sum(range(200))


def test_a_lesser_version_of_a_tile_changes_nothing_and_removes_nothing(store):
    filled(store, version=5)
    before = store.stats()
    put(store, row(70, n=7, version=4))
    assert store.stats() == before


def test_a_row_that_comes_again_as_it_was_removes_nothing(store):
    filled(store)
    before = store.stats()
    put(store, *(row(place, n=place) for place in range(50, 90)))
    assert (store.stats(), store.compact()) == (before, 0)


def test_rows_are_made_only_of_spans_that_have_ended_and_hold_enough(store):
    filled(store, [place * 5 for place in range(64)])
    found = pieces(store, [Band(0, 3_200, 99)])
    assert told(found)["total"] == sum(place * 5 for place in range(64))
    # A span of level 1 holds at most one of these tiles, and one of level 2 three or four.
    assert {piece.level for piece in found} == {0, 2, 3}
    put(store, row(320))
    assert 320 * GRAIN in {piece.start for piece in pieces(store, [Band(0, 9_999, 99)]) if piece.level == 0}


def test_a_key_with_few_tiles_has_no_levels(store):
    filled(store, range(20))
    assert store.stats().levels == 0
    assert told(pieces(store, [Band(0, 200, 99)]))["total"] == sum(range(20))


def test_keys_and_runs_have_levels_of_their_own(store):
    filled(store)
    long = ("x" * 600,)
    put(store, *(row(place, key=long, run="2") for place in range(100)))
    compacted(store)
    assert told(pieces(store, [Band(0, 2_000, 99)], long, run="2"))["total"] == 100
    assert {piece.level for piece in pieces(store, [Band(0, 640, 99)], long, run="2")} == {3}
    put(store, *(Gone(SET, "2", long, place * GRAIN, "on_time") for place in range(100)))
    assert pieces(store, [Band(0, 2_000, 99)], long, run="2") is None
    assert told(pieces(store, [Band(0, 2_000, 99)]))["total"] == sum(range(200))
    assert (store.stats().keys, store.stats().tiles) == (1, 200)


def test_when_all_tiles_of_a_key_are_gone_nothing_is_left_of_its_levels(store):
    filled(store)
    put(store, *(Gone(SET, "1", KEY, place * GRAIN, "on_time") for place in range(200)))
    stats = store.stats()
    assert (stats.keys, stats.tiles, stats.levels) == (0, 0, 0)
    assert (pieces(store, [Band(0, 2_000, 99)]), store.holds(SET, "1", KEY)) == (None, False)
    filled(store, range(50))
    assert told(pieces(store, [Band(0, 2_000, 99)]))["total"] == sum(range(50))


def test_work_is_done_in_steps_of_about_the_size_that_is_asked_for(store):
    merges = Counting()
    store.fold_with({SET: merges})
    put(store, *(row(place) for place in range(400)))
    steps = 0
    while store.compact(50):
        steps += 1
        assert merges.merged < 250
        merges.merged = 0
        assert told(pieces(store, [Band(0, 4_000, 99)]))["total"] == 400
    assert steps >= 5
    assert len(pieces(store, [Band(0, 4_000, 99)])) < 25


def test_a_store_that_had_tiles_before_it_knew_how_to_merge_gets_levels(store):
    put(store, *(row(place) for place in range(200)), *(row(place, key=("few",)) for place in range(5)))
    store.fold_with({SET: Counting()})
    compacted(store)
    assert len(pieces(store, [Band(0, 2_000, 99)])) < 20


def test_levels_of_another_layout_are_removed_and_new_ones_made(store):
    filled(store)
    other = Counting((20, 100), "other")
    store.fold_with({SET: other})
    assert store.stats().levels == 0
    assert {piece.level for piece in pieces(store, [Band(0, 2_000, 99)])} == {0}
    compacted(store)
    found = pieces(store, [Band(0, 2_000, 99)], layout=other.layout)
    assert (told(found)["total"], {piece.level for piece in found}) == (sum(range(200)), {0, 2})


def test_a_process_that_died_while_levels_were_removed_leaves_none_that_is_read(tmp_path, monkeypatch):
    filled(store := LmdbStore(tmp_path))
    monkeypatch.setattr(relayout, "PART", 40)
    monkeypatch.setattr(relayout.Arranging, "_count_tile", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.fold_with({SET: Counting((20, 100), "other")})
    assert {piece.level for piece in pieces(store, [Band(0, 2_000, 99)])} == {0}
    monkeypatch.undo()
    store.close()
    with LmdbStore(tmp_path) as store:
        put(store, row(70, n=1_000, version=2))
        store.fold_with({SET: Counting()})
        compacted(store)
        assert len(pieces(store, [Band(0, 2_000, 99)])) < 20
        assert told(pieces(store, [Band(0, 2_000, 99)]))["total"] == sum(range(200)) + 930


def test_a_tile_that_cannot_be_merged_keeps_its_key_without_levels_and_the_others_go_on(store, caplog):
    class Failing(Counting):
        def merge(self, level, pieces):
            if any(b"666" in piece.partials for piece in pieces):
                raise DataError("bad-changelog", "A tile cannot be read.")
            return super().merge(level, pieces)

    store.fold_with({SET: Failing()})
    put(store, *(row(place, n=666 if place == 50 else 1) for place in range(200)))
    put(store, *(row(place, key=("7",)) for place in range(200)))
    compacted(store)
    assert told(pieces(store, [Band(0, 2_000, 99)]))["total"] == 199 + 666
    assert len(pieces(store, [Band(0, 2_000, 99)], ("7",))) < 20
    assert "cannot be read" in caplog.text


def test_levels_outlive_the_process(shelves):
    with shelves() as shelf:
        filled(shelf.store)
        shelf.reopen()
        assert len(pieces(shelf.store, [Band(0, 2_000, 99)])) < 20 or shelf.store.stats().levels == 0
        shelf.store.fold_with({SET: Counting()})
        assert len(pieces(shelf.store, [Band(0, 2_000, 99)])) < 20
        put(shelf.store, row(70, n=1_000, version=2))
        assert told(pieces(shelf.store, [Band(0, 2_000, 99)]))["total"] == sum(range(200)) + 930


def test_levels_stay_right_when_a_process_that_knows_no_merge_applies(shelves):
    with shelves() as shelf:
        filled(shelf.store)
        shelf.reopen()
        put(shelf.store, row(70, n=1_000, version=2), row(300))
        shelf.store.fold_with({SET: Counting()})
        assert told(pieces(shelf.store, [Band(0, 9_999, 99)]))["total"] == sum(range(200)) + 931


def test_one_look_says_which_run_is_read_and_how_far_it_has_come(store):
    filled(store)
    assert store.read(SET, [KEY], [Band(0, 10, 0)]).keys == [None]
    said = ProgressRow(SET, "1", {0: 1}, as_of=9)
    put(store, said)
    found = store.read(SET, [KEY, ("nobody",)], [Band(10, 20, 0)])
    assert (found.run, found.said, found.keys) == ("1", said, [[ReadPiece(10, 0, b'{"count_1":1}')], None])
    assert store.read(SET, [KEY], [Band(9_000, 9_010, 0)]).keys == [[]]
    assert store.read(SET, [], [Band(0, 10, 0)]).keys == []


stretch = st.tuples(st.integers(0, 300), st.integers(1, 60), st.sampled_from(["on_time", "on_time", "late"]))
actions = st.lists(
    st.one_of(
        st.tuples(st.just("put"), stretch, st.integers(1, 3)),
        st.tuples(st.just("gone"), stretch, st.just(0)),
        st.tuples(st.just("compact"), st.integers(1, 200), st.just(0)),
        st.tuples(st.just("reopen"), st.booleans(), st.just(0)),
    ),
    max_size=12,
)


@given(steps=actions, edges=st.lists(st.integers(-5, 400), min_size=2, max_size=8), level=st.integers(1, 4))
def test_reads_with_levels_are_reads_without_them_after_any_history(shelves, steps, edges, level):
    with shelves() as shelf:
        shelf.store.fold_with({SET: Counting()})
        applied = []
        for turn, (what, how, version) in enumerate(steps):
            match what:
                case "compact":
                    shelf.store.compact(how)
                case "reopen":
                    shelf.reopen()
                    if how:
                        shelf.store.fold_with({SET: Counting()})
                case _:
                    start, long, lane = how
                    rows = [row(place, n=turn, lane=lane, version=version) for place in range(start, start + long)]
                    if what == "gone":
                        rows = [Gone(SET, "1", KEY, each.tile, lane) for each in rows]
                    applied += rows
                    put(shelf.store, *rows)
            _check(shelf.store, applied, bands_of(edges, level))
        compacted(shelf.store)
        _check(shelf.store, applied, bands_of(edges, level))


def _check(store, applied, bands):
    tiles, _ = fold(applied)
    with_levels, without = pieces(store, bands), store.read(SET, [KEY], bands, run="1").keys[0]
    if not tiles:
        assert (with_levels, without) == (None, None)
        return
    assert told(with_levels) == told(without)
    inside = [each for each in tiles.values() if any(band.low <= each.tile < band.high for band in bands)]
    assert len(without) == len(inside)
    stats = store.stats()
    assert (stats.keys, stats.tiles) == (1, len(tiles))


def test_widths_are_round_multiples_of_each_other():
    second = 1_000_000
    for grain in (second, 7 * second, 10 * second, 15 * second, 60 * second, 3_600 * second, 86_400 * second, 1):
        cut = widths(grain, None)
        assert all(
            wide % narrow == 0 and 3 <= wide // narrow <= 8 for narrow, wide in zip((grain, *cut), cut, strict=False)
        )
        assert len(cut) < 26
