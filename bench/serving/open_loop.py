"""Requests at a steady rate, whatever the server does, each timed from the moment it was due.

A client that waits for an answer before it sends the next request slows down with the server, and then measures how
patient it is. This one has its schedule: a request whose turn comes while every connection is busy waits, and the wait
counts. It runs in a process of its own, on one thread, with `select`, whose timeout is exact to the microsecond. How
often it was late itself is told with the latencies.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import select
import socket
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

SPAWN = multiprocessing.get_context("spawn")
SETTLING = 60.0
"""Seconds in which the last answers must have come."""
LATE = 0.001
"""Seconds after which a request was sent late."""
TIMER_SLACK = 29
"""Linux's PR_SET_TIMERSLACK: by default the kernel wakes a process up to 50 us late."""


@dataclass(frozen=True)
class Request:
    """A request: a GET of a path, or a POST of a JSON body.

    >>> Request("/health").raw.splitlines()[0]
    b'GET /health HTTP/1.1'
    """

    path: str
    body: str = ""

    @property
    def raw(self) -> bytes:
        """Its bytes."""
        head = [f"{'POST' if self.body else 'GET'} {self.path} HTTP/1.1", "Host: localhost"]
        if self.body:
            head += ["Content-Type: application/json", f"Content-Length: {len(self.body.encode())}"]
        return "\r\n".join([*head, "", self.body]).encode()


@dataclass(frozen=True)
class Schedule:
    """How many requests a second, for how long, after how much that does not count, over how many connections."""

    rate: int
    seconds: float
    warm: float = 5.0
    connections: int = 32


@dataclass(frozen=True)
class Asked:
    """What a client saw: milliseconds of each answer, how many were not 200, and the share that was sent late."""

    ms: npt.NDArray[np.float64]
    failed: int
    late_share: float

    def percentile(self, share: float) -> float:
        """The latency that so many of a hundred requests did not exceed."""
        return float(np.percentile(self.ms, share))


def ask(port: int, requests: Sequence[Request], schedule: Schedule, folder: Path) -> Asked:
    """Send requests, one after the other, in a process of its own; refused when one in a thousand failed."""
    file = folder / "asked.npz"
    client = SPAWN.Process(target=_run, args=(port, [each.raw for each in requests], schedule, file), daemon=True)
    client.start()
    client.join(schedule.warm + schedule.seconds + 2 * SETTLING)
    if client.exitcode != 0:
        client.terminate()
        raise RuntimeError(f"the client ended with {client.exitcode}")
    with np.load(file) as held:
        asked = Asked(held["ms"], int(held["failed"]), float(held["late_share"]))
    if asked.failed * 1_000 > len(asked.ms):
        raise RuntimeError(f"{asked.failed} of {len(asked.ms)} requests failed")
    return asked


def _run(port: int, requests: list[bytes], schedule: Schedule, file: Path) -> None:
    exact_timers()
    gc.disable()
    client = Client(port, requests, schedule)
    client.run()
    counts = slice(int(schedule.warm * schedule.rate), None)
    late = float(np.mean(client.waited[counts] > LATE))
    np.savez(file, ms=client.took[counts] * 1_000, failed=client.failed, late_share=late)


def exact_timers() -> None:
    """Have this process woken when it wants to be."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(TIMER_SLACK, 1, 0, 0, 0)


class Client:
    """One run over a schedule.

    Attributes
    ----------
    took
        Seconds from when each request was due to the end of its answer.
    waited
        Seconds from when each was due to when it was sent.
    """

    def __init__(self, port: int, requests: Sequence[bytes], schedule: Schedule) -> None:
        self._port, self._requests, self._step = port, requests, 1.0 / schedule.rate
        self._count = int((schedule.warm + schedule.seconds) * schedule.rate)
        self._free = deque(connected(port) for _ in range(schedule.connections))
        self._busy: dict[socket.socket, tuple[int, bytearray]] = {}
        self._begin, self._next, self._done = 0.0, 0, 0
        self.took, self.waited, self.failed = np.zeros(self._count), np.zeros(self._count), 0

    def run(self) -> None:
        """Send everything, and wait for the answers."""
        self._begin = time.perf_counter() + 0.1
        over = self._begin + self._count * self._step + SETTLING
        while self._done < self._count:
            self._send()
            if time.perf_counter() > over:
                raise TimeoutError(f"{self._count - self._done} answers are missing")
            self._receive(self._pause())
        for connection in self._free:
            connection.close()

    def _due(self, number: int) -> float:
        return self._begin + number * self._step

    def _send(self) -> None:
        """Send what is due, as far as there are connections."""
        while self._free and self._next < self._count:
            number, now = self._next, time.perf_counter()
            if self._due(number) > now:
                return
            connection = self._free.popleft()
            self._next += 1
            self.waited[number] = now - self._due(number)
            self._busy[connection] = (number, bytearray())
            try:
                connection.sendall(self._requests[number % len(self._requests)])
            except OSError:
                self._fail(connection)

    def _pause(self) -> float:
        """Seconds until the next request is due; those that wait for a connection wait for answers."""
        if not self._free or self._next == self._count:
            return 1.0
        return max(0.0, self._due(self._next) - time.perf_counter())

    def _receive(self, pause: float) -> None:
        for connection in select.select(list(self._busy), [], [], pause)[0]:
            number, held = self._busy[connection]
            try:
                got = connection.recv(1 << 20)
            except OSError:
                got = b""
            if not got:
                self._fail(connection)
                continue
            held += got
            if whole(held):
                self.failed += not held.startswith(b"HTTP/1.1 200")
                self._end(connection, number)
                self._free.append(connection)

    def _end(self, connection: socket.socket, number: int) -> None:
        self.took[number] = time.perf_counter() - self._due(number)
        self._done += 1
        del self._busy[connection]

    def _fail(self, connection: socket.socket) -> None:
        """The server has ended a connection: what was asked on it failed, and there is a new one."""
        self.failed += 1
        self._end(connection, self._busy[connection][0])
        connection.close()
        self._free.append(connected(self._port))


def connected(port: int) -> socket.socket:
    """A connection to a server on this machine."""
    made = socket.create_connection(("127.0.0.1", port), timeout=10)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def whole(held: bytearray) -> bool:
    r"""Whether an answer has come to its end: it says how long it is.

    >>> whole(bytearray(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{")), whole(bytearray(b"HTTP/1.1 200 OK\r\n"))
    (False, False)
    """
    end = held.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = bytes(held[:end]).lower()
    at = head.find(b"content-length:")
    if at < 0:
        raise RuntimeError(f"an answer does not say how long it is: {head[:200]!r}")
    return len(held) >= end + 4 + int(head[at + 15 :].split(b"\r", 1)[0])
