"""The removal of a whole store from Redis, beside processes that use it."""

from __future__ import annotations

from headrace.store.redis.client import RedisClient
from headrace.store.redis.rows import RedisNames, literal


def empty(client: RedisClient, names: RedisNames) -> None:
    """Remove everything of a store, whatever its format; nobody reads or fills it while that lasts."""
    cursor = 0
    client.call("HSET", names.counts, "emptying", 1)
    while True:
        cursor, found = client.call("SCAN", cursor, "MATCH", literal(names.all) + b"*", "COUNT", 1_000)
        gone = [key for key in found if key != names.counts]
        if gone:
            client.call("UNLINK", *gone)
        if not int(cursor):
            break
    client.call("DEL", names.counts)
