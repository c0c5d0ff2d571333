"""The LMDB store after a crash: it holds what the changelog says up to the store's own position, and goes on there.

The live run fills a store, merges its tiles, removes old ones, closes it, empties it on demand, and begins it anew
where it was found damaged.
"""

from __future__ import annotations

import pytest

from headrace.faults import NO_FAULTS
from headrace.log import EmbeddedLog, Message
from headrace.store import LmdbStore, Materialiser, damage
from headrace.testing import FakeClock
from headrace.tiles.changelog import ProgressRow, TileRow
from headrace.tiles.changelog_format import encode
from headrace.tiles.levels import EVER, Band
from tests.faults.image import CrashImages, at_each_point
from tests.store.folds import GRAIN, Counting, told
from tests.store.rows import TOPIC, fold

SET, KEYS, KEEP = "aa11", (("42",), ("7",)), 500
WIDTH = 24
"""Tiles of a key in one slice of the changelog."""
FOLD = {"keep": KEEP, "base": "b"}


def tile(key, place, version=1):
    n = place if version == 1 else 1_000 + place
    return TileRow(SET, "1", key, place * GRAIN, "on_time", version, b'{"count_1":%d}' % n)


def slice_of(number):
    """Some tiles of every key, one of them twice, and how far the run has come by then."""
    first, end = number * WIDTH, (number + 1) * WIDTH
    tiles = [tile(key, place) for place in range(first, end) for key in KEYS]
    return [*tiles, tile(KEYS[0], end - 2, version=2), ProgressRow(SET, "1", {0: end}, end * GRAIN)]


SLICES = [slice_of(number) for number in range(4)]
ROWS = [row for part in SLICES for row in part]


class World:
    """A changelog and a store, opened; what is filled by one that ended is gone on with."""

    def __init__(self, folder):
        self.folder = folder / "store"
        self.log = EmbeddedLog(folder / "log", clock=FakeClock(0))
        self.log.create_topic(TOPIC, compacted=True)

    def append(self, part):
        encoded = [encode(row, ("card",) if isinstance(row, TileRow) else ()) for row in part]
        self.log.append_batch(TOPIC, [Message(value, key) for key, value in encoded])

    def store(self, faults=NO_FAULTS, *, mend=True):
        made = LmdbStore(self.folder, mend=mend, faults=faults)
        made.fold_with({SET: Counting(**FOLD)})
        return made

    def fill(self, store):
        """Take in what the changelog has, merge what is to be merged and remove what is old."""
        filler = Materialiser(self.log, store, [TOPIC])
        while filler.step():
            pass
        while store.compact():
            pass
        while store.expire():
            pass


def held(store):
    """Of every key, what all its tiles come to."""
    found = store.read(SET, list(KEYS), [Band(EVER, 10_000, 99)], layout=Counting(**FOLD).layout)
    return [None if pieces is None else told(pieces) for pieces in found.keys]


def meant(rows):
    """The same from the rows themselves."""
    found = []
    for key in KEYS:
        mine = sorted((row.tile, row) for row in fold(rows)[0].values() if row.key == key)
        numbers = [(row.tile, row.version, row.tile // GRAIN) for _, row in mine]
        total = sum(place if version == 1 else 1_000 + place for _, version, place in numbers)
        tiles = {str(start): 1 for start, _, _ in numbers}
        found.append({"total": total, "tiles": tiles} if mine else None)
    return found


def is_right(store):
    """Whether a store holds what the changelog has before its position: neither less nor more."""
    return held(store) == meant(ROWS[: store.position(TOPIC).get(0, 0)])


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder, appended, asked = tmp_path_factory.mktemp("store"), 0, False
    made = CrashImages(folder / "world", folder / "images", "store", known=lambda: (appended, asked))
    world = World(folder / "world")
    store = world.store(made)
    for part in SLICES[:3]:
        world.append(part)
        appended += 1
        world.fill(store)
    assert store.stats().levels > 0, "nothing was merged"
    assert store.stats().tiles < 3 * WIDTH * len(KEYS), "nothing was removed"
    store.close()
    store = world.store(made)
    damage.ask_to_rebuild(world.folder)
    asked = True
    store.check()
    asked = False
    world.fill(store)
    store.close()
    damage.mark(world.folder, "a page is not what was written")
    with world.store(made) as begun_anew:
        assert begun_anew.position(TOPIC) == {}
        world.fill(begun_anew)
        assert is_right(begun_anew)
    return made


@at_each_point("store")
def test_tiles_and_position_agree_and_the_rest_is_filled_in(images, name):
    for taken in images.of(name):
        world, (appended, asked) = World(taken.folder), taken.known
        # Looking at every row takes a process of its own: once for each point is enough.
        with world.store(mend=taken.turn == 0 or name == "store.aside.after") as store:
            assert is_right(store), taken
            begun_anew = store.position(TOPIC) == {}
            assert begun_anew or name != "store.aside.after", "files are used that were found damaged"
            assert begun_anew or not asked or damage.asked_to_rebuild(world.folder), "the demand to empty it is lost"
            store.check()
            assert not damage.asked_to_rebuild(world.folder), taken
            assert is_right(store), taken
            for part in SLICES[appended:]:
                world.append(part)
            world.fill(store)
            assert store.position(TOPIC) == {0: len(ROWS)}, taken
            assert held(store) == meant(ROWS), taken
