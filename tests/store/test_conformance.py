"""One suite for every store: `store.protocol` as tests."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.tiles.changelog import Gone, ProgressRow, TileRow
from tests.budget import examples
from tests.store.rows import KEYS, LONG_KEYS, TOPIC, contents, fold, rows


def row(version=1, key=("42",), tile=0, lane="on_time", n=0, run="r1", tile_set="aa11"):
    return TileRow(tile_set, run, key, tile, lane, version, b'{"count_1":%d}' % n)


@given(given_rows=rows, cuts=st.lists(st.integers(0, 30), max_size=4), back=st.data())
def test_any_batching_replay_and_reopening_ends_in_the_plain_fold(shelves, given_rows, cuts, back):
    with shelves() as shelf:
        # Where the process died, it may have read on without applying: it starts again at or before its position.
        edges = [0, *sorted(cut for cut in cuts if cut < len(given_rows)), len(given_rows)]
        for start, end in pairwise(edges):
            replayed = back.draw(st.integers(0, start), label="replay from")
            shelf.store.apply(given_rows[replayed:end], TOPIC, {0: end})
            shelf.reopen()
            assert shelf.store.position(TOPIC) == {0: end}
        tiles, progress = fold(given_rows)
        assert contents(shelf.store) == (tiles, progress)
        stats = shelf.store.stats()
        assert (stats.keys, stats.tiles) == (len({key[:4] for key in tiles}), len(tiles))


@examples(1 / 2)
@given(given_rows=rows, size=st.integers(1, 7))
def test_a_replay_from_the_very_start_in_small_batches_changes_nothing(shelves, given_rows, size):
    with shelves() as shelf:
        shelf.store.apply(given_rows, TOPIC, {0: len(given_rows)})
        for start in range(0, len(given_rows), size):
            shelf.store.apply(given_rows[start : start + size], TOPIC, {0: min(start + size, len(given_rows))})
        assert contents(shelf.store) == fold(given_rows)


def test_the_greater_version_wins_whatever_the_order(store):
    store.apply([row(version=2, n=2), row(version=1, n=1)], TOPIC, {0: 2})
    store.apply([row(version=1, n=7)], TOPIC, {0: 3})
    assert [held.partials for held in store.tiles("aa11", "r1", ("42",))] == [b'{"count_1":2}']


def test_of_equal_versions_the_later_wins(store):
    store.apply([row(version=2, n=1)], TOPIC, {0: 1})
    store.apply([row(version=2, n=2), row(version=2, n=3)], TOPIC, {0: 3})
    assert [held.partials for held in store.tiles("aa11", "r1", ("42",))] == [b'{"count_1":3}']


def test_a_replay_that_is_cut_short_goes_on_where_it_was(store):
    # Were the position kept at 2, the first of two rows of one version would stay for ever.
    both = [row(version=2, n=1), row(version=2, n=2)]
    store.apply(both, TOPIC, {0: 2})
    store.apply(both[:1], TOPIC, {0: 1})
    assert store.position(TOPIC) == {0: 1}


def test_tiles_come_in_order_of_time_then_lane(store):
    given_rows = [row(tile=tile, lane=lane) for tile in (5, -5, 0, 300) for lane in ("on_time", "late")]
    store.apply(given_rows, TOPIC, {0: 8})
    found = [(held.tile, held.lane) for held in store.tiles("aa11", "r1", ("42",))]
    assert found == [(tile, lane) for tile in (-5, 0, 5, 300) for lane in ("late", "on_time")]


def test_a_range_of_tiles_is_half_open(store):
    store.apply([row(tile=tile) for tile in (-20, -10, 0, 10)], TOPIC, {0: 4})
    assert [held.tile for held in store.tiles("aa11", "r1", ("42",), -10, 10)] == [-10, 0]
    assert [held.tile for held in store.tiles("aa11", "r1", ("42",), -(2**70), 2**70)] == [-20, -10, 0, 10]


def test_keys_sets_and_runs_that_look_alike_are_kept_apart(store):
    every = [(key, tile_set, run) for key in KEYS + LONG_KEYS for tile_set in ("a", "ab") for run in ("b", "bc")]
    given_rows = [row(key=key, tile_set=tile_set, run=run, n=n) for n, (key, tile_set, run) in enumerate(every)]
    store.apply(given_rows, TOPIC, {0: len(given_rows)})
    for n, (key, tile_set, run) in enumerate(every):
        assert [held.partials for held in store.tiles(tile_set, run, key)] == [b'{"count_1":%d}' % n], key


def test_keys_around_the_longest_that_fits_are_all_kept_apart(store):
    keys = [("x" * length,) for length in range(430, 530)]
    store.apply([row(key=key, n=n) for n, key in enumerate(keys)], TOPIC, {0: len(keys)})
    assert [store.tiles("aa11", "r1", key)[0].partials for key in keys] == [b'{"count_1":%d}' % n for n in range(100)]


def test_a_key_is_held_once_it_has_a_tile_and_until_its_last_is_gone(store):
    for key in (("42",), ("x" * 600,)):
        assert not store.holds("aa11", "r1", key)
        store.apply([row(key=key, tile=1), row(key=key, tile=2)], TOPIC, {0: 2})
        assert store.holds("aa11", "r1", key)
        store.apply([Gone("aa11", "r1", key, 1, "on_time")], TOPIC, {0: 3})
        assert (store.holds("aa11", "r1", key), store.stats().keys) == (True, 1)
        store.apply([Gone("aa11", "r1", key, 2, "on_time")], TOPIC, {0: 4})
        assert (store.holds("aa11", "r1", key), store.stats().keys) == (False, 0)


def test_after_a_tombstone_even_a_lesser_version_counts(store):
    store.apply([row(version=9, n=9)], TOPIC, {0: 1})
    store.apply([Gone("aa11", "r1", ("42",), 0, "on_time"), row(version=1, n=1)], TOPIC, {0: 3})
    assert [held.version for held in store.tiles("aa11", "r1", ("42",))] == [1]


def test_progress_is_kept_by_run_and_the_newest_record_counts(store):
    store.apply([ProgressRow("aa11", "r1", {0: 5}, 50), ProgressRow("aa11", "r2", {0: 1}, 10)], TOPIC, {0: 2})
    store.apply([ProgressRow("aa11", "r1", {0: 4}, 40), ProgressRow("aa1", "r1", {}, 0)], TOPIC, {0: 4})
    assert store.progress("aa11") == {
        "r1": ProgressRow("aa11", "r1", {0: 4}, 40),
        "r2": ProgressRow("aa11", "r2", {0: 1}, 10),
    }
    store.apply([Gone("aa11", "r1")], TOPIC, {0: 5})
    assert list(store.progress("aa11")) == ["r2"]


def test_positions_are_kept_by_topic_and_partition(store):
    assert store.position(TOPIC) == {}
    store.apply([], TOPIC, {0: 3, 1: 4})
    store.apply([], TOPIC, {1: 9})
    store.apply([], "changelog.other", {0: 1})
    assert (store.position(TOPIC), store.position("changelog.other")) == ({0: 3, 1: 9}, {0: 1})


def test_rows_that_fail_half_way_leave_nothing_behind(store):
    def failing():
        yield row()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.apply(failing(), TOPIC, {0: 1})
    assert (store.position(TOPIC), store.stats().tiles) == ({}, 0)
