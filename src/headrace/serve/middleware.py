"""What every request passes first: who asks, from where, how many there are, how long it takes, and a server that ends.

It stands before the application and speaks ASGI: nothing here knows what is asked for. Routes are few and known, so
that no caller can make up names for metrics.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.clock import SystemClock
from headrace.config.serve_settings import DEFAULTS
from headrace.errors import HeadraceError
from headrace.serve.access import READ, WRITE, Access
from headrace.serve.dimensions import Dimensions
from headrace.serve.in_flight import Work, work_of
from headrace.serve.metrics import Metrics
from headrace.serve.origins import Callers
from headrace.serve.responses import json_answer, told
from headrace.serve.scoring.models import Models

Headers = Iterable[tuple[bytes, bytes]]
OPEN = frozenset({"/health", "/ready"})
"""What is answered without a key: whoever looks after the process has none."""
WHOLE = frozenset({"/v1/features", "/openapi.json", "/metrics", "/status.json", "/", *OPEN})
FEATURES, EVENTS, OTHER = "/v1/features/{name}", "/v1/events/{stream}", "other"
SCORE = "/v1/score/{model}"
METHODS = frozenset({"GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass
class Standing:
    """How the process stands, as requests see it."""

    callers: Callers = field(default_factory=Callers)
    metrics: Metrics = field(default_factory=Metrics)
    work: Work = field(default_factory=lambda: work_of(DEFAULTS, SystemClock()))
    dimensions: Dimensions = field(default_factory=Dimensions)
    models: Models = field(default_factory=Models)
    draining: bool = False

    @property
    def access(self) -> Access:
        """The API keys."""
        return self.callers.access

    def tell(self) -> None:
        """Let the metrics have what is under way now, how old tables are, and which models fell back."""
        self.work.tell(self.metrics)
        self.models.tell(self.metrics)
        self.dimensions.tell(self.metrics)


def route_of(path: str) -> str:
    """The route of a path, one of a few.

    >>> route_of("/v1/features/cards/42"), route_of("/v1/events/payments"), route_of("/x")
    ('/v1/features/{name}', '/v1/events/{stream}', 'other')
    """
    if path.startswith("/v1/features/"):
        return FEATURES
    if path.startswith("/v1/events/"):
        return EVENTS
    if path.startswith("/v1/score/"):
        return SCORE
    return path if path in WHOLE else OTHER


def role_of(route: str) -> str | None:
    """The role that a route needs; None for those that are always open.

    >>> role_of("/health"), role_of("/v1/events/{stream}"), role_of("other")
    (None, 'write', 'read')
    """
    if route in OPEN:
        return None
    return WRITE if route == EVENTS else READ


class Front:
    """The application behind access, metrics and drain.

    Parameters
    ----------
    straight
        Answers the one route that is asked most, a key's features, without a router in between.
    at_once
        Does so without waiting for anything: the body of the answer to a path, or None when there is more to it.
    scored
        The answer to a request for scores, by its scope and body, errors included.
    """

    def __init__(
        self,
        app: ASGIApp,
        standing: Standing,
        straight: ASGIApp,
        at_once: Callable[[bytes], bytes | None],
        scored: Callable[[Scope, bytes], Awaitable[Response]],
    ) -> None:
        self._app, self._standing, self._straight = app, standing, straight
        self._at_once, self._scored = at_once, scored

    def at_once(self, path: bytes, headers: Headers) -> bytes | None:
        """The body of the answer to a GET of a key's features, if it can be had at once and there is nothing to say."""
        standing, started = self._standing, time.perf_counter()
        if standing.draining or self._refused(headers, READ) is not None:
            return None
        body = self._at_once(path)
        if body is not None:
            standing.metrics.counted(FEATURES, "GET", 200, time.perf_counter() - started)
        return body

    def soon(self, scope: Scope, body: bytes) -> Coroutine[Any, Any, Response] | None:
        """What gives the answer to a POST for scores, if there is nothing to say before."""
        if self._standing.draining or self._refused(scope["headers"], READ) is not None:
            return None
        return self._soon(scope, body)

    async def _soon(self, scope: Scope, body: bytes) -> Response:
        metrics, started, status = self._standing.metrics, time.perf_counter(), 500
        metrics.begun()
        try:
            answer = await self._scored(scope, body)
            status = answer.status_code
        finally:
            metrics.answered(SCORE, "POST", status, time.perf_counter() - started)
        if self._standing.draining:
            answer.headers["connection"] = "close"
        return answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        standing, started, status = self._standing, time.perf_counter(), 500
        metrics, route = standing.metrics, route_of(scope["path"])

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if standing.draining:
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        metrics.begun()
        try:
            answering = self._refusal(scope, route)
            if answering is None:
                answering = self._straight if route is FEATURES and scope["method"] == "GET" else self._app
            await answering(scope, receive, sending)
        finally:
            method = scope["method"] if scope["method"] in METHODS else OTHER
            metrics.answered(route, method, status, time.perf_counter() - started)

    def _refusal(self, scope: Scope, route: str) -> Any:
        """The answer to a caller who may not ask, or None."""
        error = self._refused(scope["headers"], role_of(route))
        if error is None:
            return None
        status, said, headers = told(Request(scope), error)
        # The body is not read, so the connection ends with the answer.
        return json_answer({"error": said}, status=status, headers={**headers, "connection": "close"})

    def _refused(self, headers: Headers, role: str | None) -> HeadraceError | None:
        """Why a caller may not ask, or None."""
        callers = self._standing.callers
        try:
            callers.refuse_foreign(headers)
            if role is None or not callers.access.keys:
                return None
            given = [value for name, value in headers if name == b"authorization"]
            callers.access.allow(given[0].decode("latin-1") if len(given) == 1 else None, role)
        except HeadraceError as error:
            return error
        return None
