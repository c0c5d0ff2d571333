"""One LMDB environment: opened, grown on demand, shared by processes, with its errors as Headrace's.

One process writes and holds `writer.lock` while it does; any number read. A map that has become too small is doubled
and the transaction tried again. Nothing here knows what is stored.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb

from headrace.errors import HeadraceError, MachineError

FORMAT = b"2"
FIRST_SIZE = 64 * 1024 * 1024


class Environment:
    """The two tables of a store, `tiles` and `meta`, and transactions over them."""

    def __init__(self, folder: Path, *, readonly: bool, map_size: int = FIRST_SIZE) -> None:
        self.folder = folder
        self._lock: int | None = None
        # Reading transactions of this process; the map cannot be grown under one.
        self._readers = threading.Lock()
        if not readonly:
            self._lock = _locked(folder)
        try:
            with self._translated():
                self._env, self.tiles, self.meta = _opened(folder, readonly=readonly, map_size=map_size)
        except BaseException:
            self._unlock()
            raise
        self._check_format()

    def _check_format(self) -> None:
        with self.reading() as transaction:
            found = transaction.get(b"format", db=self.meta)
        if found != FORMAT:
            self.close()
            hint = "Delete the folder: the store is filled again from the changelog."
            message = "The store was written in a format this version does not know."
            raise HeadraceError("store-format", message, got=repr(found), hint=hint, where=str(self.folder))

    @contextlib.contextmanager
    def reading(self) -> Iterator[Any]:
        """A consistent view of what has been committed, also by other processes."""
        with self._readers, self._translated():
            try:
                transaction = self._env.begin()
            except lmdb.MapResizedError:
                # The writer has grown the map: take over its size.
                self._env.set_mapsize(0)
                transaction = self._env.begin()
            with transaction:
                yield transaction

    def write(self, work: Callable[[Any], None]) -> None:
        """Run `work` in a transaction: all of it is kept, or none; it is run again when the map had to grow."""
        with self._translated():
            while True:
                try:
                    with self._env.begin(write=True) as transaction:
                        work(transaction)
                    return
                except lmdb.MapFullError:
                    with self._readers:
                        self._env.set_mapsize(2 * self._env.info()["map_size"])

    def close(self) -> None:
        """Close the files and give the right to write back."""
        with self._readers:
            self._env.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except lmdb.Error as error:
            hint = (
                "Look at the disk, its quota and the folder's permissions; the store can be deleted and filled again."
            )
            message = "The store's files cannot be used."
            got = f"{type(error).__name__}: {error}"
            raise MachineError("store-failed", message, got=got, hint=hint, where=str(self.folder)) from error


def _locked(folder: Path) -> int:
    """The right to write, until the descriptor is closed or the process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / "writer.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        hint = "Stop the other process, or give this one a data folder of its own."
        message = "Another process writes to the store."
        raise HeadraceError("store-locked", message, hint=hint, where=str(folder)) from None
    return descriptor


def _opened(folder: Path, *, readonly: bool, map_size: int) -> tuple[Any, Any, Any]:
    # Without metasync a machine that loses power may lose the last transaction, tiles and position together; nothing
    # is torn, and the changelog still has it.
    env = lmdb.open(
        str(folder),
        map_size=map_size,
        max_dbs=2,
        readonly=readonly,
        create=not readonly,
        metasync=False,
        max_readers=256,
    )
    try:
        # Readers that were killed would keep old pages from being used again.
        env.reader_check()
        if readonly:
            return env, env.open_db(b"tiles", create=False), env.open_db(b"meta", create=False)
        tiles, meta = env.open_db(b"tiles"), env.open_db(b"meta")
        with env.begin(write=True, db=meta) as transaction:
            transaction.put(b"format", FORMAT, overwrite=False)
        return env, tiles, meta
    except BaseException:
        env.close()
        raise
