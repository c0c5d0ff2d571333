"""What is under way: who works and who waits, reading and writing, and the clock of the answers."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.clock import Clock
from headrace.config.serve_settings import ServeSettings
from headrace.serve.metrics import Metrics
from headrace.serve.monotonic_clock import MonotonicClock
from headrace.serve.request_queue import Gate


@dataclass(frozen=True)
class RequestGates:
    """The gates of readers and writers, so that neither keeps the other away, and the clock."""

    reading: Gate
    writing: Gate
    clock: MonotonicClock

    def tell(self, metrics: Metrics) -> None:
        """Say how much is under way now."""
        metrics.under_way(
            working=self.reading.working + self.writing.working,
            waiting=self.reading.waiting + self.writing.waiting,
            clock_behind=self.clock.behind / 1e6,
        )


def work_of(limits: ServeSettings, clock: Clock) -> RequestGates:
    """Nothing under way yet."""
    reading, writing = (Gate(limits.concurrency, limits.queue, limits.timeout) for _ in range(2))
    return RequestGates(reading, writing, MonotonicClock(clock))
