"""Serving over HTTP: values out, events in, how things stand, and one shape for every error.

    GET  /v1/features/{view}/{key...}    all features of a key, now
    POST /v1/events/{stream}             one event, JSON lines, or a JSON array; perhaps compressed
    GET  /health  /ready                 alive; able to answer
    GET  /  /status.json                 the page and its twin

Values are read in the event loop, which takes microseconds; appending waits for the disk and has a thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from headrace.clock import Clock, show_time
from headrace.errors import DataError, HeadraceError, ProjectError, UsageError, shown
from headrace.serve import key as keys
from headrace.serve.body import events_of, read_body
from headrace.serve.events import Accepted, Intake
from headrace.serve.form import answer_json
from headrace.serve.limits import BusyError, Limits, Take, refuse_when_behind, room_for
from headrace.serve.monitor import Monitor
from headrace.serve.page import render
from headrace.serve.reading import Reader

FEATURES = b"/v1/features/"
STATUSES = {"too-large": 413, "bad-encoding": 415}
PATHS = "/v1/features/{view}/{key}, /v1/events/{stream}, /health, /ready, /status.json and /"

_logger = logging.getLogger(__name__)
# Decimals are numbers with all their digits.
_encode = msgspec.json.Encoder(decimal_format="number").encode
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"


@dataclass(frozen=True)
class Parts:
    """What the application is made of."""

    reader: Reader
    intake: Intake
    monitor: Monitor
    clock: Clock
    limits: Limits


class Handlers:
    """One method for each path."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._room = parts, room_for(parts.limits)

    async def features(self, request: Request) -> Response:
        """All features of a key."""
        parts, started = self._parts, time.perf_counter()
        name, slash, rest = _raw_path(request).removeprefix(FEATURES).partition(b"/")
        view = parts.reader.view(unquote_to_bytes(name).decode("utf-8", "replace"))
        given = keys.named(request.scope.get("query_string", b""))
        if "at" in given and "at" not in view.by:
            hint = "Leave `at` out: the answer is for now, and says as of when."
            message = "Values at another time than now cannot be asked for yet."
            raise DataError("bad-request", message, got=shown(given["at"]), hint=hint)
        written = keys.segments(slash + rest)
        key = keys.key_of(view, written) if written or not given else keys.key_of_names(view, given)
        if written and given:
            raise DataError("bad-request", "A key is in the path or in the query, not in both.", got=shown(given))
        answer = parts.reader.read(view.name, key, parts.clock.now())
        parts.monitor.reads.append((time.perf_counter() - started) * 1e6)
        parts.monitor.answered["features"] += 1
        return _json(answer_json(view, answer))

    async def events(self, request: Request) -> Response:
        """Append events."""
        parts, name = self._parts, request.path_params["stream"]
        taken = parts.intake.stream(name)
        given = keys.named(request.scope.get("query_string", b""))
        if given not in ({}, {"unchecked": "1"}):
            hint = "The one parameter is unchecked=1, which appends events as they are."
            raise DataError("bad-request", "The query is not known.", got=shown(given), hint=hint)
        refuse_when_behind(name, parts.monitor.behind.get(name), parts.monitor.free_disk, parts.limits)
        with self._room.request() as take:
            accepted = await self._take(request, take, name, taken.arrival.name, unchecked=bool(given))
        parts.monitor.answered["events"] += len(accepted)
        places = [
            {
                "partition": place.partition,
                "offset": place.offset,
                "arrived_at": None if place.arrived_at is None else show_time(place.arrived_at),
            }
            for place in accepted
        ]
        return _json({"stream": name, "accepted": len(places), "positions": places}, status=202)

    async def _take(
        self, request: Request, take: Take, stream: str, arrival: str | None, *, unchecked: bool
    ) -> list[Accepted]:
        body = await read_body(request, self._parts.limits.max_body, take)
        kind, held = request.headers.get("content-type", ""), request.headers.get(arrival or "")

        def append() -> list[Accepted]:
            return self._parts.intake.take(stream, events_of(body, kind), unchecked=unchecked, arrival=held)

        return await run_in_threadpool(append)

    async def health(self, _: Request) -> Response:
        """The process lives."""
        return _json({"alive": True})

    async def ready(self, _: Request) -> Response:
        """Whether values can be served, and what is waited for."""
        said = self._parts.monitor.readiness()
        ready = all(said.values())
        return _json({"ready": ready, **said}, status=200 if ready else 503)

    async def status(self, _: Request) -> Response:
        """What the page shows."""
        return _json(self._parts.monitor.status())

    async def page(self, _: Request) -> Response:
        """The page, with its first state in it."""
        return HTMLResponse(
            render(self._parts.monitor.status()),
            headers={"content-security-policy": _POLICY, "cache-control": "no-store"},
        )

    async def refused(self, request: Request, error: Exception) -> Response:
        """Every error in one shape; what went wrong inside is told to the log, not to the caller."""
        status, said, headers = _told(request, error)
        if status >= 500:
            _logger.error("%s %s: %s", request.method, request.url.path, error)
        self._parts.monitor.answered["errors"] += 1
        return _json({"error": said}, status=status, headers=headers)


def build_app(parts: Parts) -> Starlette:
    """The application; whatever it needs is in `parts`, so a test can hand it anything."""
    made = Handlers(parts)
    return Starlette(
        routes=[
            Route("/v1/features/{rest:path}", made.features, methods=["GET"]),
            Route("/v1/events/{stream}", made.events, methods=["POST"]),
            Route("/health", made.health, methods=["GET"]),
            Route("/ready", made.ready, methods=["GET"]),
            Route("/status.json", made.status, methods=["GET"]),
            Route("/", made.page, methods=["GET"]),
        ],
        exception_handlers=dict.fromkeys((HeadraceError, BusyError, HTTPException, Exception), made.refused),
    )


def _told(request: Request, error: Exception) -> tuple[int, Mapping[str, Any], Mapping[str, str]]:
    """Status, body and headers of an error."""
    headers: Mapping[str, str] = {}
    if isinstance(error, BusyError):
        # Whatever is left of the body is not read, so the connection ends with the answer.
        return 429, error.error.as_json(), {"retry-after": str(error.seconds), "connection": "close"}
    if isinstance(error, HTTPException):
        headers = error.headers or {}
        path = shown(request.url.path)
        if error.status_code == 405:
            message, hint = "The path does not take that method.", f"It takes {headers.get('Allow', 'others')}."
            error = UsageError("wrong-method", message, got=f"{request.method} {path}", hint=hint)
            return 405, error.as_json(), headers
        error = ProjectError("unknown-path", "There is nothing at this path.", got=path, hint=f"There is {PATHS}.")
    if not isinstance(error, HeadraceError):
        return 500, HeadraceError("internal", "The server failed.", hint="Its log has the details.").as_json(), headers
    status = STATUSES.get(error.code, error.http_status)
    if status == 413:
        headers = {"connection": "close"}
    said = error.as_json()
    return status, said if status < 500 else {**said, "where": None, "got": None}, headers


def _raw_path(request: Request) -> bytes:
    """The path as it was sent: in the decoded one a slash inside a key looks like one between two."""
    raw: bytes = request.scope["raw_path"]
    return raw.partition(b"?")[0]


def _json(content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    always = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(_encode(content), status, {**always, **(headers or {})}, "application/json")
