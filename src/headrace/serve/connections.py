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

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from headrace.errors import DataError
from headrace.serve.fast_path import FastPathProtocol, Shortcuts
from headrace.serve.metrics import Metrics
from headrace.serve.responses import ALWAYS, encode

LARGEST_HEAD = 64 * 1024
"""Bytes of a request's line and headers."""
UNREAD = 10.0
"""Seconds in which a caller must take some of an answer, or what is left of it when the connection is to end."""
SPARE = 256
"""Files and sockets beside connections."""
LOOKS = 8
"""How many times in the time a connection may be idle it is looked for such."""


class Connections:
    """The bounds of a server's connections, and which of them are idle; the one idle longest comes first."""

    def __init__(self, most: int, idle: float, metrics: Metrics, shortcuts: Shortcuts) -> None:
        self.most, self.idle, self.metrics, self.shortcuts = most, idle, metrics, shortcuts
        self.waiting: dict[Bounded, float] = {}
        self._looking = False

    def protocol(self) -> Callable[..., asyncio.Protocol]:
        """What uvicorn makes for each connection."""

        def made(**given: Any) -> Bounded:
            return Bounded(self, **given)

        return made

    def wait(self, connection: Bounded) -> None:
        """Nothing is being answered on a connection; it has some time from now."""
        self.waiting.pop(connection, None)
        self.waiting[connection] = connection.loop.time()
        if not self._looking:
            self._looking = True
            connection.loop.call_later(self.idle / LOOKS, self._close_idle, connection.loop)

    def _close_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        """End what has been idle too long. One look for all costs a request nothing, as a timer for each would."""
        while self.waiting:
            connection, since = next(iter(self.waiting.items()))
            if loop.time() - since < self.idle:
                break
            connection.give_up()
        self._looking = bool(self.waiting)
        if self._looking:
            loop.call_later(self.idle / LOOKS, self._close_idle, loop)


class Bounded(FastPathProtocol):
    """A connection that is idle, sending a head, or being answered; in the first two its time runs."""

    def __init__(self, bounds: Connections, **given: Any) -> None:
        super().__init__(bounds.shortcuts, **given)
        self._bounds = bounds
        self._unread: asyncio.TimerHandle | None = None
        self._head, self._in_head = 0, True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it, and end another one when it is one too many."""
        super().connection_made(transport)
        bounds = self._bounds
        bounds.metrics.connected()
        bounds.wait(self)
        if len(self.connections) > bounds.most:
            next(iter(bounds.waiting)).give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._bounds.metrics.disconnected()
        self._bounds.waiting.pop(self, None)
        self._read_again()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A head that goes on has no more time than it had, and only so much room."""
        self._head = self._head + len(data) if self._in_head else len(data)
        super().data_received(data)
        if self.answering:
            self._bounds.waiting.pop(self, None)
        if self._in_head and self._head > LARGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        """A head has ended; one that came in one piece may be too large as well."""
        self._in_head = False
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > LARGEST_HEAD:
            # The parser ends with it, and what is no HTTP is refused.
            raise ValueError("the head is too large")
        super().on_headers_complete()

    def answered(self) -> None:
        """Idle again."""
        self._bounds.wait(self)

    def on_response_complete(self) -> None:
        """Idle again."""
        super().on_response_complete()
        if not self.answering and not self.transport.is_closing():
            self._bounds.wait(self)

    def timeout_keep_alive_handler(self) -> None:
        """uvicorn's own timer; ours does its work."""

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
        self._bounds.waiting.pop(self, None)
        self._bounds.metrics.gave_up()
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
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.transport.write(b"".join([STATUS_LINE[400], lines.encode(), b"\r\n", body]))
        self.transport.close()


def room_for_connections(most: int) -> int:
    """Raise this process's own limit of open files as far as it may; how many connections there is room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return most if soft == resource.RLIM_INFINITY else max(1, min(most, soft - SPARE))
