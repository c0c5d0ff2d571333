"""Levels of a store that several processes fill: what changes while a row is being made is never in it half."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.store import RedisStore
from headrace.tiles.changelog import Gone, ProgressRow, TileRow
from headrace.tiles.levels import EVER, Band
from tests.budget import examples
from tests.store.folds import GRAIN, Counting, told
from tests.store.rows import TOPIC, fold

SET, KEY = "aa11", ("42",)
numbers, offsets = itertools.count(), itertools.count(1)


class Interrupted(Counting):
    """A merge in the middle of which something else happens."""

    def __init__(self, *, keep: int = 0, base: str = "") -> None:
        super().__init__(keep=keep, base=base)
        self.between: Callable[[], object] = lambda: None

    def merge(self, level, pieces):
        made = super().merge(level, pieces)
        self.between()
        return made

    def once(self, what: Callable[[], object]) -> None:
        """Let something happen the first time."""

        def between():
            self.between = lambda: None
            what()

        self.between = between


def row(place, n=1, version=1, lane="on_time"):
    return TileRow(SET, "1", KEY, place * GRAIN, lane, version, b'{"count_1":%d}' % n)


def put(store, *rows):
    store.apply(rows, TOPIC, {0: next(offsets)})


def total(store, low=0, high=9_000):
    found = store.read(SET, [KEY], [Band(low, high, 99)], run="1", layout=Counting().layout)
    return told(found.keys[0])["total"]


@pytest.fixture
def two(redis_server):
    """Two replicas of one store, the first with a merge that can be interrupted."""
    name = f"levels-{next(numbers)}"
    with RedisStore(redis_server.url, namespace=name) as one, RedisStore(redis_server.url, namespace=name) as other:
        merge = Interrupted()
        one.fold_with({SET: merge})
        other.fold_with({SET: Counting()})
        yield one, other, merge


@pytest.mark.parametrize(
    "change", [row(20, n=100, version=2), row(20, n=99, lane="late"), Gone(SET, "1", KEY, 200, "on_time")], ids=str
)
def test_a_tile_that_changes_while_its_row_is_made_is_not_in_it_as_it_was(two, change):
    one, other, merge = two
    put(one, *(row(place) for place in range(60)))
    merge.once(lambda: put(other, change))
    while one.compact():
        pass
    assert total(one) == total(other) == (59 if isinstance(change, Gone) else 159)
    assert one.stats().levels > 5, "what did not change has its rows"


def test_of_two_that_make_rows_of_one_key_the_one_that_claimed_it_last_counts(two):
    one, other, merge = two
    put(one, *(row(place) for place in range(60)))
    put(other, row(60))

    def meanwhile():
        put(other, row(20, n=100, version=2), *(row(place) for place in range(61, 100)))
        while other.compact():
            pass

    merge.once(meanwhile)
    while one.compact():
        pass
    assert total(one) == 199
    assert len(one.read(SET, [KEY], [Band(0, 9_000, 9)], run="1", layout=Counting().layout).keys[0]) < 20


def test_rows_of_a_layout_that_was_replaced_in_between_do_not_count(two):
    one, other, merge = two
    put(one, *(row(place) for place in range(60)))
    merge.once(lambda: other.fold_with({SET: Counting((20, 100), "other")}))
    one.compact()
    assert one.stats().levels == 0
    put(one, row(3, n=7, version=2))
    assert total(one) == 66


def test_a_process_that_died_while_it_made_rows_leaves_the_work_to_the_next(two):
    one, other, merge = two

    class DiedError(Exception):
        pass

    def die():
        raise DiedError

    put(other, *(row(place) for place in range(60)))
    put(one, *(row(place) for place in range(60, 100)))
    merge.between = die
    with pytest.raises(DiedError):
        one.compact()
    put(other, *(row(place) for place in range(100, 140)))
    while other.compact():
        pass
    found = other.read(SET, [KEY], [Band(0, 9_000, 9)], run="1", layout=Counting().layout).keys[0]
    assert (told(found)["total"], len(found) < 20) == (140, True)


places = st.lists(st.integers(0, 120), min_size=1, max_size=8)


@examples(1 / 2)
@given(first=st.integers(40, 100), changes=st.lists(places, min_size=1, max_size=6), edges=st.integers(0, 60))
def test_whatever_happens_between_reading_and_writing_a_read_is_the_fold(redis_server, first, changes, edges):
    name, merge = f"levels-{next(numbers)}", Interrupted()
    with RedisStore(redis_server.url, namespace=name) as one, RedisStore(redis_server.url, namespace=name) as other:
        one.fold_with({SET: merge})
        other.fold_with({SET: Counting()})
        applied = [row(place) for place in range(first)]
        put(one, *applied)
        left = list(changes)

        def meanwhile():
            if left:
                made = [row(place, n=len(left), version=next(numbers)) for place in left.pop()]
                applied.extend(made)
                put(other, *made)
                if len(left) % 2:
                    other.compact(40)

        merge.between = meanwhile
        for _ in range(20):
            one.compact(60)
            other.compact(60)
            tiles, _ = fold(applied)
            wanted = sum(int(each.partials[11:-1]) for each in tiles.values() if each.tile >= edges * GRAIN)
            assert total(one, edges * GRAIN, 9_000) == wanted


def test_of_two_that_fold_the_same_tiles_into_a_base_one_does(redis_server):
    name, merge = f"levels-{next(numbers)}", Interrupted(keep=500, base="b")
    with RedisStore(redis_server.url, namespace=name) as one, RedisStore(redis_server.url, namespace=name) as other:
        one.fold_with({SET: merge})
        other.fold_with({SET: Counting(keep=500, base="b")})
        put(one, *(row(place) for place in range(100)), ProgressRow(SET, "1", {}, 1_000))

        def meanwhile():
            while other.expire():
                pass

        merge.once(meanwhile)
        while one.expire():
            pass
        found = one.read(SET, [KEY], [Band(EVER, 9_000, 9)], layout=merge.layout).keys[0]
        assert (told(found)["total"], one.stats().tiles) == (100, 50)
