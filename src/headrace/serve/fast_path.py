"""Requests that are answered where they are read: ASGI's messages and a router would take longer than the work.

A GET of a key's features is answered at once. A POST for scores that has come in one piece has a task of its own;
whatever comes behind it on the same connection waits, as behind any other. What is special about a request, or wrong
with it, is left to the usual way. Bounds of connections are `connections`' business.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple, cast

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from headrace import http_paths
from headrace.serve.responses import ALWAYS

READ = re.compile(http_paths.fixed_part(http_paths.FEATURES).encode() + rb"[!-~]*")
SCORE = re.compile(http_paths.fixed_part(http_paths.SCORE).encode() + rb"[\w.-]+")
MORE = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"content-encoding"})
"""Headers of requests that there is more to."""
LENGTH = b"content-length"
LARGEST = 16 * 1024
"""Bytes of a body that is worth waiting for until it is whole."""
HEAD = b"".join(b"%b: %b\r\n" % (name.encode(), value.encode()) for name, value in ALWAYS.items())
HEAD += b"content-type: application/json\r\ncontent-length: "

Headers = list[tuple[bytes, bytes]]


class Shortcuts(NamedTuple):
    """Who answers.

    Parameters
    ----------
    at_once
        The body of the answer to a GET, by its path and headers; None when it is to go the usual way.
    soon
        What gives the answer to a POST, by its scope and body; None when it is to go the usual way.
    """

    at_once: Callable[[bytes, Headers], bytes | None]
    soon: Callable[[Any, bytes], Coroutine[Any, Any, Response] | None]


class FastPathProtocol(HttpToolsProtocol):
    """A connection whose plain requests are answered where they are read."""

    def __init__(self, shortcuts: Shortcuts, **given: Any) -> None:
        super().__init__(**given)
        self._shortcuts = shortcuts
        self._turn = self._answered = False
        self._body: bytearray | None = None

    @property
    def answering(self) -> bool:
        """Whether something is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def answered(self) -> None:
        """Is called when an answer was given at once."""

    def data_received(self, data: bytes) -> None:
        """What came with it has its turn; a body of which there is more to come is waited for in the usual way."""
        self._turn = True
        super().data_received(data)
        if self._body is not None and not self.transport.is_closing():
            self._as_usual()

    def on_headers_complete(self) -> None:
        """Answer at once what can be."""
        method = self.parser.get_method()
        self._body, self._answered = None, method == b"GET" and self._answer_at_once()
        if method == b"POST" and self._is_plain(SCORE, LARGEST):
            self._body = bytearray()
        elif not self._answered:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Keep what may be answered when it is whole."""
        if self._body is None:
            super().on_body(body)
        else:
            self._body += body

    def on_message_complete(self) -> None:
        """What was answered already has no more to come, and what was kept is whole."""
        if not self._answered and not (self._body is not None and self._answer_soon()):
            super().on_message_complete()

    def _is_plain(self, path: re.Pattern[bytes], largest: int) -> bool:
        """Whether a request asks for nothing special, no other comes before it, and its caller reads what it gets."""
        if not path.fullmatch(self.url) or b"?" in self.url or b"#" in self.url:
            return False
        if self.answering or self.flow.write_paused or self.transport.is_closing():
            return False
        for name, value in self.headers:
            if name in MORE or (name == LENGTH and not (value.isdigit() and len(value) < 9 and int(value) <= largest)):
                return False
        return bool(self.parser.get_http_version() == "1.1" and self.parser.should_keep_alive())

    def _answer_at_once(self) -> bool:
        # One of many that came together is: the others wait, so that other connections have their turn.
        if not self._turn or not self._is_plain(READ, 0):
            return False
        body = self._shortcuts.at_once(self.url, self.headers)
        if body is None:
            return False
        self.transport.write(b"%b%b%b%d\r\n\r\n%b" % (STATUS_LINE[200], self._always(), HEAD, len(body), body))
        self.server_state.total_requests += 1
        self._turn = False
        self.answered()
        return True

    def _always(self) -> bytes:
        return b"".join([b"%b: %b\r\n" % header for header in self.server_state.default_headers])

    def _answer_soon(self) -> bool:
        scope: Any = self.scope
        scope |= {"method": "POST", "path": self.url.decode("ascii"), "raw_path": self.url, "query_string": b""}
        work = self._shortcuts.soon(scope, bytes(self._body or b""))
        if work is None:
            self._as_usual()
            return False
        self._body = None
        # It stands where uvicorn looks for what is being answered.
        self.cycle = cycle = RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=True,
            on_response=self.on_response_complete,
        )
        task = self.loop.create_task(work)
        self.tasks.add(cast("asyncio.Task[None]", task))
        task.add_done_callback(partial(self._send_answer, cycle))
        return True

    def _send_answer(self, cycle: RequestResponseCycle, task: asyncio.Task[Response]) -> None:
        """Send an answer."""
        self.tasks.discard(cast("asyncio.Task[None]", task))
        cycle.response_complete = True
        if task.cancelled():
            self.transport.close()
        elif not self.transport.is_closing():
            answer = task.result()
            head = b"".join([b"%b: %b\r\n" % header for header in answer.raw_headers])
            status = STATUS_LINE[answer.status_code]
            self.transport.write(b"%b%b%b\r\n%b" % (status, self._always(), head, bytes(answer.body)))
            if not cycle.keep_alive or answer.headers.get("connection") == "close":
                self.transport.close()
        self.on_response_complete()

    def _as_usual(self) -> None:
        """Let a request that was kept go the usual way, as far as it has come."""
        body, self._body = bytes(self._body or b""), None
        super().on_headers_complete()
        if body:
            super().on_body(body)
