"""Numbers for Prometheus: what this process counts itself, and how things stand when they are asked for.

The text is the exposition format 0.0.4. A process counts alone, so several of them are several targets; sums over them
are right, because every number is a counter, a histogram or a gauge of its own process.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any

BOUNDS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the latency buckets, in seconds."""

HELP = {
    "headrace_http_requests_total": ("counter", "Requests by route, method and status."),
    "headrace_http_request_seconds": ("histogram", "Seconds from a request's head to the end of its answer, by route."),
    "headrace_http_in_flight": ("gauge", "Requests that are being answered."),
    "headrace_http_rejected_total": ("counter", "Requests sent away with 429 or 503."),
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
    "headrace_store_lag_records": ("gauge", "Changelog records that are not in the store yet."),
    "headrace_store_keys": ("gauge", "Keys in the store."),
    "headrace_store_tiles": ("gauge", "Tiles in the store."),
    "headrace_store_bytes": ("gauge", "Bytes of the store."),
    "headrace_ready": ("gauge", "1 when values can be served."),
    "headrace_clock_behind_seconds": ("gauge", "Seconds that the clock lies behind the latest moment of an answer."),
}
Line = tuple[str, Mapping[str, str], float | int | None]
"""A metric's name, its labels and its value; None is left out."""


class Metrics:
    """Counts requests and reads; used from the event loop alone.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.read("cards", stale=False, missing=True)
    >>> "headrace_reads_total{view=\\"cards\\"} 1" in metrics.text([])
    True
    """

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], int] = {}
        self._times: dict[str, tuple[list[int], list[float]]] = {}
        self._reads: dict[str, list[int]] = {}
        self.in_flight = self.rejected = self.connections = self.ended = 0

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        counted = (route, method, status)
        self._requests[counted] = self._requests.get(counted, 0) + 1
        if route not in self._times:
            self._times[route] = ([0] * (len(BOUNDS) + 1), [0.0])
        counts, total = self._times[route]
        counts[bisect_left(BOUNDS, seconds)] += 1
        total[0] += seconds
        if status in (429, 503):
            self.rejected += 1

    def read(self, view: str, *, stale: bool, missing: bool) -> None:
        """Count one key that was read."""
        counts = self._reads.get(view)
        if counts is None:
            counts = self._reads[view] = [0, 0, 0]
        counts[0] += 1
        counts[1] += stale
        counts[2] += missing

    def text(self, more: Iterable[Line]) -> str:
        """Everything as Prometheus reads it; `more` is what others know."""
        lines: dict[str, list[str]] = {name: [] for name in HELP}
        for name, labels, value in [*self._lines(), *more]:
            if value is not None:
                lines[_family(name)].append(f"{name}{_labels(labels)} {_number(value)}")
        told = []
        for name, written in lines.items():
            kind, meaning = HELP[name]
            told += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", *written] if written else []
        return "\n".join(told) + "\n"

    def _lines(self) -> Iterable[Line]:
        for (route, method, status), count in self._requests.items():
            labels = {"route": route, "method": method, "status": str(status)}
            yield "headrace_http_requests_total", labels, count
        for route, (counts, total) in self._times.items():
            name, running = "headrace_http_request_seconds", 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                running += count
                yield f"{name}_bucket", {"route": route, "le": bound}, running
            yield f"{name}_sum", {"route": route}, total[0]
            yield f"{name}_count", {"route": route}, running
        for view, (reads, stale, missing) in self._reads.items():
            yield "headrace_reads_total", {"view": view}, reads
            yield "headrace_reads_stale_total", {"view": view}, stale
            yield "headrace_reads_missing_total", {"view": view}, missing
        yield "headrace_http_in_flight", {}, self.in_flight
        yield "headrace_http_rejected_total", {}, self.rejected
        yield "headrace_connections", {}, self.connections
        yield "headrace_connections_ended_total", {}, self.ended


def standing(status: Mapping[str, Any]) -> Iterable[Line]:
    """The gauges of a status as `Monitor.status` gives it."""
    yield "headrace_ready", {}, int(status["ready"])
    yield "headrace_store_lag_records", {}, status["materialiser"]["lag_records"]
    for part in ("keys", "tiles", "bytes"):
        yield f"headrace_store_{part}", {}, status["store"][part]
    for name, view in status["views"].items():
        fresh = view["freshness_ms"]
        yield "headrace_view_age_seconds", {"view": name}, None if fresh is None else fresh / 1_000


def _family(name: str) -> str:
    return name if name in HELP else name.rpartition("_")[0]


def _labels(labels: Mapping[str, str]) -> str:
    written = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{written}}}" if written else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float | int) -> str:
    return repr(value)
