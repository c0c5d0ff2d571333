"""One topic's SQLite file: connections, the one writer at a time, and errors in Headrace's words.

SQLite in WAL mode was chosen by measurement over segment files with CRC framing: its log file is overwritten in place,
so a commit with fsync costs half of an fsync on a growing file, readers never block, and a torn write is cut by its
own checksums. Writers queue on a kernel file lock instead of SQLite's sleeping retries. `synchronous=FULL`: a commit
is on disk before it becomes visible, and visible before it returns. Local disks only.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

from headrace.disk import HINT, has_room
from headrace.errors import DiskFullError, MachineError
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.files import FileLock

BUSY_SECONDS = 30.0
CHECKPOINT_PAGES = 500
"""Small, so that the write-ahead log soon stops growing: an fsync of a file that grows costs half as much again."""

FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE")
"""What SQLite says of a full disk, and of a quota or a limit on the size of files."""
WITHOUT_ROOM = ("SQLITE_IOERR", "SQLITE_CANTOPEN")
"""What it says as well when the disk is full, of the files beside a topic's own, which it makes and removes again."""

_open: weakref.WeakSet[Database] = weakref.WeakSet()
_abandoned: list[list[sqlite3.Connection]] = []


class Database:
    """Connections to one file: a pool for reading, one for writing."""

    def __init__(self, path: Path, faults: FaultPoints = NO_FAULTS) -> None:
        self.path, self._faults = path, faults
        self._readers: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._mutex = threading.Lock()
        self._lock = FileLock(lock_path(path))
        self._closed = False
        _open.add(self)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading, in one snapshot of the file."""
        with translated(self.path):
            connection = self._readers.pop() if self._readers else connect(self.path)
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")
                self._give_back(connection)

    @contextlib.contextmanager
    def watching(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading without a snapshot, so that `PRAGMA data_version` moves."""
        with translated(self.path):
            connection = self._readers.pop() if self._readers else connect(self.path)
            try:
                yield connection
            finally:
                self._give_back(connection)

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The one writer of all threads and processes: all of the block is kept and on disk at its end, or none."""
        with self._mutex, self._lock.hold(), translated(self.path):
            if self._writer is None:
                self._writer = connect(self.path)
            connection = self._writer
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                self._faults.reach("log.commit.before")
                connection.execute("COMMIT")
            except BaseException:
                # A connection that met a full disk is not trusted again: closing it drops what was not committed.
                self._writer = None
                connection.close()
                raise
            self._faults.reach("log.commit.after")

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if self._closed:
            connection.close()
        else:
            self._readers.append(connection)

    def close(self) -> None:
        """Close every connection; the last one of all processes folds the write-ahead log into the file."""
        with self._mutex:
            if self._closed:
                return
            self._closed = True
            for connection in [*self._readers, *filter(None, [self._writer])]:
                connection.close()
            self._readers, self._writer = [], None
            self._lock.close()
            _open.discard(self)

    def forget(self) -> None:
        """After a fork, in the child: SQLite connections must be neither used nor closed there.

        The inherited lock file is closed, or a parent killed in an append would stay locked through its child.
        """
        _abandoned.append([*self._readers, *filter(None, [self._writer])])
        self._readers, self._writer, self._mutex = [], None, threading.Lock()
        self._lock.close()
        self._lock = FileLock(lock_path(self.path))


def _forget_all() -> None:
    for database in list(_open):
        database.forget()


os.register_at_fork(after_in_child=_forget_all)


def lock_path(path: Path) -> Path:
    """The file whose lock is the right to write `path`."""
    return path.with_name(path.name + "-lock")


def connect(path: Path) -> sqlite3.Connection:
    """A connection to an existing file, autocommitting, durable."""
    connection = sqlite3.connect(
        f"file:{_quoted(path)}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
    return connection


def _quoted(path: Path) -> str:
    from urllib.parse import quote

    return quote(str(path.absolute()))


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """SQLite's errors as Headrace's."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", None) or type(error).__name__
        got = f"{name}: {error}"
        if name in FULL or (name.startswith(WITHOUT_ROOM) and not has_room(path.parent)):
            what = "grow" if name in FULL else "be opened"
            message = f"The log cannot {what}: its disk is full or its quota used up."
            hint = f"{HINT} Every record acknowledged so far is safe."
            raise DiskFullError("log-full", message, got=got, hint=hint, where=str(path)) from error
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            hint = "Restore the file, or delete it with its -wal and -shm files and rebuild from the lake."
            raise MachineError(
                "log-corrupt", "The log's file is damaged.", got=got, hint=hint, where=str(path)
            ) from error
        hint = "Look at the disk, its quota and the file's permissions; nothing of this operation was kept."
        raise MachineError(
            "log-failed", "The log's file cannot be used.", got=got, hint=hint, where=str(path)
        ) from error
