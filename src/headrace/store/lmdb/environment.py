"""One LMDB environment: opened, grown on demand, shared by processes, with its errors as Headrace's.

One process writes and holds `writer.lock` while it does; any number read. A map that has become too small is doubled
and the transaction tried again. Files that are not what they were, or gone, are `store-damaged`, found before a page is
touched that is not there, because that would kill the process; what to do about it is `damage`'s business. Nothing here
knows what is stored.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import lmdb

from headrace.disk import HINT, has_room, is_full, reserve
from headrace.errors import DiskFullError, HeadraceError, MachineError
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.files import FileLock
from headrace.plural import show_count
from headrace.store.row_bytes import DamagedError, sealed, unsealed

Seen = TypeVar("Seen")
FORMAT = b"3"
FIRST_SIZE = 4 * 1024 * 1024 * 1024
"""Of the map: addresses, neither memory nor disk. Whatever meets its end is done again."""
DATA = "data.mdb"
LOCK, LOCK_BYTES, READERS = "lock.mdb", 20 * 1024, 256
"""LMDB maps the file in which readers are listed, 64 bytes for each; with what else is in it, it takes 17 KiB."""

_DAMAGE = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.PanicError,
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
    lmdb.CursorFullError,
    lmdb.IncompatibleError,
    lmdb.BadTxnError,
    lmdb.NotFoundError,
)


class Environment:
    """The two tables of a store, `tiles` and `meta`, and transactions over them."""

    def __init__(
        self, folder: Path, *, readonly: bool, map_size: int = FIRST_SIZE, faults: FaultPoints = NO_FAULTS
    ) -> None:
        self.folder, self._faults = folder, faults
        # Reading transactions of this process; the map cannot be grown under one.
        self._readers = threading.RLock()
        self._held: Any = None
        if readonly and not (folder / DATA).exists():
            hint = "Start serving, which fills it: `headrace up` or `headrace run serve`."
            raise MachineError("store-failed", "There is no store.", hint=hint, where=str(folder))
        _reserve_lock(folder, readonly=readonly)
        with self.translated():
            self._env = _opened(folder, readonly=readonly, map_size=map_size)
        try:
            self._file = os.stat(folder / DATA)
            self.check()
            with self.translated():
                self.tiles, self.meta = self._tables(readonly=readonly)
            self._check_format()
        except BaseException:
            self._env.close()
            raise

    def _tables(self, *, readonly: bool) -> tuple[Any, Any]:
        # Readers that were killed would keep old pages from being used again.
        self._env.reader_check()
        if readonly:
            return self._env.open_db(b"tiles", create=False), self._env.open_db(b"meta", create=False)
        tiles, meta = self._env.open_db(b"tiles"), self._env.open_db(b"meta")
        with self._env.begin(write=True, db=meta) as transaction:
            transaction.put(b"format", FORMAT, overwrite=False)
        return tiles, meta

    def _check_format(self) -> None:
        with self.reading() as transaction:
            found = transaction.get(b"format", db=self.meta)
        if found != FORMAT:
            hint = "Delete the folder: the store is filled again from the changelog."
            message = "The store was written in a format this version does not know."
            raise HeadraceError("store-format", message, got=repr(found), hint=hint, where=str(self.folder))

    def check(self) -> None:
        """Refuse files that were deleted, replaced or cut off since they were opened.

        What LMDB has mapped goes on to be readable after the file is deleted, and kills the process that touches it
        after the file is cut off.
        """
        where = str(self.folder)
        try:
            now = os.stat(self.folder / DATA)
        except OSError as error:
            raise DamagedError("The store's files are gone.", got=str(error), where=where) from error
        if (now.st_ino, now.st_dev) != (self._file.st_ino, self._file.st_dev):
            raise DamagedError("The store's files were replaced by others.", where=where)
        page = self._env.stat()["psize"] if now.st_size else 1
        needed = (self._env.info()["last_pgno"] + 1) * page if now.st_size >= 2 * page else 2 * page
        if now.st_size < needed:
            got = f"{show_count(now.st_size, 'byte')} of {needed}"
            raise DamagedError("The store's file was cut off.", got=got, where=where)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Any]:
        """A consistent view of what has been committed, also by other processes."""
        with self._readers:
            if self._held is not None:
                yield self._held
                return
            with self.translated(), self._begun() as transaction:
                yield transaction

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """While entered, everything that is read is of one such view; other threads that read wait."""
        with self.reading() as transaction:
            self._held = transaction
            try:
                yield
            finally:
                self._held = None

    def look(self, work: Callable[[Any], Seen]) -> Seen:
        """What `work` finds in such a view; for reads that are so short that to enter and to leave it counts."""
        try:
            with self._readers:
                if self._held is not None:
                    return work(self._held)
                with self._begun() as transaction:
                    return work(transaction)
        except lmdb.Error as error:
            raise self._translated(error) from error

    def _begun(self) -> Any:
        try:
            return self._env.begin()
        except lmdb.MapResizedError:
            # The writer has grown the map: take over its size.
            self._env.set_mapsize(0)
            return self._env.begin()

    def write(self, work: Callable[[Any], None]) -> None:
        """Run `work` in a transaction: all of it is kept, or none; it is run again when the map had to grow."""
        with self.translated():
            while True:
                try:
                    with self._env.begin(write=True) as transaction:
                        work(transaction)
                        self._faults.reach("store.commit.before")
                    self._faults.reach("store.commit.after")
                    return
                except lmdb.MapFullError:
                    with self._readers:
                        self._env.set_mapsize(2 * self._env.info()["map_size"])

    def empty(self, transaction: Any) -> None:
        """Remove everything."""
        transaction.drop(self.tiles, delete=False)
        transaction.drop(self.meta, delete=False)
        transaction.put(b"format", FORMAT, db=self.meta)

    def noted(self, transaction: Any, name: bytes) -> bytes | None:
        """What the table `meta` holds under a name."""
        found = transaction.get(name, db=self.meta)
        return None if found is None else unsealed(name, found)

    def note(self, transaction: Any, name: bytes, value: bytes) -> None:
        """Put a value into the table `meta`."""
        transaction.put(name, sealed(name, value), db=self.meta)

    def close(self) -> None:
        """Close the files."""
        with self._readers:
            self._env.close()

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Errors of LMDB's as Headrace's."""
        try:
            yield
        except lmdb.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: lmdb.Error) -> HeadraceError:
        got, where = f"{type(error).__name__}: {error}", str(self.folder)
        # A commit of which only a part found room is an error of input and output to LMDB.
        short = not isinstance(error, _DAMAGE) and not has_room(self.folder)
        if is_full(error) or short:
            message, hint = "The store cannot grow: its disk is full or its quota used up.", f"{HINT} Reads go on."
            return DiskFullError("disk-full", message, got=got, hint=hint, where=where)
        # Where a full disk has kept LMDB from ending a commit, it takes no more until it is opened again: no damage.
        if isinstance(error, _DAMAGE) and not (isinstance(error, lmdb.PanicError) and not has_room(self.folder)):
            return DamagedError("The store's files are not what was written.", got=got, where=where)
        hint = "Look at the disk, its quota and the folder's permissions; the store can be deleted and filled again."
        message = "The store's files cannot be used."
        return MachineError("store-failed", message, got=got, hint=hint, where=where)


def lock_writer(folder: Path) -> FileLock:
    """The right to write to a folder, until it is closed or the process dies."""
    lock = FileLock(folder / "writer.lock")
    if lock.try_acquire():
        return lock
    lock.close()
    hint = "Stop the other process, or give this one a data folder of its own."
    raise HeadraceError("store-locked", "Another process writes to the store.", hint=hint, where=str(folder))


def _reserve_lock(folder: Path, *, readonly: bool) -> None:
    """Give the list of readers its place on the disk before it is mapped."""
    try:
        if not readonly:
            folder.mkdir(parents=True, exist_ok=True)
        reserve(folder / LOCK, LOCK_BYTES)
    except PermissionError:
        # Who may not write the list reads without being in it.
        if not readonly:
            raise
    except OSError as error:
        if not is_full(error):
            raise
        message = "The store cannot be opened: its disk is full or its quota used up."
        raise DiskFullError("disk-full", message, got=str(error), hint=HINT, where=str(folder)) from error


def _opened(folder: Path, *, readonly: bool, map_size: int) -> Any:
    # Without metasync a machine that loses power may lose the last transaction, tiles and position together; nothing
    # is torn, and the changelog still has it.
    return lmdb.open(
        str(folder),
        map_size=map_size,
        max_dbs=2,
        readonly=readonly,
        create=not readonly,
        metasync=False,
        max_readers=READERS,
    )
