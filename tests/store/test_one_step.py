"""Rows and the position they lead to are one step, also when the store fails, or its process dies, in between."""

from __future__ import annotations

import contextlib

import pytest
import redis

from headrace.errors import HeadraceError
from headrace.store import LmdbStore, RedisStore
from headrace.store.lmdb.meta import Meta
from headrace.store.lmdb.write import Changing
from headrace.store.redis.client import RedisClient
from headrace.store.redis.rows import RedisNames
from headrace.tiles.changelog import TileRow
from headrace.tiles.identity import prefix_of
from tests.store.rows import TOPIC

KEY, OTHER = ("42",), ("7",)


class DiedError(Exception):
    """What stands for a SIGKILL."""


def row(key=KEY):
    return TileRow("aa11", "r1", key, 0, "on_time", 1, b'{"count_1":1}')


def after(work):
    """A function that does the work and then dies."""

    def done_and_dead(*given):
        work(*given)
        raise DiedError

    return done_and_dead


@pytest.fixture
def redis_store(redis_server, namespace):
    with RedisStore(redis_server.url, namespace=namespace) as store:
        yield store


@pytest.mark.parametrize(("owner", "step"), [(Changing, "apply"), (Meta, "move")])
def test_an_lmdb_store_that_dies_during_a_batch_has_neither_rows_nor_position(tmp_path, monkeypatch, owner, step):
    with LmdbStore(tmp_path) as store:
        store.apply([row()], TOPIC, {0: 1})
        with monkeypatch.context() as patched:
            patched.setattr(owner, step, after(getattr(owner, step)))
            with contextlib.suppress(DiedError):
                store.apply([row(OTHER)], TOPIC, {0: 2})
    with LmdbStore(tmp_path) as store:
        assert (store.position(TOPIC), store.stats().tiles) == ({0: 1}, 1)


def test_a_redis_that_fails_at_a_row_has_not_moved_its_position(redis_store, redis_server, namespace):
    redis_store.apply([row()], TOPIC, {0: 1})
    names = RedisNames(namespace)
    with redis.Redis(unix_socket_path=str(redis_server.socket)) as client:
        client.set(names.tiles(prefix_of("aa11", "r1", OTHER)), "no sorted set")
    with pytest.raises(HeadraceError):
        redis_store.apply([row(OTHER)], TOPIC, {0: 2})
    assert redis_store.position(TOPIC) == {0: 1}


def test_a_process_that_dies_after_its_command_to_redis_has_moved_rows_and_position(
    redis_store, redis_server, namespace, monkeypatch
):
    with monkeypatch.context() as patched:
        patched.setattr(RedisClient, "script", after(RedisClient.script))
        with contextlib.suppress(DiedError):
            redis_store.apply([row()], TOPIC, {0: 1})
    with RedisStore(redis_server.url, namespace=namespace) as store:
        assert (store.position(TOPIC), store.stats().tiles) == ({0: 1}, 1)
