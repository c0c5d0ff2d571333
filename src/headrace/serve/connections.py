"""Connections under bounds: how many, how long idle, how slow; and one error shape for what is no HTTP at all.

uvicorn ends a connection that is idle after an answer. Here are ended as well: one that never sends a request's head,
or sends it a byte at a time; one whose caller does not read the answer; and, when there are too many, the one that has
been idle longest, so that thousands of idle ones keep nobody out.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from headrace.errors import DataError
from headrace.serve.answering import ALWAYS, encode
from headrace.serve.metrics import Metrics

LARGEST_HEAD = 64 * 1024
"""Bytes of a request's line and headers."""
UNREAD = 10.0
"""Seconds in which a caller must take some of an answer, or what is left of it when the connection is to end."""
SPARE = 256
"""Files and sockets beside connections."""


class Connections:
    """The bounds of a server's connections, and which of them are idle; the one idle longest comes first."""

    def __init__(self, most: int, idle: float, metrics: Metrics) -> None:
        self.most, self.idle, self.metrics = most, idle, metrics
        self.waiting: dict[Bounded, None] = {}

    def protocol(self) -> Callable[..., asyncio.Protocol]:
        """What uvicorn makes for each connection."""

        def made(**given: Any) -> Bounded:
            return Bounded(self, **given)

        return made


class Bounded(H11Protocol):
    """A connection that is idle, sending a head, or being answered; in the first two a timer runs."""

    def __init__(self, bounds: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._bounds = bounds
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it, and end another one when it is one too many."""
        super().connection_made(transport)
        bounds = self._bounds
        bounds.metrics.connections += 1
        self._wait()
        if len(self.connections) > bounds.most:
            next(iter(bounds.waiting)).give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._bounds.metrics.connections -= 1
        self._work()
        self._read_again()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A head that goes on has no more time than it had."""
        super().data_received(data)
        if self._answering:
            self._work()

    def on_response_complete(self) -> None:
        """Idle again."""
        super().on_response_complete()
        if not self._answering:
            self._wait()

    def timeout_keep_alive_handler(self) -> None:
        """uvicorn's own timer; ours does its work."""

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self._work()
        if not self.transport.is_closing():
            self._bounds.waiting[self] = None
            self._timer = self.loop.call_later(self._bounds.idle, self.give_up)

    def _work(self) -> None:
        self._bounds.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def pause_writing(self) -> None:
        """The caller does not read: it has some time to begin."""
        super().pause_writing()
        self._read_again()
        self._unread = self.loop.call_later(UNREAD, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self._read_again()

    def _read_again(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def give_up(self) -> None:
        """End a connection that nothing is being answered on."""
        self._work()
        self._bounds.metrics.ended += 1
        self.transport.close()
        # A caller that does not read would keep the answer, and the connection, for ever.
        self.loop.call_later(UNREAD, self.transport.abort)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """What is no HTTP is refused like everything else."""
        hint = f"The request's line and headers take at most {LARGEST_HEAD:,} bytes."
        error = DataError("bad-request", "The request is no HTTP that the server reads.", hint=hint)
        body = encode({"error": error.as_json()})
        headers = {
            **ALWAYS,
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
        }
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        event = h11.Response(status_code=400, headers=pairs, reason=b"Bad Request")
        for part in (event, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(part) or b"")
        self.transport.close()


def room_for_connections(most: int) -> int:
    """Raise this process's own limit of open files as far as it may; how many connections there is room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return most if soft == resource.RLIM_INFINITY else max(1, min(most, soft - SPARE))
