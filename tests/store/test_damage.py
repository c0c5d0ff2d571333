"""Files and values that are not what was written: an error or a store that begins anew, and never a wrong number."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time

import lmdb
import pytest

from headrace.errors import HeadraceError
from headrace.log import MemoryLog, Message
from headrace.store import LmdbStore, Materialiser, RedisStore, damage, materializer
from headrace.store.row_bytes import DamagedError
from headrace.tiles.changelog import ProgressRow, TileRow
from headrace.tiles.changelog_format import encode
from headrace.tiles.levels import Band
from tests.store.folds import GRAIN, Counting, told
from tests.store.rows import TOPIC

SET, KEY = "aa11", ("42",)


def row(place=0, n=1, key=KEY):
    return TileRow(SET, "1", key, place * GRAIN, "on_time", 1, b'{"count_1":%d}' % n)


def filled(store, places=100):
    store.fold_with({SET: Counting()})
    store.apply([*(row(place) for place in range(places)), ProgressRow(SET, "1", {0: 1}, 7)], TOPIC, {0: places})
    while store.compact():
        pass
    return store


def total(store):
    found = store.read(SET, [KEY], [Band(0, 9_000, 99)], layout=Counting().layout)
    return told(found.keys[0])["total"]


@pytest.mark.parametrize(("how", "count"), [("cut", 20), ("over", 120)])
def test_a_file_damaged_anywhere_is_refused_or_begun_anew_and_never_read_wrong(tmp_path, how, count):
    command = [sys.executable, "-m", "tests.store.damaging", str(tmp_path), how, str(count), "130"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    outcomes = json.loads(done.stdout)
    assert "wrong" not in outcomes, done.stderr
    assert outcomes["refused"] >= count // 4
    assert outcomes["filled again"]


def everything(store):
    bands = [Band(0, 40, 1)]
    return store.read(SET, [KEY], bands, layout=Counting().layout), store.tiles(SET, "1", KEY), store.position(TOPIC)


@pytest.fixture
def harmed(tmp_path):
    """A store with one value changed behind its back."""

    def harm(*, table=b"tiles", part=b"on_time", change=lambda data: data[:-1] + bytes([data[-1] ^ 1])):
        filled(LmdbStore(tmp_path)).close()
        with lmdb.open(str(tmp_path), max_dbs=2) as env:
            opened = env.open_db(table)
            with env.begin(write=True, db=opened) as transaction:
                identity, data = next((key, data) for key, data in transaction.cursor() if part in key)
                transaction.put(identity, change(data))
        return tmp_path

    return harm


@pytest.mark.parametrize(
    ("table", "part"),
    [
        (b"tiles", b"on_time"),
        (b"tiles", b"\x01}"),
        (b"meta", b"position"),
        (b"meta", b"progress"),
        (b"meta", b"layout"),
    ],
    ids=["tile", "level row", "position", "progress", "layout"],
)
def test_a_value_that_was_changed_is_an_error_and_noted(harmed, table, part):
    folder = harmed(table=table, part=part)
    with LmdbStore(folder, readonly=True) as store, pytest.raises(HeadraceError) as refused:
        everything(store)
    assert (refused.value.code, refused.value.http_status, refused.value.exit_code) == ("store-damaged", 503, 1)
    assert "is not the one that was written" in (folder / "damaged").read_text()


def test_a_value_in_the_place_of_another_is_an_error(harmed):
    folder = harmed(change=bytes)
    with lmdb.open(str(folder), max_dbs=2) as env:
        opened = env.open_db(b"tiles")
        with env.begin(write=True, db=opened) as transaction:
            (one, _), (_, other) = [(key, data) for key, data in transaction.cursor() if b"on_time" in key][:2]
            transaction.put(one, other)
    with LmdbStore(folder, readonly=True) as store, pytest.raises(HeadraceError) as refused:
        store.tiles(SET, "1", KEY)
    assert refused.value.code == "store-damaged"


def test_a_store_that_was_found_damaged_begins_anew_and_keeps_the_old_files_aside(harmed, caplog):
    folder = harmed()
    with LmdbStore(folder, readonly=True) as store, pytest.raises(HeadraceError):
        store.tiles(SET, "1", KEY)
    with LmdbStore(folder, mend=True) as store:
        assert (store.position(TOPIC), store.stats().tiles) == ({}, 0)
        assert total(filled(store)) == 100
    assert "begins anew and is filled from the changelog" in caplog.text
    assert (folder / "aside" / "data.mdb").exists()
    assert not (folder / "damaged").exists()


def test_damage_that_nobody_has_met_yet_is_found_at_the_next_start(harmed):
    with LmdbStore(harmed(), mend=True) as store:
        assert store.position(TOPIC) == {}


def test_a_store_that_was_closed_is_opened_without_a_look_at_its_rows(tmp_path, monkeypatch):
    filled(LmdbStore(tmp_path)).close()
    monkeypatch.setattr(damage, "_check_in_process", lambda _: pytest.fail("it was looked at"))
    with LmdbStore(tmp_path, mend=True) as store:
        assert total(store) == 100


def test_a_store_whose_process_was_killed_is_looked_at_and_used_on(tmp_path):
    code = (
        "import os, sys; from tests.store.test_damage import LmdbStore, filled; "
        "filled(LmdbStore(sys.argv[1])); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 9
    assert damage.check_rows(tmp_path) > 100
    with LmdbStore(tmp_path, mend=True) as store:
        assert (total(store), store.position(TOPIC)) == (100, {0: 100})


def test_a_store_of_another_format_begins_anew_when_it_may(tmp_path):
    filled(LmdbStore(tmp_path)).close()
    with lmdb.open(str(tmp_path), max_dbs=2) as env, env.begin(write=True, db=env.open_db(b"meta")) as transaction:
        transaction.put(b"format", b"0")
    with LmdbStore(tmp_path, mend=True) as store:
        assert store.stats().tiles == 0


@pytest.mark.parametrize("how", ["deleted", "replaced", "cut off", "emptied"])
def test_files_that_are_taken_from_under_a_store_are_noticed(tmp_path, how):
    folder = tmp_path / "store"
    store = filled(LmdbStore(folder))
    store.check()
    match how:
        case "deleted":
            shutil.rmtree(folder)
        case "replaced":
            shutil.copy(folder / "data.mdb", tmp_path / "other")
            os.replace(tmp_path / "other", folder / "data.mdb")
        case "cut off":
            os.truncate(folder / "data.mdb", 12_288)
        case "emptied":
            os.truncate(folder / "data.mdb", 0)
    with pytest.raises(HeadraceError) as refused:
        store.check()
    assert refused.value.code == "store-damaged"
    assert (folder / "damaged").exists() or how == "deleted"


def put(log, *rows):
    pairs = [encode(each, ("card",) if isinstance(each, TileRow) else ()) for each in rows]
    log.append_batch(TOPIC, [Message(value, key) for key, value in pairs])


@pytest.fixture
def running(monkeypatch):
    """A materialiser in a thread, until the test is over."""
    monkeypatch.setattr(materializer, "AWAY", 0.05)
    stop, failures, threads = threading.Event(), [], []

    def run(log, store):
        def work():
            try:
                Materialiser(log, store, [TOPIC]).run(stop)
            except BaseException as error:
                failures.append(error)

        threads.append(threading.Thread(target=work))
        threads[-1].start()
        return failures

    yield run
    stop.set()
    for thread in threads:
        thread.join(20)


def until(condition):
    deadline = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    return found


@pytest.fixture
def log():
    log = MemoryLog()
    log.create_topic(TOPIC, compacted=True)
    put(log, *(row(place) for place in range(100)), ProgressRow(SET, "1", {0: 1}, 7))
    return log


def test_a_materialiser_ends_when_somebody_has_met_damage(tmp_path, running, log):
    with LmdbStore(tmp_path) as store:
        failures = running(log, store)
        until(lambda: store.stats().tiles == 100)
        with pytest.raises(HeadraceError), store._guarded():
            raise DamagedError("A reader met it.")
        assert until(lambda: failures)[0].code == "store-damaged"


def test_a_materialiser_ends_when_a_process_that_only_reads_has_met_damage(tmp_path, running, log):
    with LmdbStore(tmp_path) as store:
        failures = running(log, store)
        until(lambda: store.stats().tiles == 100)
        damage.mark(tmp_path, "A reader met it.")
        assert (until(lambda: failures)[0].code, failures[0].got) == ("store-damaged", "A reader met it.")


def test_a_store_that_is_asked_to_is_emptied_and_filled_again(tmp_path, running, log, caplog):
    with LmdbStore(tmp_path) as store:
        failures = running(log, store)
        until(lambda: store.position(TOPIC) == {0: 101})
        put(log, row(500))
        until(lambda: store.position(TOPIC) == {0: 102})
        damage.ask_to_rebuild(tmp_path)
        until(lambda: not damage.asked_to_rebuild(tmp_path))
        until(lambda: store.position(TOPIC) == {0: 102})
        assert (store.stats().tiles, failures) == (101, [])
    assert "the store was emptied, and is filled again" in caplog.text


def test_a_store_in_redis_that_is_emptied_is_filled_again(redis_server, namespace, running, log):
    with RedisStore(redis_server.url, namespace=namespace) as store:
        failures = running(log, store)
        until(lambda: store.position(TOPIC) == {0: 101})
        with RedisStore(redis_server.url, namespace=namespace) as other:
            other.clear()
        put(log, row(500))
        until(lambda: store.position(TOPIC) == {0: 102})
        assert (store.stats().tiles, failures) == (101, [])


def test_a_damaged_value_in_redis_is_an_error_and_the_next_start_empties_the_store(redis_server, namespace):
    import redis

    with RedisStore(redis_server.url, namespace=namespace) as store:
        filled(store, 5)
        with redis.Redis(unix_socket_path=str(redis_server.socket)) as client:
            (name,) = client.keys(f"{namespace}:tiles:*")
            member = client.zrange(name, 0, 0)[0]
            client.zrem(name, member)
            client.zadd(name, {member[:-1] + bytes([member[-1] ^ 1]): 0})
        with RedisStore(redis_server.url, namespace=namespace) as other:
            other.check()
            for ask in (lambda: total(store), lambda: store.tiles(SET, "1", KEY), store.check, other.check):
                with pytest.raises(HeadraceError) as refused:
                    ask()
                assert refused.value.code == "store-damaged"
    with RedisStore(redis_server.url, namespace=namespace, mend=True) as store:
        assert (store.position(TOPIC), store.stats().tiles) == ({}, 0)
        assert total(filled(store, 5)) == 5
        store.check()


def test_what_runs_have_said_is_sealed_in_redis_too(redis_server, namespace):
    import redis

    with RedisStore(redis_server.url, namespace=namespace) as store:
        filled(store, 5)
        with redis.Redis(unix_socket_path=str(redis_server.socket)) as client:
            said = client.hget(f"{namespace}:progress:{SET}", "1")
            client.hset(f"{namespace}:progress:{SET}", "1", said[:-1] + b"\x09")
        with pytest.raises(HeadraceError, match="not the one that was written"):
            store.progress(SET)


def test_an_answer_says_that_it_knows_nothing_while_an_empty_store_is_being_filled(store, log, monkeypatch):
    monkeypatch.setattr(materializer, "BATCH", 60)
    monkeypatch.setattr(LmdbStore, "bulk", 1)
    filler = Materialiser(log, store, [TOPIC])
    assert filler.step() == 60
    assert store.read(SET, [KEY], [Band(0, 10, 0)], run="1").filling
    while filler.step():
        pass
    assert not store.read(SET, [KEY], [Band(0, 10, 0)], run="1").filling
    put(log, row(600))
    filler.step()
    assert not store.read(SET, [KEY], [Band(0, 10, 0)], run="1").filling
