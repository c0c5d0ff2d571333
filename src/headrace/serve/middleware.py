"""What every request passes: who asks and from where, its route, how long it takes, and a server that ends.

It speaks ASGI. A request is counted under the name of its route, so no caller can make up names for metrics.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Coroutine, Iterable
from typing import Any

from starlette.datastructures import URL
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from headrace.errors import DiskFullError, HeadraceError
from headrace.serve.access import READ
from headrace.serve.feature_routes import read_at_once
from headrace.serve.handler_context import HandlerContext
from headrace.serve.limits import BusyError
from headrace.serve.responses import error_response, json_answer
from headrace.serve.route import Route
from headrace.serve.routes import READ_KEY, SCORE
from headrace.serve.scoring.route import score_body

Headers = Iterable[tuple[bytes, bytes]]
OTHER = "other"
"""The name in metrics of everything that has no route or is no known method."""
METHODS = frozenset({"GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"})

_logger = logging.getLogger(__name__)


class Middleware:
    """The routes behind access, metrics and drain."""

    def __init__(self, context: HandlerContext) -> None:
        self.context, self._standing = context, context.standing

    def at_once(self, path: bytes, headers: Headers) -> bytes | None:
        """The body of the answer to a GET of a key's features, if it can be had at once and there is nothing to say."""
        standing, started = self._standing, time.perf_counter()
        if standing.draining or self._refused(headers, READ_KEY.role) is not None:
            return None
        body = read_at_once(self.context, path)
        if body is not None:
            standing.metrics.counted(READ_KEY.metric, "GET", 200, time.perf_counter() - started)
        return body

    def soon(self, scope: Scope, body: bytes) -> Coroutine[Any, Any, Response] | None:
        """What gives the answer to a POST for scores, if there is nothing to say before."""
        if self._standing.draining or self._refused(scope["headers"], SCORE.role) is not None:
            return None
        return self._soon(scope, body)

    async def _soon(self, scope: Scope, body: bytes) -> Response:
        metrics, started, status = self._standing.metrics, time.perf_counter(), 500
        metrics.begun()
        try:
            try:
                answer = await score_body(self.context, scope["path"], body)
            except Exception as error:
                answer = self._failure(Request(scope), error)
            status = answer.status_code
        finally:
            metrics.answered(SCORE.metric, "POST", status, time.perf_counter() - started)
        if self._standing.draining:
            answer.headers["connection"] = "close"
        return answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await WebSocketClose()(scope, receive, send)
            return
        standing, started, status = self._standing, time.perf_counter(), 500
        route, scope["path_params"] = self.context.router.find(scope["path"])
        metrics, metric = standing.metrics, OTHER if route is None else route.metric

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if standing.draining:
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        metrics.begun()
        try:
            answer = self._refusal(scope, READ if route is None else route.role)
            if answer is None:
                answer = await self._answer(route, Request(scope, receive))
            await answer(scope, receive, sending)
        finally:
            method = scope["method"] if scope["method"] in METHODS else OTHER
            metrics.answered(metric, method, status, time.perf_counter() - started)

    async def _answer(self, route: Route | None, request: Request) -> Response:
        """The answer of a route, errors included."""
        path, router = request.scope["path"], self.context.router
        try:
            if route is None:
                plain, _ = router.find(path.rstrip("/"))
                if plain is not None:
                    return RedirectResponse(URL(scope={**request.scope, "path": path.rstrip("/")}))
                raise router.unknown_path(path)
            if request.method not in route.methods:
                return self._failure(request, route.wrong_method(request.method, path), allow=", ".join(route.methods))
            return await route.handler(self.context, request)
        except ClientDisconnect:
            # The caller went away half-way: nobody reads this, and nothing went wrong here.
            return Response(status_code=400)
        except Exception as error:
            return self._failure(request, error)

    def _failure(self, request: Request, error: Exception, **more: str) -> Response:
        """Every error in one shape; what went wrong inside is told to the log, not to the caller."""
        status, said, headers = error_response(request, error)
        if status >= 500 and not isinstance(error, BusyError | DiskFullError) and said.get("code") != "too-stale":
            unforeseen = None if isinstance(error, HeadraceError) else error
            _logger.error("%s %s: %s", request.method, request.url.path, error, exc_info=unforeseen)
        self.context.watch.answered["errors"] += 1
        return json_answer({"error": said}, status=status, headers={**headers, **more})

    def _refusal(self, scope: Scope, role: str | None) -> Response | None:
        """The answer to a caller who may not ask, or None."""
        error = self._refused(scope["headers"], role)
        if error is None:
            return None
        status, said, headers = error_response(Request(scope), error)
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
