"""Every store the conformance suite runs on, each able to be closed and opened again."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from headrace.store import LmdbStore, MemoryStore, RedisStore, Store
from tests.store.server import Server


class Shelf:
    """A store and the way to open it again after its process is gone; memory has no after."""

    def __init__(self, opened: Callable[[], Store], *, lasts: bool = True) -> None:
        self._opened, self._lasts = opened, lasts
        self.store = opened()

    def reopen(self) -> None:
        if self._lasts:
            self.store.close()
            self.store = self._opened()


@contextlib.contextmanager
def shelf(opened: Callable[[], Store], *, lasts: bool = True) -> Iterator[Shelf]:
    made = Shelf(opened, lasts=lasts)
    try:
        yield made
    finally:
        made.store.close()


def memory() -> AbstractContextManager[Shelf]:
    return shelf(MemoryStore, lasts=False)


@contextlib.contextmanager
def lmdb() -> Iterator[Shelf]:
    with tempfile.TemporaryDirectory() as folder, shelf(lambda: LmdbStore(folder, map_size=1 << 16)) as made:
        yield made


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Server]:
    """One Redis for all tests; a store in it has a namespace of its own."""
    server = Server()
    server.start()
    yield server
    server.close()


_numbers = itertools.count()


@pytest.fixture
def namespace() -> str:
    return f"test-{next(_numbers)}"


@pytest.fixture(params=["memory", "lmdb", "redis"], scope="module")
def shelves(request: pytest.FixtureRequest) -> Callable[[], AbstractContextManager[Shelf]]:
    """Makes a fresh store; a property needs one for each example."""
    if request.param != "redis":
        return {"memory": memory, "lmdb": lmdb}[request.param]
    # Asked for here, so that nothing is started for the others alone.
    server: Server = request.getfixturevalue("redis_server")

    def redis() -> AbstractContextManager[Shelf]:
        name = f"test-{next(_numbers)}"
        return shelf(lambda: RedisStore(server.url, namespace=name))

    return redis


@pytest.fixture
def store(shelves: Callable[[], AbstractContextManager[Shelf]]) -> Iterator[Store]:
    with shelves() as made:
        yield made.store
