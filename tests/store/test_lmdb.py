"""What only a store in files can show: growth, long keys, several processes, and death at any moment."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from headrace.errors import HeadraceError
from headrace.log import EmbeddedLog, Message
from headrace.store import LmdbStore, Materialiser
from headrace.tiles import identity
from headrace.tiles.changelog import ProgressRow, TileRow
from headrace.tiles.changelog_format import encode
from tests.store.rows import KEYS, LONG_KEYS, RUNS, SETS, TILES, TOPIC, contents, fold


def row(key=("42",), n=0, version=1, tile=0, size=0):
    return TileRow("aa11", "r1", key, tile, "on_time", version, b'{"sketch_1":"%s"}' % (b"A" * size or b"%d" % n))


def tiles_of(store, key=("42",)):
    return [held.partials for held in store.tiles("aa11", "r1", key)]


def test_the_map_grows_when_it_is_full_and_nothing_is_lost(tmp_path):
    with LmdbStore(tmp_path, map_size=1 << 16) as store:
        for batch in range(20):
            store.apply([row((f"k{batch}-{n}",), size=1_000) for n in range(100)], TOPIC, {0: 100 * (batch + 1)})
        assert (store.stats().tiles, store.position(TOPIC)) == (2_000, {0: 2_000})
        assert store.stats().bytes > 2_000_000


def test_a_reader_in_another_process_sees_what_is_committed_also_after_growth(tmp_path):
    with LmdbStore(tmp_path, map_size=1 << 16) as store:
        store.apply([row(n=1)], TOPIC, {0: 1})
        reader = subprocess.Popen(
            [sys.executable, "-c", _READER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert _asked(reader) == "1 1"
        store.apply([row((f"k{n}",), size=5_000) for n in range(500)], TOPIC, {0: 501})
        store.apply([row(n=2, version=2)], TOPIC, {0: 502})
        assert _asked(reader) == "501 2"
        reader.communicate()


_READER = """
import sys
from headrace.store import LmdbStore
with LmdbStore(sys.argv[1], readonly=True, map_size=1 << 16) as store:
    for _ in sys.stdin:
        print(store.stats().tiles, store.tiles("aa11", "r1", ("42",))[0].version, flush=True)
"""


def _asked(reader):
    reader.stdin.write("\n")
    reader.stdin.flush()
    return reader.stdout.readline().strip()


def test_a_second_writer_is_refused_until_the_first_is_gone(tmp_path):
    with LmdbStore(tmp_path):
        tried = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys; from headrace.store import LmdbStore; LmdbStore(sys.argv[1])",
                tmp_path,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "code: store-locked" in tried.stderr
    LmdbStore(tmp_path).close()


def test_a_reader_of_a_store_that_is_not_there_is_told_so(tmp_path):
    with pytest.raises(HeadraceError) as refused:
        LmdbStore(tmp_path / "nothing", readonly=True)
    assert refused.value.code == "store-failed"


def test_a_store_of_another_format_is_refused_with_a_way_out(tmp_path):
    LmdbStore(tmp_path).close()
    import lmdb

    with lmdb.open(str(tmp_path), max_dbs=2) as env, env.begin(write=True, db=env.open_db(b"meta")) as transaction:
        transaction.put(b"format", b"0")
    with pytest.raises(HeadraceError) as refused:
        LmdbStore(tmp_path)
    assert (refused.value.code, "Delete the folder" in str(refused.value.hint)) == ("store-format", True)


def test_two_long_keys_of_one_digest_are_never_taken_for_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr(identity, "digest", lambda prefix: b"\0" * 32)
    one, other = ("x" * 600,), ("y" * 600,)
    with LmdbStore(tmp_path) as store:
        store.apply([row(one, n=1)], TOPIC, {0: 1})
        assert (tiles_of(store, one), tiles_of(store, other)) == ([b'{"sketch_1":"1"}'], [])
        assert (store.holds("aa11", "r1", one), store.holds("aa11", "r1", other)) == (True, False)
        with pytest.raises(HeadraceError, match="one digest"):
            store.apply([row(other, n=2)], TOPIC, {0: 2})
        assert (tiles_of(store, one), store.position(TOPIC)) == ([b'{"sketch_1":"1"}'], {0: 1})


def test_readers_go_on_while_the_map_grows_under_them(tmp_path):
    with LmdbStore(tmp_path, map_size=1 << 16) as store:
        store.apply([row(n=1)], TOPIC, {0: 1})
        stop, seen, failures = threading.Event(), [], []

        def read():
            try:
                while not stop.is_set():
                    seen.append(tiles_of(store))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for batch in range(30):
            store.apply([row((f"k{batch}-{n}",), size=2_000) for n in range(50)], TOPIC, {0: batch})
        stop.set()
        for thread in threads:
            thread.join(10)
        assert failures == []
        assert {tuple(found) for found in seen} == {(b'{"sketch_1":"1"}',)}


def test_a_materialiser_killed_again_and_again_ends_in_the_plain_fold(tmp_path):
    draws = random.Random(3)
    keys = KEYS + LONG_KEYS
    given = [
        ProgressRow(draws.choice(SETS), draws.choice(RUNS), {0: n}, n)
        if draws.random() < 0.05
        else TileRow(
            draws.choice(SETS),
            draws.choice(RUNS),
            draws.choice(keys),
            draws.choice(TILES),
            draws.choice(["on_time", "late"]),
            draws.randrange(50),
            b'{"count_1":%d}' % n,
        )
        for n in range(6_000)
    ]
    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic(TOPIC, compacted=True)
        pairs = (encode(each, tuple("ab"[: len(getattr(each, "key", ()))])) for each in given)
        log.append_batch(TOPIC, [Message(value, key) for key, value in pairs])
        reached = _killed_until_done(tmp_path, len(given), draws)
        assert len(reached) >= 3, "it was never killed half way"
        with LmdbStore(tmp_path / "store") as store:
            Materialiser(log, store, [TOPIC]).step()
            assert store.position(TOPIC) == {0: len(given)}
            assert contents(store) == fold(given)


def _killed_until_done(folder: Path, end: int, draws: random.Random) -> list[int]:
    """The positions at which a filling process died."""
    reached: list[int] = []
    command = [sys.executable, "-m", "tests.store.processes", str(folder / "log"), str(folder / "store"), "40"]
    while not reached or reached[-1] < end:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        with LmdbStore(folder / "store", readonly=True) as watched:
            wanted = min(end, (reached[-1] if reached else 0) + draws.randrange(200, 1_500))
            deadline = time.monotonic() + 30
            while watched.position(TOPIC).get(0, 0) < wanted and time.monotonic() < deadline:
                pass
            process.send_signal(signal.SIGKILL)
            process.communicate()
            reached.append(watched.position(TOPIC)[0])
    return reached
