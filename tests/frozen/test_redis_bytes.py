"""The bytes of the Redis store: every key of its namespace with all that it holds, after a fixed list of rows."""

from __future__ import annotations

import itertools

import pytest
import redis

from headrace.store import RedisStore
from headrace.store.redis import levels as redis_levels
from tests.frozen.stored_rows import fill, forget_old_tiles
from tests.store.server import Server


@pytest.fixture(scope="module")
def server():
    started = Server()
    started.start()
    yield started
    started.close()


@pytest.fixture
def client(server, monkeypatch):
    """An empty Redis, in which the claims of whoever makes level rows have numbers instead of random names."""
    numbers = itertools.count(1)
    monkeypatch.setattr(redis_levels, "token_bytes", lambda size: next(numbers).to_bytes(size, "big"))
    made = redis.Redis(unix_socket_path=str(server.socket))
    made.flushall()
    yield made
    made.close()


def list_contents(client):
    """Every key, its type, and its members in the order of their bytes."""
    lines = []
    for key in sorted(client.keys()):
        kind = client.type(key)
        match kind:
            case b"string":
                held = [client.get(key)]
            case b"hash":
                held = [field + b" = " + value for field, value in sorted(client.hgetall(key).items())]
            case b"zset":
                held = client.zrange(key, 0, -1)
        lines += [f"{kind.decode()} {key.hex()} {member.hex()}" for member in held]
    return "\n".join(lines)


def test_tiles_levels_and_words_about_runs_have_the_bytes_they_had(golden, server, client):
    with RedisStore(server.url, namespace="shop") as store:
        fill(store)
        assert store.stats().levels > 0
    golden("frozen/redis", list_contents(client))


def test_a_base_and_what_it_leaves_have_the_bytes_they_had(golden, server, client):
    with RedisStore(server.url, namespace="shop") as store:
        fill(store)
        forget_old_tiles(store)
    golden("frozen/redis_after_expiry", list_contents(client))
