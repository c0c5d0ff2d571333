"""Numbers for Prometheus: what processes that answer count themselves, and how things stand when they are asked for.

Where several processes answer, each counts into files of its own in one folder, and whoever is asked adds them up:
what a process that has ended had counted stays counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from headrace.serve.scoring import metrics as scoring_metrics
from headrace.serve.status_view import ProjectStatus
from headrace.status.records import FeatureSkew

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that must name the folder before a process that shares it loads this module."""
SENT_AWAY = (429, 503, 507)
BOUNDS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the latency buckets, in seconds."""

HELP = {
    "headrace_http_requests_total": ("counter", "Requests by route, method and status."),
    "headrace_http_request_seconds": ("histogram", "Seconds from a request's head to the end of its answer, by route."),
    "headrace_http_in_flight": ("gauge", "Requests that are being answered."),
    "headrace_http_rejected_total": ("counter", "Requests sent away with 429, 503 or 507."),
    "headrace_working": ("gauge", "Requests with several keys or with events that are worked on."),
    "headrace_waiting": ("gauge", "Requests with several keys or with events that wait for their turn."),
    "headrace_connections": ("gauge", "Open connections."),
    "headrace_connections_ended_total": ("counter", "Connections ended because they were idle too long or too many."),
    "headrace_reads_total": ("counter", "Keys read, by view."),
    "headrace_reads_stale_total": ("counter", "Keys read whose values were older than the view allows."),
    "headrace_reads_missing_total": ("counter", "Keys read of which there was nothing."),
    "headrace_samples_kept_total": ("counter", "Reads kept in served.<view>."),
    "headrace_samples_dropped_total": ("counter", "Reads that were to be kept and are not."),
    "headrace_view_age_seconds": ("gauge", "Age of a view's values: all that had arrived before is included."),
    "headrace_skew_compared": ("gauge", "Values of a feature that the running audit has compared with the lake."),
    "headrace_skew_mismatched": ("gauge", "Those of them that differed, by cause."),
    "headrace_store_lag_records": ("gauge", "Changelog records that are not in the store yet."),
    "headrace_store_keys": ("gauge", "Keys in the store."),
    "headrace_store_tiles": ("gauge", "Tiles in the store."),
    "headrace_store_levels": ("gauge", "Rows of merged tiles in the store."),
    "headrace_store_bytes": ("gauge", "Bytes of the store."),
    "headrace_dimension_rows": ("gauge", "Rows of a dimension's table in memory; 0 before it was read."),
    "headrace_dimension_bytes": ("gauge", "Bytes of a dimension's table in memory, of each process that answers."),
    "headrace_dimension_age_seconds": ("gauge", "Seconds since a dimension's table was last seen to be the same."),
    "headrace_dimension_failing": ("gauge", "1 when a dimension's table could not be read at the last look."),
    "headrace_ready": ("gauge", "1 when values can be served."),
    "headrace_clock_behind_seconds": ("gauge", "Seconds that the clock lies behind the latest moment of an answer."),
    **scoring_metrics.HELP,
}

# When a series began is said of each by default; nobody asks.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Counts requests and reads; used from the event loop alone.

    Parameters
    ----------
    folder
        Where this process and others count together; None for one that counts alone.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.read("cards", stale=False, missing=True)
    >>> 'headrace_reads_total{view="cards"} 1.0' in metrics.text()
    True
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder, self._registry = folder, CollectorRegistry()
        self._requests = self._counter("headrace_http_requests_total", "route", "method", "status")
        self._seconds = Histogram(*self._named("headrace_http_request_seconds", "route"), buckets=BOUNDS, **self._in)
        self._rejected = self._counter("headrace_http_rejected_total")
        self._in_flight = self._gauge("headrace_http_in_flight", "livesum")
        self._connections = self._gauge("headrace_connections", "livesum")
        self._ended = self._counter("headrace_connections_ended_total")
        self._reads = [self._counter(f"headrace_reads{kind}_total", "view") for kind in ("", "_stale", "_missing")]
        self._working = self._gauge("headrace_working", "livesum")
        self._waiting = self._gauge("headrace_waiting", "livesum")
        self._behind = self._gauge("headrace_clock_behind_seconds", "livemax")
        self._dimensions = [
            self._gauge(f"headrace_dimension_{what}", "livemax", "dimension")
            for what in ("rows", "bytes", "age_seconds", "failing")
        ]
        self._kept = self._counter("headrace_samples_kept_total")
        self._dropped = self._counter("headrace_samples_dropped_total")
        self.scores = scoring_metrics.ScoreMetrics(self._registry)
        self._children: dict[tuple[Any, ...], Any] = {}
        self._views: dict[str, list[Any]] = {}
        self.in_flight = self.connections = 0

    @property
    def _in(self) -> dict[str, Any]:
        return {"registry": self._registry}

    def _named(self, name: str, *labels: str) -> tuple[str, str, tuple[str, ...]]:
        return name, HELP[name][1], labels

    def _counter(self, name: str, *labels: str) -> Counter:
        return Counter(*self._named(name, *labels), **self._in)

    def _gauge(self, name: str, together: Any, *labels: str) -> Gauge:
        return Gauge(*self._named(name, *labels), multiprocess_mode=together, **self._in)

    def _child(self, of: Counter | Histogram, *labels: str) -> Any:
        """The counter of some labels; to look for it takes longer than to count."""
        found = self._children.get((of, *labels))
        if found is None:
            found = self._children[(of, *labels)] = of.labels(*labels)
        return found

    def begun(self) -> None:
        """Count a request that has come."""
        self.in_flight += 1
        self._in_flight.inc()

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count the end of a request that has come."""
        self.in_flight -= 1
        self._in_flight.dec()
        self.counted(route, method, status, seconds)

    def counted(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        self._child(self._requests, route, method, str(status)).inc()
        self._child(self._seconds, route).observe(seconds)
        if status in SENT_AWAY:
            self._rejected.inc()

    def connected(self) -> None:
        """Count a connection."""
        self.connections += 1
        self._connections.inc()

    def disconnected(self) -> None:
        """Count its end."""
        self.connections -= 1
        self._connections.dec()

    def gave_up(self) -> None:
        """Count a connection that was ended because it was idle too long, or one too many."""
        self._ended.inc()

    def read(self, view: str, *, stale: bool, missing: bool) -> None:
        """Count one key that was read."""
        counters = self._views.get(view)
        if counters is None:
            counters = self._views[view] = [counter.labels(view) for counter in self._reads]
        counters[0].inc()
        if stale:
            counters[1].inc()
        if missing:
            counters[2].inc()

    def sampled(self, *, kept: int = 0, dropped: int = 0) -> None:
        """Count reads that were to be kept."""
        self._kept.inc(kept)
        self._dropped.inc(dropped)

    def under_way(self, *, working: int, waiting: int, clock_behind: float) -> None:
        """Say how much is under way now, and how far the clock lies behind, in seconds."""
        self._working.set(working)
        self._waiting.set(waiting)
        self._behind.set(clock_behind)

    def dimension(self, name: str, *, rows: int, size: int, age: float, failing: bool) -> None:
        """Say how the table of a dimension stands; its age is in seconds."""
        for gauge, value in zip(self._dimensions, (rows, size, age, failing), strict=True):
            gauge.labels(name).set(value)

    def text(self, status: ProjectStatus | None = None) -> str:
        """Everything as Prometheus reads it, with the gauges of a status."""
        whole = self._counted()
        if status is not None:
            whole.register(_StatusGauges(status))
        return generate_latest(whole).decode()

    def families(self) -> list[Metric]:
        """What was counted until now, by all who count together."""
        return list(self._counted().collect())

    def _counted(self) -> CollectorRegistry:
        whole = CollectorRegistry()
        if self._folder is None:
            whole.register(self._registry)
        else:
            MultiProcessCollector(whole, path=str(self._folder))  # type: ignore[no-untyped-call]
        return whole


def forget(process: int, folder: Path) -> None:
    """Let a process that has ended have nothing under way; what it has counted stays."""
    mark_process_dead(process, str(folder))  # type: ignore[no-untyped-call]


class _StatusGauges:
    """The gauges of a status."""

    def __init__(self, status: ProjectStatus) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        """What a registry asks for."""
        store = self._status.store
        yield _family("headrace_ready", int(self._status.ready))
        yield _family("headrace_store_lag_records", self._status.materialiser.lag_records)
        yield _family("headrace_store_keys", store.keys)
        yield _family("headrace_store_tiles", store.tiles)
        yield _family("headrace_store_levels", store.levels)
        yield _family("headrace_store_bytes", store.bytes)
        ages = GaugeMetricFamily("headrace_view_age_seconds", HELP["headrace_view_age_seconds"][1], labels=["view"])
        for name, view in self._status.views.items():
            if view.freshness_ms is not None:
                ages.add_metric([name], view.freshness_ms / 1_000)
        yield ages
        yield from _skew(self._status.skew.features or {})


def _skew(features: Mapping[str, FeatureSkew]) -> Iterable[Metric]:
    """What the audit has found since it started."""
    whole, causes = "headrace_skew_compared", "headrace_skew_mismatched"
    compared = GaugeMetricFamily(whole, HELP[whole][1], labels=["feature"])
    mismatched = GaugeMetricFamily(causes, HELP[causes][1], labels=["feature", "cause"])
    for name, each in features.items():
        compared.add_metric([name], each.compared)
        for cause, count in each.causes.items():
            mismatched.add_metric([name, cause], count)
    yield compared
    yield mismatched


def _family(name: str, value: float | None) -> Metric:
    family = GaugeMetricFamily(name, HELP[name][1])
    if value is not None:
        family.add_metric([], value)
    return family
