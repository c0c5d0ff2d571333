"""A partition's frames as rows of one SQLite table per partition, so that every insert is at the end of its tree.

No second index: frames are ordered by offset and by arrival time at once, so a time, or a running total of bytes, is
found by bisection over the primary key.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from headrace.errors import MachineError
from headrace.log.embedded.frame import SPARSE, Frame, offsets_of
from headrace.log.read_slice import OffsetSpan
from headrace.log.topic import Topic

FORMAT = 1
_FRAME = "base, next, arrived_at, count, flags, crc, body"


class End(NamedTuple):
    """The end of a partition: next offset, last arrival time, running total of bytes."""

    offset: int
    arrived_at: int
    bytes: int


def create(connection: sqlite3.Connection, topic: Topic) -> None:
    """The tables of a topic, inside the caller's transaction."""
    connection.execute(f"PRAGMA user_version={FORMAT}")
    connection.execute("CREATE TABLE topic (form BLOB NOT NULL)")
    connection.execute(
        "CREATE TABLE part (partition INTEGER PRIMARY KEY, start INTEGER NOT NULL, compacted INTEGER NOT NULL,"
        " due INTEGER)"
    )
    connection.execute(
        'CREATE TABLE position (name TEXT, partition INTEGER, "offset" INTEGER NOT NULL, PRIMARY KEY (name, partition))'
        " WITHOUT ROWID"
    )
    for partition in range(topic.partitions):
        connection.execute("INSERT INTO part VALUES (?, 0, 0, NULL)", (partition,))
        connection.execute(
            f"CREATE TABLE frame_{partition} (base INTEGER PRIMARY KEY, next INTEGER NOT NULL,"
            " arrived_at INTEGER NOT NULL, count INTEGER NOT NULL, bytes INTEGER NOT NULL, flags INTEGER NOT NULL,"
            " crc INTEGER NOT NULL, body BLOB NOT NULL)"
        )


def end(connection: sqlite3.Connection, partition: int) -> End:
    """The end of a partition."""
    row = connection.execute(
        f"SELECT next, arrived_at, bytes FROM frame_{partition} ORDER BY base DESC LIMIT 1"
    ).fetchone()
    return End(*row) if row else End(0, 0, 0)


class PartitionEnds:
    """The ends of a topic's partitions as somebody waits for them; they are looked for when the file has changed."""

    def __init__(self, connection: sqlite3.Connection, positions: Mapping[int, int]) -> None:
        self._connection, self._positions = connection, positions
        self._version: int | None = None

    def passed(self) -> dict[int, int]:
        """The positions at or past which their partition has a record."""
        seen = self._connection.execute("PRAGMA data_version").fetchone()[0]
        if seen == self._version:
            return {}
        self._version = seen
        held = self._positions.items()
        return {number: offset for number, offset in held if end(self._connection, number).offset > offset}


def start(connection: sqlite3.Connection, partition: int) -> int:
    """The first offset retention has left."""
    found: int = connection.execute("SELECT start FROM part WHERE partition = ?", (partition,)).fetchone()[0]
    return found


def insert(connection: sqlite3.Connection, partition: int, frame: Frame, total: int) -> None:
    """Add a frame; `total` is the running total of bytes including it."""
    connection.execute(
        f"INSERT INTO frame_{partition} VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (frame.base, frame.next, frame.arrived_at, frame.count, total, frame.flags, frame.crc, frame.body),
    )


def scan(connection: sqlite3.Connection, partition: int, offset: int) -> Iterator[Frame]:
    """Frames with something at or past `offset`, in order, each checked against its CRC."""
    table = f"frame_{partition}"
    rows = connection.execute(
        f"SELECT {_FRAME} FROM {table}"
        f" WHERE base >= coalesce((SELECT max(base) FROM {table} WHERE base <= ?), ?) ORDER BY base",
        (offset, offset),
    )
    try:
        for row in rows:
            frame = Frame(*row)
            if frame.next > offset and frame.count:
                if not frame.sound:
                    where = f"partition {partition}, offsets {frame.base} to {frame.next - 1}"
                    raise MachineError("log-corrupt", "A frame of the log is not as it was written.", where=where)
                yield frame
    finally:
        rows.close()


def spans(connection: sqlite3.Connection, partition: int, offset: int, limit: int) -> list[OffsetSpan]:
    """The arrival times of the offsets from `offset` on, without reading a body."""
    table = f"frame_{partition}"
    rows = connection.execute(
        f"SELECT arrived_at, {partition}, base, next FROM {table}"
        f" WHERE base >= coalesce((SELECT max(base) FROM {table} WHERE base <= ?), ?) AND next > ? AND count > 0"
        " ORDER BY base LIMIT ?",
        (offset, offset, offset, limit),
    )
    return [OffsetSpan(*row) for row in rows]


def bisect(
    connection: sqlite3.Connection, partition: int, column: Literal["arrived_at", "bytes"], bound: int
) -> int | None:
    """The base of the first frame whose `column` is at least `bound`; None if there is none.

    Both columns never go down from frame to frame.
    """
    table = f"frame_{partition}"
    low, high = connection.execute(f"SELECT min(base), max(base) FROM {table}").fetchone()
    if low is None or _at(connection, table, column, high)[1] < bound:
        return None
    while low < high:
        middle = (low + high) // 2
        base, value = _at(connection, table, column, middle)
        if value >= bound:
            high = base
        else:
            # Nothing between `base` and `middle` starts a frame: go on right of both.
            low = _after(connection, table, middle)
    return int(low)


def _at(connection: sqlite3.Connection, table: str, column: str, offset: int) -> tuple[int, int]:
    row: tuple[int, int] = connection.execute(
        f"SELECT base, {column} FROM {table} WHERE base <= ? ORDER BY base DESC LIMIT 1", (offset,)
    ).fetchone()
    return row


def _after(connection: sqlite3.Connection, table: str, offset: int) -> int:
    found: int = connection.execute(f"SELECT min(base) FROM {table} WHERE base > ?", (offset,)).fetchone()[0]
    return found


def offset_at(connection: sqlite3.Connection, partition: int, time: int) -> int:
    """The first offset with `arrived_at >= time` that retention has left, or the end."""
    found = bisect(connection, partition, "arrived_at", time)
    if found is None:
        found = end(connection, partition).offset
    else:
        flags = connection.execute(f"SELECT flags FROM frame_{partition} WHERE base = ?", (found,)).fetchone()[0]
        if flags & SPARSE:
            found = offsets_of(next(scan(connection, partition, found)))[0]
    return max(found, start(connection, partition))
