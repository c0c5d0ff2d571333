"""Every store the conformance suite runs on, each able to be closed and opened again."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from headrace.store import LmdbStore, MemoryStore, Store


class Shelf:
    """A store and the way to open it again after its process is gone."""

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self.store: Store = MemoryStore() if folder is None else LmdbStore(folder, map_size=1 << 16)

    def reopen(self) -> None:
        """Memory has no after; a file is closed and opened."""
        if self.folder is not None:
            self.store.close()
            self.store = LmdbStore(self.folder, map_size=1 << 16)


@contextlib.contextmanager
def memory() -> Iterator[Shelf]:
    yield Shelf(None)


@contextlib.contextmanager
def lmdb() -> Iterator[Shelf]:
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(folder)
        try:
            yield shelf
        finally:
            shelf.store.close()


@pytest.fixture(params=[memory, lmdb], ids=["memory", "lmdb"], scope="module")
def shelves(request: pytest.FixtureRequest) -> Callable[[], AbstractContextManager[Shelf]]:
    """Makes a fresh store; a property needs one for each example."""
    made: Callable[[], AbstractContextManager[Shelf]] = request.param
    return made


@pytest.fixture
def store(shelves: Callable[[], AbstractContextManager[Shelf]]) -> Iterator[Store]:
    with shelves() as shelf:
        yield shelf.store
