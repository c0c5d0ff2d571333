"""A connection to Redis: bounded in time, made again by itself, with its errors as Headrace's and no password in them.

Nothing here knows what is stored; `redis` does. The package `redis` comes with an extra and is loaded when it is used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headrace.errors import ConfigError, MachineError

if TYPE_CHECKING:
    import redis

CONNECT = 1.0
"""Seconds to wait for a connection."""

ANSWER = 2.0
"""Seconds to wait for an answer."""

AGAIN = 2
"""How often a command is tried again whose connection broke; one that was too slow is not."""


class RedisClient:
    """Commands to one Redis.

    Examples
    --------
    >>> RedisClient("redis://ada:open-sesame@127.0.0.1:1/3").address
    'redis://127.0.0.1:1/3'
    """

    def __init__(self, url: str) -> None:
        require()
        self._client, self.address = _client(url)

    def call(self, *command: Any) -> Any:
        """The answer to one command."""
        with self._translated():
            return self._client.execute_command(*command)  # type: ignore[no-untyped-call]

    def script(self, text: str, keys: list[bytes], arguments: list[Any]) -> Any:
        """What a script returns; Redis is sent its text only when it does not know it."""
        with self._translated():
            return self._client.register_script(text)(keys, arguments)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        from redis.exceptions import AuthenticationError, ConnectionError, RedisError, TimeoutError

        try:
            yield
        except (ConnectionError, TimeoutError) as error:
            refused = isinstance(error, AuthenticationError)
            message = "Redis refuses who asks." if refused else "Redis cannot be reached."
            hint = "Set `store.url` to a user and password that it knows." if refused else _UNREACHABLE
            raise MachineError("store-unreachable", message, got=self._got(error), hint=hint) from error
        except RedisError as error:
            message = "Redis cannot do what the store asks of it."
            hint = "Look at its memory limit, its disk, and whether it is a read-only replica or a cluster."
            raise MachineError("store-failed", message, got=self._got(error), hint=hint) from error
        except TypeError:
            # An option in the address that no connection knows; its name may be half of a password.
            raise _bad_address() from None

    def _got(self, error: Exception) -> str:
        return f"{self.address}: {error}"


_UNREACHABLE = "See that it runs and that `store.url` is its address."


def require() -> None:
    """Refuse to go on without the package that speaks to Redis."""
    try:
        import redis  # noqa: F401
    except ImportError:
        hint = "Install it: `pip install 'headrace[redis]'`."
        message = "The store is Redis, and the package redis is not installed."
        raise MachineError("missing-package", message, hint=hint) from None


def _client(url: str) -> tuple[redis.Redis, str]:
    """A client, and its address as it may be shown."""
    import redis
    from redis.backoff import ExponentialWithJitterBackoff
    from redis.exceptions import ConnectionError
    from redis.retry import Retry

    try:
        pool = redis.ConnectionPool.from_url(url)
    except ValueError:
        # What is wrong with an address may be its password: not a word of it.
        raise _bad_address() from None
    given = pool.connection_kwargs
    given |= {
        "socket_connect_timeout": CONNECT,
        "socket_timeout": ANSWER,
        "decode_responses": False,
        "retry": Retry(ExponentialWithJitterBackoff(cap=0.1, base=0.01), AGAIN, supported_errors=(ConnectionError,)),
    }
    scheme, number = url.partition(":")[0], given.get("db", 0)
    if "path" in given:
        return redis.Redis(connection_pool=pool), f"unix://{given['path']}?db={number}"
    host, port = given.get("host", "localhost"), given.get("port", 6379)
    return redis.Redis(connection_pool=pool), f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/{number}"


def _bad_address() -> ConfigError:
    hint = "Write redis://host:port/number, rediss://... for TLS, or unix:///path; escape a password's /, @ and #."
    return ConfigError("bad-setting", "The address of Redis cannot be understood.", hint=hint, where="store.url")
