"""What only a store in Redis can show: one command a read, replicas that share it, and a Redis that comes and goes."""

from __future__ import annotations

import signal
import sys
import time

import pytest
import redis

from headrace.errors import HeadraceError
from headrace.log import MemoryLog, Message
from headrace.store import Materialiser, RedisStore
from headrace.store.redis import client as redis_client
from headrace.store.redis.expire import RedisSweep
from headrace.store.redis.rows import RedisNames
from headrace.tiles.changelog import Gone, TileRow
from headrace.tiles.changelog_format import encode
from headrace.tiles.identity import prefix_of
from tests.store.folds import Counting
from tests.store.rows import TOPIC
from tests.store.server import Server
from tests.test_imports import loaded

SECRET = "open-sesame"


def row(key=("42",), n=0, version=1, tile=0):
    return TileRow("aa11", "r1", key, tile, "on_time", version, b'{"count_1":%d}' % n)


def partials(store, key=("42",)):
    return [held.partials for held in store.tiles("aa11", "r1", key)]


@pytest.fixture
def store(redis_server, namespace):
    with RedisStore(redis_server.url, namespace=namespace) as store:
        yield store


@pytest.fixture
def other(redis_server, namespace):
    """Another replica over the same store."""
    with RedisStore(redis_server.url, namespace=namespace) as store:
        yield store


@pytest.fixture
def client(redis_server):
    with redis.Redis(unix_socket_path=str(redis_server.socket)) as client:
        yield client


@pytest.fixture
def own_server():
    """A Redis that may be stopped."""
    server = Server()
    server.start()
    yield server
    server.close()


@pytest.mark.parametrize("question", ["tiles", "holds"])
def test_a_key_is_read_in_one_command_whatever_it_holds(store, client, question):
    store.apply([row(tile=tile, n=tile) for tile in range(500)], TOPIC, {0: 500})
    before = client.info("stats")["total_commands_processed"]
    assert getattr(store, question)("aa11", "r1", ("42",))
    # The other one is the asking itself.
    assert client.info("stats")["total_commands_processed"] - before == 1 + 1


def test_of_a_key_only_the_asked_range_is_sent(store, client):
    store.apply([row(tile=tile) for tile in range(10_000)], TOPIC, {0: 10_000})
    before = client.info("stats")["total_net_output_bytes"]
    assert len(store.tiles("aa11", "r1", ("42",), 9_000, 9_003)) == 3
    assert client.info("stats")["total_net_output_bytes"] - before < 20_000


@pytest.mark.parametrize("version", [2**53, 2**62, 2**63 - 2, -(2**63), -1, 2**32 - 1])
def test_versions_are_told_apart_to_the_last_bit(store, version):
    store.apply([row(version=version + 1, n=1)], TOPIC, {0: 1})
    store.apply([row(version=version, n=0)], TOPIC, {0: 2})
    assert partials(store) == [b'{"count_1":1}']
    store.apply([row(version=version + 1, n=2)], TOPIC, {0: 3})
    assert partials(store) == [b'{"count_1":2}']


def test_the_bytes_told_are_those_of_the_rows_that_are_there(store):
    store.apply([row(n=1), row(("7",), n=2)], TOPIC, {0: 2})
    told = store.stats().bytes
    store.apply([row(n=123456, version=2)], TOPIC, {0: 3})
    assert store.stats().bytes == told + 5
    store.apply([Gone("aa11", "r1", (key,), 0, "on_time") for key in ("42", "7")], TOPIC, {0: 5})
    assert store.stats().bytes == 0


def test_stores_of_two_namespaces_in_one_redis_know_nothing_of_each_other(redis_server, store, namespace):
    store.apply([row(n=1)], TOPIC, {0: 1})
    with RedisStore(redis_server.url, namespace=f"{namespace}x") as neighbour:
        assert (partials(neighbour), neighbour.position(TOPIC), neighbour.stats().tiles) == ([], {}, 0)


def test_a_batch_of_a_replica_that_is_behind_is_refused_and_undoes_nothing(store, other):
    assert (store.position(TOPIC), other.position(TOPIC)) == ({}, {})
    store.apply([row(n=1), Gone("aa11", "r1", ("42",), 0, "on_time"), row(n=2)], TOPIC, {0: 3})
    with pytest.raises(HeadraceError) as refused:
        other.apply([row(n=1), Gone("aa11", "r1", ("42",), 0, "on_time")], TOPIC, {0: 2})
    assert refused.value.code == "store-moved"
    assert (partials(store), store.position(TOPIC)) == ([b'{"count_1":2}'], {0: 3})


def test_a_replica_that_was_refused_goes_on_where_the_store_is(store, other):
    assert (store.position(TOPIC), other.position(TOPIC)) == ({}, {})
    store.apply([row(n=1)], TOPIC, {0: 1})
    with pytest.raises(HeadraceError, match="moved the store on"):
        other.apply([row(n=1)], TOPIC, {0: 1})
    assert other.position(TOPIC) == {0: 1}
    other.apply([row(n=2, version=2)], TOPIC, {0: 2})
    assert partials(store) == [b'{"count_1":2}']


def test_looking_at_the_position_in_between_lends_nobody_the_right_to_undo(store, other):
    # A monitor asks for the lag while its materialiser has a batch in hand.
    store.position(TOPIC)
    other.apply([row(n=2, version=1)], TOPIC, {0: 2})
    assert store.position(TOPIC) == {0: 2}
    with pytest.raises(HeadraceError, match="moved the store on"):
        store.apply([row(n=1, version=1)], TOPIC, {0: 1})


def test_a_script_that_redis_has_forgotten_is_sent_again(store, client):
    store.apply([row(n=1)], TOPIC, {0: 1})
    client.script_flush()
    store.apply([row(n=2)], TOPIC, {0: 2})
    assert partials(store) == [b'{"count_1":2}']


def test_a_redis_that_is_full_keeps_nothing_of_a_batch_and_says_so(store, client):
    client.config_set("maxmemory", 1)
    try:
        with pytest.raises(HeadraceError) as refused:
            store.apply([row(n=1), row(("7",), n=2)], TOPIC, {0: 2})
    finally:
        client.config_set("maxmemory", 0)
    assert (refused.value.code, "memory limit" in str(refused.value.hint)) == ("store-failed", True)
    assert (store.position(TOPIC), store.stats().tiles, partials(store)) == ({}, 0, [])


def test_a_store_of_another_format_is_refused_when_it_is_opened_and_when_it_is_written_to(
    redis_server, store, client, namespace
):
    client.hset(f"{namespace}:counts:", "format", "0")
    with pytest.raises(HeadraceError) as opened:
        RedisStore(redis_server.url, namespace=namespace)
    with pytest.raises(HeadraceError) as written:
        store.apply([row()], TOPIC, {0: 1})
    assert (opened.value.code, written.value.code, partials(store)) == ("store-format", "store-format", [])


def test_a_redis_that_went_away_is_named_and_used_again_when_it_is_back(own_server):
    with RedisStore(own_server.url) as store:
        store.apply([row(n=1)], TOPIC, {0: 1})
        own_server.stop()
        for ask in (lambda: partials(store), lambda: store.apply([row()], TOPIC, {0: 2}), store.stats):
            with pytest.raises(HeadraceError) as refused:
                ask()
            assert (refused.value.code, refused.value.http_status) == ("store-unreachable", 503)
            assert refused.value.got.startswith(f"unix://{own_server.socket}?db=0")
        own_server.start()
        assert partials(store) == []
        store.apply([row(n=3)], TOPIC, {0: 3})
        assert partials(store) == [b'{"count_1":3}']


def test_a_redis_that_lost_its_memory_is_filled_again_from_the_start(own_server):
    log = MemoryLog()
    log.create_topic(TOPIC, compacted=True)

    def put(n):
        key, value = encode(row((f"k{n}",), n=n), ("card",))
        log.append_batch(TOPIC, [Message(value, key)])

    with RedisStore(own_server.url) as store:
        filler = Materialiser(log, store, [TOPIC])
        put(1)
        filler.step()
        own_server.stop()
        put(2)
        with pytest.raises(HeadraceError, match="cannot be reached"):
            filler.step()
        own_server.start()
        while filler.step():
            pass
        assert (partials(store, ("k1",)), partials(store, ("k2",))) == ([b'{"count_1":1}'], [b'{"count_1":2}'])
        own_server.stop()
        own_server.start()
        put(3)
        while filler.step():
            pass
        assert (store.stats().tiles, store.position(TOPIC)) == (3, {0: 3})


def test_a_redis_that_hangs_is_not_waited_for_and_used_again_when_it_goes_on(own_server, monkeypatch):
    monkeypatch.setattr(redis_client, "ANSWER", 0.2)
    with RedisStore(own_server.url) as store:
        store.apply([row(n=1)], TOPIC, {0: 1})
        own_server.process.send_signal(signal.SIGSTOP)
        try:
            started = time.monotonic()
            with pytest.raises(HeadraceError, match="cannot be reached"):
                partials(store)
            assert time.monotonic() - started < 5
        finally:
            own_server.process.send_signal(signal.SIGCONT)
        assert partials(store) == [b'{"count_1":1}']


def test_a_password_opens_redis_and_is_never_shown():
    server = Server("--requirepass", SECRET)
    server.start()
    try:
        with RedisStore(f"unix://:{SECRET}@{server.socket}") as store:
            assert store.stats().tiles == 0
            assert SECRET not in repr(vars(store)) + repr(vars(store._client))
            server.stop()
            with pytest.raises(HeadraceError) as gone:
                store.stats()
        server.start()
        with pytest.raises(HeadraceError) as refused:
            RedisStore(f"unix://:{SECRET}-not@{server.socket}")
    finally:
        server.close()
    assert (refused.value.code, refused.value.message) == ("store-unreachable", "Redis refuses who asks.")
    assert SECRET not in _everything(refused.value) + _everything(gone.value)


@pytest.mark.parametrize(
    "url",
    [
        f"http://:{SECRET}@here",
        f"redis://:{SECRET}/with-a-slash@here:6379",
        f"redis://:{SECRET}@here:port",
        f"redis://here?{SECRET}=1",
        f"redis://here?db={SECRET}",
        SECRET,
        "",
    ],
)
def test_an_address_that_cannot_be_understood_is_refused_without_a_word_of_it(url):
    with pytest.raises(HeadraceError) as refused:
        RedisStore(url)
    assert (refused.value.code, refused.value.where) == ("bad-setting", "store.url")
    assert SECRET not in _everything(refused.value)


def _everything(error: BaseException) -> str:
    """All that a log could show of an error and of what led to it."""
    shown, cause = f"{error} {error.args}", error.__cause__
    if isinstance(error, HeadraceError):
        shown += str(error.as_json())
    return shown if cause is None else shown + _everything(cause)


def test_an_address_is_shown_with_host_port_and_number():
    assert redis_client.RedisClient(f"rediss://ada:{SECRET}@[::1]:7000/2").address == "rediss://[::1]:7000/2"
    assert redis_client.RedisClient(f"redis://here?password={SECRET}").address == "redis://here:6379/0"


def test_without_the_package_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(HeadraceError) as refused:
        RedisStore("redis://here")
    assert (refused.value.code, "pip install 'headrace[redis]'" in str(refused.value.hint)) == ("missing-package", True)


def test_the_package_is_loaded_only_when_a_store_in_redis_is_opened():
    assert "redis" not in loaded("import headrace.store, headrace.serve.server")


def test_a_key_without_old_tiles_is_looked_through_once_when_tiles_expire():
    asked = []

    class Client:
        def call(self, *command):
            asked.append(command)
            assert len(asked) == 1, "it was looked through already"
            return []

    sweep = RedisSweep(Client(), RedisNames("shop"))
    assert sweep._old(prefix_of("aa11", "r1", ("42",)), 0, Counting()) == []
