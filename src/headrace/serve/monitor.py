"""How things stand: is it ready, how fresh is each view, what does the pipeline say, how far is the store.

A thread looks a few times a second (`tick`); requests are answered from what it saw. Its own view of things goes to
the status topic, for `headrace status` and for other pages.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import asdict

from headrace.alarms.alarm import StreamAlarm, full_alarm
from headrace.clock import MINUTE, SECOND, Clock, show_time
from headrace.config.config import Names
from headrace.define.view import View
from headrace.disk import LEAST, free_bytes
from headrace.errors import DiskFullError, HeadraceError
from headrace.log.protocol import Log
from headrace.plan.model import Plan, TileSet
from headrace.read.reader import Reader
from headrace.serve.limits import Behind
from headrace.serve.status_view import ANSWERED, READS, PipelineAge, ProjectStatus
from headrace.status.records import (
    ArchiveStatus,
    AuditStatus,
    DefinitionStatus,
    EvaluationStatus,
    LateStatus,
    PipelineStatus,
    ProcessStatus,
    ServeStatus,
)
from headrace.status.serving import RequestCounts, StepLatencies, StepLatency, StoreSize, StoreUpdates, ViewStatus
from headrace.status.streams import StreamStatus, merge_alarms, merge_status, merge_streams
from headrace.status.topic import StatusPublisher, StatusRecords, read_status
from headrace.store.materializer import Materialiser
from headrace.tiles.latency import KEPT, Latency, summarize_latency
from headrace.topics import STATUS

TICK = 0.25
"""Seconds between two looks."""

PUBLISH = 2 * SECOND
CLEAN = 10 * MINUTE
SHARES = (0.5, 0.99)
OTHERS = (AuditStatus, EvaluationStatus, DefinitionStatus, LateStatus, ProcessStatus)
"""Read less often than pipeline and archive: where no audit runs, its last record is looked for in vain."""

_logger = logging.getLogger(__name__)


class Monitor:
    """Watches one serving process and the pipeline behind it; less than `least` bytes of disk are an alarm."""

    def __init__(
        self, reader: Reader, filler: Materialiser, log: Log, names: Names, clock: Clock, *, least: int = 0
    ) -> None:
        self._reader, self._filler, self._log, self._names, self._clock = reader, filler, log, names, clock
        self._topic = names.topic(STATUS)
        self._fresh: dict[str, deque[tuple[int, int]]] = {tiles.id: deque() for tiles in self._plan.tile_sets}
        self._flow, self._others = StatusRecords(), StatusRecords()
        self._lag: int | None = None
        self._away: str | None = "log"
        self.behind: dict[str, Behind] = {}
        self.free_disk: int | None = None
        self._least, self._is_full = least, False
        self._disk: StreamAlarm | None = None
        self._history = False
        self._publisher = StatusPublisher(log, self._topic, clock, every=PUBLISH, begun=clock.now())
        self._cleaned = clock.now()
        self.reads: deque[float] = deque(maxlen=READS)
        self.answered = dict.fromkeys(ANSWERED, 0)

    @property
    def _plan(self) -> Plan:
        return self._reader.plan

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop."""
        while not stop.wait(TICK):
            self.tick()

    def tick(self) -> None:
        """Look once: at the log, the pipeline's words and the freshness of every tile set; tell it now and then."""
        now = self._clock.now()
        try:
            self._look_at_disk(now)
            for tiles in self._plan.tile_sets:
                self._sample(tiles, now)
            self._refresh_status()
            self._history = self._served()
            if self._publisher.is_due():
                self._others = read_status(self._log, self._topic, *OTHERS)
                self._publish(now)
            self._away = None
        except DiskFullError as error:
            # Even to open a topic takes some room: what was seen last stands.
            self._note_full(error)
        except HeadraceError as error:
            away = "store" if error.code.startswith("store-") else "log"
            if self._away is None:
                _logger.error("the %s cannot be used: %s", away, error)
            self._away = away

    def _publish(self, now: int) -> None:
        """Publish how things stand. A full disk takes no records, and no reads away."""
        try:
            self._publisher.publish(self._own_status(now))
            if now - self._cleaned >= CLEAN:
                self._cleaned = now
                self._log.clean(self._topic)
        except DiskFullError as error:
            self._note_full(error)
        else:
            self._is_full = False

    def _note_full(self, error: DiskFullError) -> None:
        if not self._is_full:
            _logger.error("nothing can be written, reads go on: %s", error)
        self._is_full = True

    def _look_at_disk(self, now: int) -> None:
        """How much room the embedded log has, or the data folder; too little, or an append without any, is an alarm."""
        log = getattr(self._log, "folder", None)
        folder = self._names.path() if log is None else log
        free, least = free_bytes(folder), 0 if log is None else self._least
        self.free_disk = None if log is None else free
        if free >= max(least, LEAST) and not self._is_full:
            self._disk = None
        else:
            since = now if self._disk is None else self._disk.since
            self._disk = full_alarm(str(folder), free, since, 0 if self._is_full else least)

    def _refresh_status(self) -> None:
        self._lag = self._filler.lag()
        self._flow.update(self._log, self._topic, PipelineStatus, ArchiveStatus)
        streams = merge_streams(self._flow.get(PipelineStatus), self._flow.get(ArchiveStatus))
        self.behind = {each.stream.name: self._lag_of(each.stream.name, streams) for each in self._plan.admissions}

    def _lag_of(self, name: str, streams: Mapping[str, StreamStatus]) -> Behind:
        """How much of a stream the pipeline has yet to read: up to its last status, also when it has died since."""
        topic, stream = self._names.topic(name), streams.get(name)
        reached = self._log.start_offsets(topic) | ({} if stream is None else stream.included)
        events = sum(max(0, end - reached.get(number, 0)) for number, end in self._log.end_offsets(topic).items())
        return Behind(events, 0.0 if stream is None else stream.rate_per_s)

    def _sample(self, tiles: TileSet, now: int) -> None:
        samples, said = self._fresh[tiles.id], self._reader.progress(tiles)
        warm = said is not None and not self._warming(tiles)
        self._latency(tiles).run = said.run if said is not None and warm else None
        if said is not None and warm:
            samples.append((now, now - said.as_of))
        while samples and samples[0][0] < now - KEPT:
            samples.popleft()

    def _warming(self, tiles: TileSet) -> bool:
        """Whether the tile set's query has just started, which says nothing of how fresh it will be."""
        pipeline = self._flow.get(PipelineStatus) or PipelineStatus()
        return tiles.id in pipeline.tile_sets and pipeline.tile_sets[tiles.id].warming

    def _latency(self, tiles: TileSet) -> Latency:
        return self._filler.latency[self._names.topic(f"changelog.{tiles.id}")]

    def readiness(self) -> dict[str, bool]:
        """What must be true before values are served: the parts of `/ready`."""
        return {
            "log": self._away != "log",
            "store": self._away != "store",
            "caught_up": self._filler.caught_up,
            "pipeline": self._flow.get(PipelineStatus) is not None,
            "history": self._history,
        }

    def _served(self) -> bool:
        """Whether history that was filled in is served: until the stream has said where it is, reads find nothing."""
        store = self._reader.store
        filled = (tiles for tiles in self._plan.tile_sets if store.hand_overs(tiles.fingerprint))
        return all(self._reader.progress(tiles) is not None for tiles in filled)

    def status(self) -> ProjectStatus:
        """Everything the page shows."""
        now, ready, own = self._clock.now(), self.readiness(), self._own_status(self._clock.now())
        known, said_at = self._flow.get(PipelineStatus), self._flow.arrived_at(PipelineStatus)
        return ProjectStatus(
            at=show_time(now),
            project=self._names.project,
            plan=self._plan.fingerprint,
            ready=all(ready.values()),
            waiting_for=[part for part, there in ready.items() if not there],
            alarms=[*merge_alarms(self._flow, self._others, self._disk)],
            pipeline=PipelineAge(at=show_time(said_at), age_ms=(now - said_at) / 1_000) if known else None,
            views=own.views,
            materialiser=own.materialiser,
            latency=own.latency,
            store=own.store,
            requests=own.requests,
            **asdict(merge_status(self._flow, self._others)),
        )

    def _own_status(self, now: int) -> ServeStatus:
        """What this process knows itself."""
        views = {planned.view.name: planned for planned in self._plan.features}
        stats, counts, applied_at = self._reader.store.stats(), self._filler.counts, self._filler.applied_at
        median, high = percentiles(list(self.reads))
        return ServeStatus(
            views={name: self._view(planned.view, planned.tile_set, now) for name, planned in views.items()},
            materialiser=StoreUpdates(
                lag_records=self._lag,
                caught_up=self._filler.caught_up,
                **{kind: counts[kind] for kind in ("tiles", "progress", "gone", "malformed", "gaps")},
                applied_at=show_time(max(applied_at.values())) if applied_at else None,
            ),
            latency=_steps(self._filler.latency.values(), now),
            store=StoreSize(keys=stats.keys, tiles=stats.tiles, levels=stats.levels, bytes=stats.bytes),
            requests=RequestCounts(**self.answered, p50_read_us=median, p99_read_us=high),
        )

    def _view(self, view: View, tiles: TileSet, now: int) -> ViewStatus:
        said = self._reader.progress(tiles)
        median, high = percentiles([fresh / 1_000 for _, fresh in list(self._fresh[tiles.id])])
        fresh, limit = None if said is None else now - said.as_of, view.max_staleness
        return ViewStatus(
            key=list(view.by),
            features=len(view.features),
            mode=tiles.mode,
            tile_set=tiles.id,
            run=None if said is None else said.run,
            as_of=None if said is None else show_time(said.as_of),
            late_as_of=None if said is None or said.late_as_of is None else show_time(said.late_as_of),
            freshness_ms=None if fresh is None else fresh / 1_000,
            freshness_p50_ms=median,
            freshness_p99_ms=high,
            max_staleness_ms=None if limit is None else limit / 1_000,
            warming=self._warming(tiles),
            latency=_steps([self._latency(tiles)], now),
            stale=fresh is None or (limit is not None and fresh > limit),
        )


def _steps(seen: Iterable[Latency], now: int) -> StepLatencies:
    return {step: StepLatency(**shares) for step, shares in summarize_latency(seen, now).items()}


def percentiles(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The median and the 99th of a hundred, by nearest rank; None of nothing.

    >>> percentiles([3.0, 1.0, 2.0])
    (2.0, 3.0)
    """
    ordered = sorted(values)
    median, high = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None for share in SHARES)
    return median, high
