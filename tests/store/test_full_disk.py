"""A store whose disk is full: it reads on, waits, takes what comes when there is room, and is not taken for damaged."""

from __future__ import annotations

import subprocess
import sys
import threading

import lmdb
import pytest

from headrace.errors import DiskFullError, HeadraceError, MachineError
from headrace.log import EmbeddedLog, MemoryLog, Message
from headrace.store import LmdbStore, Materialiser, MemoryStore
from headrace.store import materializer as module
from headrace.store.lmdb import environment as environments
from headrace.tiles.changelog import ProgressRow, TileRow
from headrace.tiles.changelog_format import encode
from tests.small_disk import is_mountable, small_disk

TOPIC = "changelog.cards"
FULL = lmdb.DiskError("mdb_txn_commit: No space left on device")
SHORT = lmdb.Error("mdb_txn_commit: Input/output error")


def row(n, version=1, size=10):
    return TileRow("aa11", "r1", (f"k{n}",), 0, "on_time", version, b'{"count_1":"%s"}' % (b"1" * size))


def put(log, *rows, partition=None):
    pairs = (encode(each, ("card",) if isinstance(each, TileRow) else ()) for each in rows)
    log.append_batch(TOPIC, [Message(value, key) for key, value in pairs], partition=partition)


def fail(error):
    raise error


class SmallStore(MemoryStore):
    """A store that refuses everything while a test says so."""

    def __init__(self):
        super().__init__()
        self.full, self.marks = 0, []

    def refuse(self):
        if self.full:
            self.full -= 1
            raise DiskFullError("disk-full", "The store cannot grow.")

    def apply(self, rows, topic, positions):
        self.refuse()
        super().apply(rows, topic, positions)

    def mark_filling(self, filling):
        self.refuse()
        self.marks.append(filling)
        super().mark_filling(filling)


@pytest.fixture
def log():
    made = MemoryLog()
    made.create_topic(TOPIC, partitions=2, compacted=True)
    return made


def followed(filler, log, monkeypatch):
    """Fold until everything of the log is in the store."""
    stop = threading.Event()
    monkeypatch.setattr(module, "AWAY", 0.001)
    thread = threading.Thread(target=filler.run, args=(stop,))
    thread.start()
    try:
        while filler.lag() or not filler.caught_up:
            assert thread.is_alive()
            stop.wait(0.002)
    finally:
        stop.set()
        thread.join(20)


def test_what_fills_a_store_waits_for_space_and_then_nothing_is_missing_or_doubled(log, monkeypatch, caplog):
    store = SmallStore()
    put(log, *(row(n) for n in range(5)), ProgressRow("aa11", "r1", {0: 2}, 7))
    store.full = 6
    filler = Materialiser(log, store, [TOPIC])
    followed(filler, log, monkeypatch)
    assert (store.stats().tiles, store.position(TOPIC)) == (5, log.end_offsets(TOPIC))
    assert filler.counts["tiles"] == 5
    assert store.marks == [True, False]
    said = [record.message.splitlines()[0] for record in caplog.records]
    assert said == ["waiting for the store: The store cannot grow.", "the store takes tiles again"]


def test_a_store_whose_filling_ended_on_a_full_disk_says_so_when_there_is_room(log, monkeypatch):
    store = SmallStore()
    put(log, row(1))
    filler = Materialiser(log, store, [TOPIC])
    apply = store.apply

    def filled(*given):
        apply(*given)
        store.full = 2

    monkeypatch.setattr(store, "apply", filled)
    followed(filler, log, monkeypatch)
    assert store.marks == [True, False]


def test_a_read_that_fails_half_way_skips_nothing(log, monkeypatch):
    put(log, row(1), partition=0)
    put(log, row(2), partition=1)
    store, read, failures = MemoryStore(), log.read, [DiskFullError("log-full", "The log cannot be opened.")]

    def failing(topic, partition, offset, **more):
        if partition == 1 and failures:
            raise failures.pop()
        return read(topic, partition, offset, **more)

    filler = Materialiser(log, store, [TOPIC])
    filler.step()
    put(log, row(3), partition=0)
    put(log, row(4), partition=1)
    monkeypatch.setattr(log, "read", failing)
    followed(filler, log, monkeypatch)
    assert store.stats().tiles == 4


# files


@pytest.mark.parametrize(("error", "room"), [(FULL, True), (FULL, False), (SHORT, False)])
def test_a_commit_without_room_is_no_damage_and_the_next_one_is_kept(tmp_path, monkeypatch, error, room):
    with LmdbStore(tmp_path) as store:
        store.apply([row(1)], TOPIC, {0: 1})
        monkeypatch.setattr(environments, "has_room", lambda _: room)
        with pytest.raises(DiskFullError) as refused:
            store._env.write(lambda _: fail(error))
        assert (refused.value.code, refused.value.where) == ("disk-full", str(tmp_path))
        assert store.position(TOPIC) == {0: 1}
        store.check()
        store.apply([row(2)], TOPIC, {0: 2})
    with LmdbStore(tmp_path, mend=True) as store:
        assert (store.stats().tiles, store.position(TOPIC)) == (2, {0: 2})


@pytest.mark.parametrize(("room", "code"), [(False, "store-failed"), (True, "store-damaged")])
def test_lmdb_gives_up_without_room_and_only_otherwise_that_is_damage(tmp_path, monkeypatch, room, code):
    with LmdbStore(tmp_path) as store:
        store.apply([row(1)], TOPIC, {0: 1})
        monkeypatch.setattr(environments, "has_room", lambda _: room)
        with pytest.raises(HeadraceError) as refused:
            store._write(lambda _: fail(lmdb.PanicError("mdb_txn_begin: MDB_PANIC")))
        assert refused.value.code == code
        assert (tmp_path / "damaged").exists() == room


def test_a_store_that_cannot_be_looked_at_for_want_of_room_is_not_set_aside(tmp_path, monkeypatch):
    with LmdbStore(tmp_path) as store:
        store.apply([row(1)], TOPIC, {0: 1})
    (tmp_path / "closed").unlink()
    ended = subprocess.CompletedProcess([], DiskFullError.exit_code, "", "The store cannot be opened.")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: ended)
    with pytest.raises(DiskFullError):
        LmdbStore(tmp_path, mend=True)
    assert not (tmp_path / "aside").exists()


def test_levels_that_were_due_stay_due_when_a_store_cannot_be_emptied(tmp_path, monkeypatch):
    with LmdbStore(tmp_path) as store:
        store._due = {b"key": "aa11"}
        with monkeypatch.context() as patched:
            patched.setattr(store, "_write", lambda _: fail(DiskFullError("disk-full", "The store cannot grow.")))
            with pytest.raises(MachineError):
                store.clear()
        assert store._due == {b"key": "aa11"}
        store._due.clear()


OPENED = """
import sys
from headrace.errors import DiskFullError
from headrace.store import LmdbStore
try:
    LmdbStore(sys.argv[1])
except DiskFullError as error:
    print(error.code)
"""


@pytest.mark.skipif(not is_mountable(), reason="a disk can be mounted by root alone")
def test_on_a_full_disk_a_store_reads_on_a_new_one_is_refused_and_everything_is_there_after(tmp_path, monkeypatch):
    with small_disk(tmp_path, 8) as disk, EmbeddedLog(tmp_path / "log") as log, LmdbStore(tmp_path / "store") as store:
        log.create_topic(TOPIC, compacted=True)
        filler = Materialiser(log, store, [TOPIC])
        put(log, *(row(n) for n in range(100)))
        filler.step()
        put(log, *(row(n, size=1_000) for n in range(100, 600)))
        disk.fill()
        for _ in range(3):
            with pytest.raises(DiskFullError):
                filler.step()
        assert [tile.version for tile in store.tiles("aa11", "r1", ("k7",))] == [1]
        store.check()
        # Where its files had no room, the process that opens it would be killed.
        command = [sys.executable, "-c", OPENED, str(tmp_path / "other")]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "disk-full\n"
        with pytest.raises(DiskFullError):
            put(log, row(0, size=100_000))
        disk.free()
        followed(filler, log, monkeypatch)
        assert (store.stats().tiles, store.position(TOPIC)) == (600, {0: 600})
