"""How much is taken over HTTP: the largest body, how much is under way, and when a caller is asked to come back later.

Events are refused with 429 and a time to wait when the pipeline is too far behind a stream, when the embedded log's
disk is nearly full (507), or when too much is under way: every append holds a thread and its body until it is on disk.
Reads of many keys are refused with 503 when their bodies take all the room there is. Who works and who waits is
`gate`'s business.
What the limits are is in `config.serve_settings`; how far behind things are is seen by `monitor`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headrace.config.serve_settings import ServeSettings
from headrace.errors import DiskFullError, HeadraceError, MachineError
from headrace.plural import show_count

SOONEST, LATEST = 1, 60
"""Seconds that a producer is asked to wait, at the least and at the most."""

ROOM = 64 * 1024 * 1024
REQUESTS = 1_000
"""Bytes of bodies, and requests with a body, that are under way at once."""


@dataclass(frozen=True)
class Behind:
    """How many events of a stream the pipeline has yet to read, and how many it reads in a second."""

    events: int
    rate: float


class BusyError(Exception):
    """Carries an error, the seconds to wait and the status out to the answer.

    429 says that events come faster than they are read; 503 that the server itself has its hands full; 507 that the
    disk has no room for events.
    """

    def __init__(self, error: HeadraceError, seconds: int, status: int = 429) -> None:
        super().__init__(error.message)
        self.error, self.seconds, self.status = error, seconds, status


def refuse_when_behind(stream: str, behind: Behind | None, free: int | None, limits: ServeSettings) -> None:
    """Raise `BusyError` when no events can be taken just now; what is not known refuses nothing.

    Examples
    --------
    >>> refuse_when_behind("payments", Behind(900, 50.0), None, ServeSettings(max_lag=1_000))
    >>> refuse_when_behind("payments", Behind(1_200, 50.0), None, ServeSettings(max_lag=1_000))
    Traceback (most recent call last):
    headrace.serve.limits.BusyError: The pipeline has yet to read 1,200 events of stream 'payments'.
    """
    if behind is not None and limits.max_lag and behind.events > limits.max_lag:
        seconds = wait(behind.events - limits.max_lag, behind.rate)
        message = f"The pipeline has yet to read {show_count(behind.events, 'event')} of stream {stream!r}."
        hint = f"Send it again in {seconds} s. More than {limits.max_lag:,} are not taken (serve.max_lag)."
        got = f"{behind.rate:,.0f} events/s are read"
        raise BusyError(MachineError("too-busy", message, got=got, hint=hint), seconds)
    if free is not None and free < limits.min_free_disk:
        message = f"The log's disk has {show_count(free, 'byte')} left."
        least = show_count(limits.min_free_disk, "byte")
        hint = f"Send it again later. Below {least}, no events are taken (serve.min_free_disk)."
        raise BusyError(DiskFullError("disk-full", message, hint=hint), LATEST, DiskFullError.http_status)


def wait(excess: int, rate: float) -> int:
    """Seconds until so many events are read, within bounds; the longest when nothing is being read.

    >>> wait(500, 100.0), wait(1, 100.0), wait(10**9, 100.0), wait(1, 0.0)
    (5, 1, 60, 60)
    """
    return min(max(math.ceil(excess / rate), SOONEST), LATEST) if rate > 0 else LATEST


class Room:
    """What is under way, in bytes and requests; used from the event loop alone. `status` is that of its refusals.

    Examples
    --------
    >>> room = Room(100)
    >>> with room.request() as take:
    ...     take(60)
    ...     room.bytes
    60
    >>> room.bytes
    0
    """

    def __init__(self, most: int, requests: int = REQUESTS) -> None:
        self._most, self._most_requests, self.status = most, requests, 429
        self.bytes = self.requests = 0

    @contextmanager
    def request(self) -> Iterator[Take]:
        """Room for one request, given back at its end."""
        if self.requests >= self._most_requests:
            raise self._busy()
        self.requests += 1
        taken = Take(self)
        try:
            yield taken
        finally:
            self.requests -= 1
            self.bytes -= taken.bytes

    def take(self, size: int) -> None:
        """Take room, or raise `BusyError`."""
        if self.bytes + size > self._most:
            raise self._busy()
        self.bytes += size

    def _busy(self) -> BusyError:
        message = "As much is under way as the server takes at once."
        got = f"{show_count(self.requests, 'request')}, {show_count(self.bytes, 'byte')}"
        error = MachineError("too-busy", message, got=got, hint=f"Send it again in {SOONEST} s, or less at a time.")
        return BusyError(error, SOONEST, self.status)


class Take:
    """Room for one request, taken bit by bit."""

    def __init__(self, room: Room) -> None:
        self._room, self.bytes = room, 0

    def __call__(self, size: int) -> None:
        self._room.take(size)
        self.bytes += size


def room_for(limits: ServeSettings) -> Room:
    """Room for four of the largest bodies at the least, each plain and compressed."""
    return Room(max(ROOM, 8 * limits.max_body))
