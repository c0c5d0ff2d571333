"""The archive, a component: every stream of a plan into the lake, as records come, and how that goes.

It is the one place that counts verdicts, so it tells of each stream what became of its records and what is wrong with
it. A backlog is taken batch after batch without a pause; once it is gone, batches come at the pace of `archive.every`,
so that files do not get too small. Small files of past batches are merged now and then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.alarms.alarm import StreamAlarm, waiting_alarm
from headrace.clock import SECOND, Clock
from headrace.codec.registry.ids import registry_of
from headrace.codec.writers import writers_of
from headrace.config.config import Config, names
from headrace.define.stream import Stream
from headrace.errors import DataError, HeadraceError
from headrace.lake.counters import CONFLICTS, EARLIER_COPIES, LATE_COPIES, LOST, totals
from headrace.lake.files import remove
from headrace.lake.location import Lake, open_lake
from headrace.lake.maintenance import compact
from headrace.meaning.verdict_names import VERDICTS
from headrace.plan.model import Plan
from headrace.spark.archive.archive import StreamArchive
from headrace.spark.archive.refused_records import Refusals
from headrace.status.records import ArchiveProgress, ArchiveStatus
from headrace.status.topic import StatusPublisher
from headrace.topics import STATUS, create, open_log, topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AGAIN = 5.0
"""Seconds until a lake that could not be used is looked at again."""
COMPACT_EVERY = 30
"""Batches after which the day's small files are merged."""

_logger = logging.getLogger(__name__)


@dataclass
class _Progress:
    """What one stream's archive has done since this process started."""

    batches: int = 0
    records: int = 0
    seconds: float = 0.0
    due: float = 0.0


@dataclass(frozen=True)
class _Failure:
    """Why the lake of a stream cannot be used, since when, and when to look again, by the steady clock."""

    error: HeadraceError
    since: int
    again: float


class Archiving:
    """The archives of a plan's streams over one log.

    Parameters
    ----------
    accept_loss
        Go on after records that retention removed before they were archived.
    """

    pause = 0.2

    def __init__(
        self, plan: Plan, config: Config, session: SparkSession, clock: Clock, *, accept_loss: bool = False
    ) -> None:
        self.config, self.clock, self.log = config, clock, open_log(config, clock)
        named = names(config)
        create(self.log, topics(plan, named, config.log.partitions))
        self._publisher = StatusPublisher(self.log, named.topic(STATUS), clock)
        self._plan, self._session, self._accept_loss = plan, session, accept_loss
        self._ids = registry_of(config, [stage.stream for stage in plan.admissions])
        self.archives: dict[str, StreamArchive] = {}
        self._waiting: dict[str, _Failure] = {}
        self._streams: dict[str, ArchiveProgress] = {}
        self.progress = {stage.stream.name: _Progress() for stage in plan.admissions}
        for stage in plan.admissions:
            with self._waiting_for_lake(stage.stream.name):
                self._open(stage.stream)
        self.publish_status()

    def _open(self, stream: Stream) -> None:
        """Begin to archive a stream."""
        named, lake = names(self.config), open_lake(self.config, stream)
        # What a batch that was cut off had put down is nobody's.
        remove(lake.staging, lake.bronze.options)
        topic = named.topic(stream.name)
        dead, late = (named.topic(f"{stream.name}.{kind}") for kind in ("dead", "late"))
        archive = StreamArchive(
            stream,
            topic,
            self.log,
            lake,
            self._session,
            self.clock,
            writers=writers_of(stream, self._ids, topic),
            refusals=Refusals(stream, self.log, dead, late),
        )
        if self._accept_loss:
            archive.accept_loss()
        self.archives[stream.name] = archive

    @contextmanager
    def _waiting_for_lake(self, name: str) -> Iterator[None]:
        """A stream whose lake cannot be used waits, and holds up no other."""
        try:
            yield
        except HeadraceError as error:
            if error.code != "lake-failed":
                raise
            known = self._waiting.get(name)
            if known is None:
                _logger.error("the archive of %s waits: %s", name, error)
            since = self.clock.now() if known is None else known.since
            self._waiting[name] = _Failure(error, since, time.monotonic() + AGAIN)
            self.archives.pop(name, None)
        else:
            self._waiting.pop(name, None)

    def step(self) -> bool:
        """Archive one batch of every stream that has one due; true when there was any."""
        worked = False
        for stage in self._plan.admissions:
            name, failure = stage.stream.name, self._waiting.get(stage.stream.name)
            if failure is not None and time.monotonic() < failure.again:
                continue
            with self._waiting_for_lake(name):
                if name not in self.archives:
                    self._open(stage.stream)
                worked |= self._archive(self.archives[name], self.progress[name])
        if not worked and self._publisher.is_due():
            self.publish_status()
        return worked

    def _archive(self, archive: StreamArchive, done: _Progress) -> bool:
        """Archive one batch of a stream if one is due; true when there was one."""
        began = time.monotonic()
        if began < done.due:
            return False
        made = archive.step(self.config.archive.most)
        if made is None:
            return False
        done.batches, done.records = done.batches + 1, done.records + made.counts.records
        done.seconds = time.monotonic() - began
        full = made.counts.records >= self.config.archive.most
        done.due = 0.0 if full else began + self.config.archive.every / SECOND
        if done.batches % COMPACT_EVERY == 0:
            _merge(archive.lake)
        self.publish_status()
        return True

    def is_ready(self) -> bool:
        """Always: records wait in the log."""
        return True

    def publish_status(self) -> None:
        """Publish how far the archive has come."""
        # A stream that waits stays as it was published last.
        for name in list(self.archives):
            with self._waiting_for_lake(name):
                self._streams[name] = self._stream(name)
        alarms = [alarm.status() for alarm in self._alarms()]
        self._publisher.publish(ArchiveStatus(streams=self._streams, alarms=alarms))

    def _alarms(self) -> Iterator[StreamAlarm]:
        for archive in self.archives.values():
            yield from archive.watch.alarms()
        for name, failure in self._waiting.items():
            yield waiting_alarm(name, f"The archive of {name}", failure.error.brief, failure.since)

    def _stream(self, name: str) -> ArchiveProgress:
        archive, done = self.archives[name], self.progress[name]
        counted = totals(archive.lake.bronze)
        verdicts = {verdict: counted[verdict] for verdict in VERDICTS}
        ends, start = self.log.end_offsets(archive.topic), archive.start
        return ArchiveProgress(
            archived=sum(verdicts.values()),
            verdicts=verdicts,
            conflict=counted[CONFLICTS],
            late_copy=counted[LATE_COPIES],
            earlier_copy=counted[EARLIER_COPIES],
            lost=counted[LOST],
            positions=dict(start),
            lag_events=sum(end - start[partition] for partition, end in ends.items()),
            batches=done.batches,
            batch_records=done.records,
            batch_seconds=round(done.seconds, 3),
        )

    def stop(self) -> None:
        """Give back the log. A batch that was cut off leaves nothing."""
        self.log.close()


def _merge(lake: Lake) -> None:
    """Merge small files, unless somebody else is at it: then there is nothing to do."""
    try:
        compact(lake.bronze)
        compact(lake.silver)
    except DataError as error:
        if error.code != "lake-conflict":
            raise
