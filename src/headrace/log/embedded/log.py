"""The embedded log: a folder, one SQLite file per topic, no service. Several processes append and tail at once.

An append is safe when it returns: it is on disk (fsync) and visible. A batch over several partitions is one
transaction: all of it or nothing. Reading takes no lock that a writer waits for. Removed space is used again by later
appends; the file does not shrink. `database` holds the connections, `table` the rows, `frame` the bytes, `clean` the
retention; Spark reads `frames` through `log.embedded.arrow`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time as timer
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from headrace.clock import Clock, SystemClock
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.log.base import LogBase
from headrace.log.embedded import catalog, table
from headrace.log.embedded import retention as clean
from headrace.log.embedded.database import Database
from headrace.log.embedded.frame import Frame, records, split
from headrace.log.partitioner import route
from headrace.log.protocol import READ_BYTES, Offsets
from headrace.log.read_slice import OffsetSpan
from headrace.log.record import Message, Position, Record, sizes
from headrace.log.topic import FOREVER, Retention, Topic, check_limit, check_name, check_offset, unknown

FIRST_NAP, LONGEST_NAP, NAPS = 0.0005, 0.006, 10
"""Seconds a waiting reader sleeps between two looks at the files, a tenth of the time that nothing has come: to wake up
costs more than to look."""


class EmbeddedLog(LogBase):
    """A log in a folder.

    Parameters
    ----------
    folder
        Where the files are; created with the first topic. A local disk: network file systems do not share memory.
    clock
        Where arrival times come from.
    faults
        Hears of every commit; for tests.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, EmbeddedLog(folder) as log:
    ...     _ = log.create_topic("payments", partitions=2)
    ...     _ = log.append("payments", b"{}", key=b"card-1")
    ...     log.end_offsets("payments")
    {0: 0, 1: 1}
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, clock: Clock | None = None, faults: FaultPoints = NO_FAULTS
    ) -> None:
        self.folder, self._faults = Path(folder), faults
        self._clock = clock or SystemClock()
        self._open: dict[str, tuple[Topic, Database]] = {}
        self._opening = threading.Lock()
        self._keyless = 0
        self._came = timer.monotonic()

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        compacted: bool = False,
        retention: Retention = FOREVER,
        arrival: str = "log",
    ) -> Topic:
        """See `Log.create_topic`."""
        topic = Topic(name, partitions, compacted, retention, arrival)
        self.folder.mkdir(parents=True, exist_ok=True)
        existing = catalog.create(self.folder, topic, self._faults)
        if existing is not None and existing != topic:
            with self._database(name)[1].writing() as connection:
                catalog.describe(connection, topic)
        return topic

    def topics(self) -> dict[str, Topic]:
        """See `Log.topics`."""
        found = {name: catalog.stored(self.folder, name) for name in catalog.names(self.folder)}
        return {name: topic for name, topic in found.items() if topic is not None}

    def append_batch(self, topic: str, messages: Sequence[Message], *, partition: int | None = None) -> list[Position]:
        """See `Log.append_batch`."""
        form, database = self._database(topic)
        if partition is not None:
            form.check_partition(partition)
        size = sizes(messages, compacted=form.compacted)
        if not messages:
            return []
        if partition is None:
            self._keyless = (self._keyless + 1) % form.partitions
            routes = route(messages, form.partitions, keyless=self._keyless)
        else:
            routes = {partition: list(range(len(messages)))}
        whole = len(routes) == 1
        packed = {
            number: list(split(messages, size))
            if whole
            else list(split([messages[i] for i in indices], [size[i] for i in indices]))
            for number, indices in routes.items()
        }
        firsts = {}
        with database.writing() as connection:
            for number, frames in packed.items():
                at = table.end(connection, number)
                firsts[number], offset, total = at.offset, at.offset, at.bytes
                arrived_at = max(self._clock.now(), at.arrived_at)
                for part in frames:
                    after = offset + part.count
                    frame = Frame(offset, after, arrived_at, part.count, part.flags, zlib.crc32(part.body), part.body)
                    total += len(part.body)
                    table.insert(connection, number, frame, total)
                    offset = after
        positions: list[Position] = [Position(0, 0)] * len(messages)
        for number, indices in routes.items():
            for offset, index in enumerate(indices, firsts[number]):
                positions[index] = Position(number, offset)
        return positions

    def read(
        self, topic: str, partition: int, offset: int, *, limit: int = 1000, max_bytes: int = READ_BYTES
    ) -> list[Record]:
        """See `Log.read`."""
        check_limit(limit)
        found: list[Record] = []
        size = 0
        form, database = self._checked(topic, partition)
        with database.reading() as connection:
            self._check_offset(connection, form, partition, offset)
            for frame in table.scan(connection, partition, offset):
                if found and size + len(frame.body) > max_bytes:
                    break
                found += records(frame, topic, partition, offset=offset)
                size += len(frame.body)
                if len(found) >= limit or size >= max_bytes:
                    break
        return found[:limit]

    def frames(
        self, topic: str, partition: int, offset: int, *, until: int, max_bytes: int = READ_BYTES
    ) -> list[Frame]:
        """Whole frames with something in [offset, until): about `max_bytes`, at least one if there is any."""
        found: list[Frame] = []
        size = 0
        form, database = self._checked(topic, partition)
        with database.reading() as connection:
            self._check_offset(connection, form, partition, offset)
            for frame in table.scan(connection, partition, offset):
                if frame.base >= until or size >= max_bytes:
                    break
                found.append(frame)
                size += len(frame.body)
        return found

    def spans(self, topic: str, partition: int, offset: int, *, limit: int) -> list[OffsetSpan]:
        """See `slice.Spanned`."""
        form, database = self._checked(topic, partition)
        with database.reading() as connection:
            self._check_offset(connection, form, partition, offset)
            return table.spans(connection, partition, offset, limit)

    def wait(self, positions: Mapping[str, Offsets], timeout: float) -> Mapping[str, Offsets]:
        """See `Log.wait`. Another process's append is seen within about `LONGEST_NAP` seconds."""
        deadline = timer.monotonic() + timeout
        with ExitStack() as lent:
            watched = {
                topic: table.PartitionEnds(lent.enter_context(self._database(topic)[1].watching()), at)
                for topic, at in positions.items()
            }
            while not (found := {topic: passed for topic, each in watched.items() if (passed := each.passed())}):
                now = timer.monotonic()
                if now >= deadline:
                    return {}
                nap = max(FIRST_NAP, min(LONGEST_NAP, (now - self._came) / NAPS))
                timer.sleep(min(nap, deadline - now))
            self._came = timer.monotonic()
            return found

    def start_offsets(self, topic: str) -> dict[int, int]:
        """See `Log.start_offsets`."""
        form, database = self._database(topic)
        with database.reading() as connection:
            return {number: table.start(connection, number) for number in range(form.partitions)}

    def end_offsets(self, topic: str) -> dict[int, int]:
        """See `Log.end_offsets`."""
        form, database = self._database(topic)
        with database.reading() as connection:
            return {number: table.end(connection, number).offset for number in range(form.partitions)}

    def offset_at(self, topic: str, time: int) -> dict[int, int]:
        """See `Log.offset_at`."""
        form, database = self._database(topic)
        with database.reading() as connection:
            return {number: table.offset_at(connection, number, time) for number in range(form.partitions)}

    def commit(self, group: str, topic: str, offsets: Offsets) -> None:
        """See `Log.commit`."""
        check_name(group, "group")
        form, database = self._database(topic)
        for number in offsets:
            form.check_partition(number)
        with database.writing() as connection:
            for number, offset in offsets.items():
                check_offset(form, number, offset, start=0, end=table.end(connection, number).offset)
            connection.executemany(
                "INSERT OR REPLACE INTO position VALUES (?, ?, ?)", [(group, *item) for item in offsets.items()]
            )

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """See `Log.committed`."""
        with self._database(topic)[1].reading() as connection:
            return dict(
                connection.execute(
                    'SELECT partition, "offset" FROM position WHERE name = ? ORDER BY partition', (group,)
                ).fetchall()
            )

    def clean(self, topic: str) -> None:
        """See `Log.clean`. Appends go on meanwhile; a second cleaner leaves the work to the first."""
        database = self._database(topic)[1]
        # Read again: another process may have changed the retention.
        form = catalog.stored(self.folder, topic)
        if form is not None:
            clean.clean(database, form, self._clock.now())

    def close(self) -> None:
        """See `Log.close`."""
        with self._opening:
            for _, database in self._open.values():
                database.close()
            self._open = {}

    def _database(self, topic: str) -> tuple[Topic, Database]:
        found = self._open.get(topic)
        if found is not None:
            return found
        check_name(topic, "topic")
        with self._opening:
            if topic not in self._open:
                form = catalog.stored(self.folder, topic)
                if form is None:
                    raise unknown(topic, catalog.names(self.folder))
                self._open[topic] = (form, Database(catalog.path_of(self.folder, topic), self._faults))
            return self._open[topic]

    def _checked(self, topic: str, partition: int) -> tuple[Topic, Database]:
        form, database = self._database(topic)
        form.check_partition(partition)
        return form, database

    @staticmethod
    def _check_offset(connection: sqlite3.Connection, form: Topic, partition: int, offset: int) -> None:
        bounds = (table.start(connection, partition), table.end(connection, partition).offset)
        check_offset(form, partition, offset, start=bounds[0], end=bounds[1])
