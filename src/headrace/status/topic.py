"""The status topic: every component publishes its record under its key there, and whoever wants reads the last ones.

A record that cannot be read is treated as if it were not there: a reader must not fail because of a writer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from headrace.clock import SECOND, Clock
from headrace.errors import DataError
from headrace.log.protocol import Log
from headrace.log.record import Record
from headrace.status.records import ComponentRecord, ServeStatus, StatusRecord

LOOK_BACK = (64, 4096)
"""How many records at the end of the topic are looked at: few, then many. Components publish every second."""

S = TypeVar("S", bound=StatusRecord)

_logger = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


class StatusPublisher:
    """Publishes the status of one component.

    Parameters
    ----------
    topic
        The project's status topic.
    every
        Microseconds between two records that are not urgent.
    begun
        When the first record was put off; it is due at once when left out.
    process
        The name of the process, where it is one of several that publish the same kind of record.
    """

    def __init__(
        self,
        log: Log,
        topic: str,
        clock: Clock,
        *,
        every: int = SECOND,
        begun: int | None = None,
        process: str | None = None,
    ) -> None:
        self._log, self._topic, self._clock, self._every, self._process = log, topic, clock, every, process
        self._published = begun
        self._is_failing = False

    def is_due(self) -> bool:
        """Whether the last record is old enough for the next one."""
        return self._published is None or not 0 <= self._clock.now() - self._published < self._every

    def publish(self, record: StatusRecord) -> None:
        """Append a record, stamped with the component and the time."""
        key, self._published = record.KEY, self._clock.now()
        if self._process is not None:
            key = f"process.{self._process}"
        if isinstance(record, ComponentRecord):
            record.component = self._process or key
        if isinstance(record, ComponentRecord | ServeStatus):
            record.at = self._published
        self._log.append(self._topic, _encode(record), key=key.encode())

    @contextmanager
    def tolerate(self, *errors: type[Exception]) -> Iterator[None]:
        """Go on after these errors, which keep a record from being published; the first in a row is logged."""
        try:
            yield
        except errors as error:
            if not self._is_failing:
                _logger.warning("the status cannot be published: %s", error)
            self._is_failing = True
        else:
            self._is_failing = False


class StatusRecords:
    """The last records of some components, and when each arrived in the log."""

    def __init__(self) -> None:
        self.arrivals: dict[str, int] = {}
        self._records: dict[str, StatusRecord] = {}

    def update(self, log: Log, topic: str, *kinds: type[StatusRecord]) -> None:
        """Read the last record of each kind; where there is none that can be read, the one before stays."""
        found = last_records(log, topic, [kind.KEY for kind in kinds])
        for kind in kinds:
            if (record := found.get(kind.KEY)) is None:
                continue
            try:
                self._records[kind.KEY] = msgspec.json.decode(record.value or b"", type=kind)
                self.arrivals[kind.KEY] = record.arrived_at
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                _logger.warning("the %s's status cannot be read: %s", kind.KEY, error)

    def get(self, kind: type[S]) -> S | None:
        """The last record of a kind."""
        record = self._records.get(kind.KEY)
        return record if isinstance(record, kind) else None

    def arrived_at(self, kind: type[StatusRecord]) -> int:
        """When the last record of a kind arrived in the log; 0 where there is none."""
        return self.arrivals.get(kind.KEY, 0)


def read_status(log: Log, topic: str, *kinds: type[StatusRecord]) -> StatusRecords:
    """The last record of each kind; those that were not published lately are left out."""
    records = StatusRecords()
    records.update(log, topic, *kinds)
    return records


def last_records(log: Log, topic: str, keys: Iterable[str]) -> dict[str, Record]:
    """The last record under each key, as far as there is a recent one."""
    try:
        start, end = log.start_offsets(topic)[0], log.end_offsets(topic)[0]
    except DataError as error:
        if error.code != "unknown-topic":
            raise
        return {}
    wanted = set(keys)
    found: dict[str, Record] = {}
    for back in LOOK_BACK:
        first = max(start, end - back)
        for record in reversed(log.read(topic, 0, first, limit=back)):
            key = (record.key or b"").decode("utf-8", "replace")
            if key in wanted and key not in found and record.value:
                found[key] = record
        if first == start or wanted <= found.keys():
            break
    return found
