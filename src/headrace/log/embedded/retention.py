"""Retention and compaction of the embedded log, beside running readers and writers.

Every change is a short transaction of its own, so that appends wait milliseconds at most and a crash leaves nothing
half done. Compaction goes upwards by offset: a tombstone is dropped only after all it covers.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator

from headrace.files import FileLock
from headrace.log.embedded import table
from headrace.log.embedded.database import Database
from headrace.log.embedded.frame import Frame, pack, records
from headrace.log.record import Message, Record
from headrace.log.topic import Retention, Topic

CHUNK_FRAMES = 256
CHUNK_BYTES = 8 * 1024 * 1024


def clean(database: Database, topic: Topic, now: int) -> None:
    """Apply a topic's retention and compaction; leave it to another cleaner that is already at work."""
    with FileLock(database.path.with_name(database.path.name + "-clean")) as lock:
        if not lock.try_acquire():
            return
        for partition in range(topic.partitions):
            retain(database, partition, topic.retention, now)
            if topic.compacted:
                compact(database, partition, now - topic.retention.tombstone_age)


def retain(database: Database, partition: int, retention: Retention, now: int) -> None:
    """Move the start past what is too old or too much, then remove it piece by piece."""
    if retention.age is None and retention.size is None:
        return
    with database.writing() as connection:
        start = table.start(connection, partition)
        keep = max(
            start,
            _young(connection, partition, retention.age, now),
            _fitting(connection, partition, retention.size),
        )
        if keep > start:
            connection.execute("UPDATE part SET start = ? WHERE partition = ?", (keep, partition))
            _empty_end(connection, partition, keep)
    name = f"frame_{partition}"
    removed = CHUNK_FRAMES
    while removed == CHUNK_FRAMES:
        with database.writing() as connection:
            removed = connection.execute(
                f"DELETE FROM {name} WHERE base IN (SELECT base FROM {name} WHERE base < ?"
                f" AND base < (SELECT max(base) FROM {name}) ORDER BY base LIMIT {CHUNK_FRAMES})",
                (keep,),
            ).rowcount


def _young(connection: sqlite3.Connection, partition: int, age: int | None, now: int) -> int:
    if age is None:
        return 0
    base = table.bisect(connection, partition, "arrived_at", now - age)
    return table.end(connection, partition).offset if base is None else base


def _fitting(connection: sqlite3.Connection, partition: int, size: int | None) -> int:
    end = table.end(connection, partition)
    if size is None or end.offset == 0:
        return 0
    name = f"frame_{partition}"
    before = connection.execute(f"SELECT bytes - length(body) FROM {name} ORDER BY base LIMIT 1").fetchone()[0]
    if end.bytes - before <= size:
        return 0
    last = connection.execute(f"SELECT max(base) FROM {name}").fetchone()[0]
    base = table.bisect(connection, partition, "bytes", end.bytes - size)
    after = connection.execute(f"SELECT next FROM {name} WHERE base = ?", (base,)).fetchone()[0]
    return int(min(after, last))


def _empty_end(connection: sqlite3.Connection, partition: int, keep: int) -> None:
    """When nothing is kept, the last frame stays without its records: the end and the last arrival are read from it."""
    if keep < table.end(connection, partition).offset:
        return
    name = f"frame_{partition}"
    connection.execute(
        f"UPDATE {name} SET count = 0, flags = 0, crc = 0, body = x'' WHERE base = (SELECT max(base) FROM {name})"
    )


def compact(database: Database, partition: int, tombstones_before: int) -> None:
    """Keep the greatest offset of each key, the young tombstones, and the last record."""
    with database.reading() as connection:
        end = table.end(connection, partition).offset
        start, done, due = connection.execute(
            "SELECT start, compacted, due FROM part WHERE partition = ?", (partition,)
        ).fetchone()
    if end == done and (due is None or due >= tombstones_before):
        return
    latest: dict[bytes | None, int] = {}
    for frames in _chunks(database, partition, max(done, start), end):
        for frame in frames:
            latest.update((record.key, record.offset) for record in records(frame, "", partition))

    def kept(record: Record) -> bool:
        if latest.get(record.key, -1) > record.offset:
            return False
        return record.value is not None or record.arrived_at >= tombstones_before or record.offset == end - 1

    waiting: list[int] = []
    for frames in _chunks(database, partition, start, end):
        changes = []
        for frame in frames:
            remaining = [record for record in records(frame, "", partition) if kept(record)]
            waiting += [r.arrived_at for r in remaining if r.value is None and r.offset != end - 1][:1]
            if len(remaining) < frame.count:
                changes.append((frame, remaining))
        _apply(database, partition, changes)
    with database.writing() as connection:
        connection.execute(
            "UPDATE part SET compacted = ?, due = ? WHERE partition = ?", (end, min(waiting, default=None), partition)
        )


def _chunks(database: Database, partition: int, offset: int, until: int) -> Iterator[list[Frame]]:
    """Frames in [offset, until) in pieces of bounded size, each from a short snapshot."""
    while offset < until:
        frames: list[Frame] = []
        size = 0
        with database.reading() as connection:
            for frame in table.scan(connection, partition, offset):
                if frame.base >= until or size >= CHUNK_BYTES or len(frames) >= CHUNK_FRAMES:
                    break
                frames.append(frame)
                size += len(frame.body)
        if not frames:
            return
        yield frames
        offset = frames[-1].next


def _apply(database: Database, partition: int, changes: list[tuple[Frame, list[Record]]]) -> None:
    if not changes:
        return
    with database.writing() as connection:
        for frame, remaining in changes:
            if not remaining:
                connection.execute(f"DELETE FROM frame_{partition} WHERE base = ?", (frame.base,))
                continue
            messages = [Message(record.value, record.key, record.headers) for record in remaining]
            packed = pack(messages, [record.offset - frame.base for record in remaining])
            connection.execute(
                f"UPDATE frame_{partition} SET count = ?, flags = ?, crc = ?, body = ? WHERE base = ?",
                (packed.count, packed.flags, zlib.crc32(packed.body), packed.body, frame.base),
            )
