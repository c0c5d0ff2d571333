"""Serving over HTTP: values out, events in, how things stand, and one shape for every error.

    GET  /v1/features/{name}/{key...}    all features of a key, now or at a past moment
    POST /v1/features                    many keys, views or a feature set, with request values
    POST /v1/score/{model}               scores of one key or many, with the features they are from
    POST /v1/events/{stream}             one event, JSON lines, or a JSON array; perhaps compressed
    GET  /openapi.json  /metrics         what can be asked; numbers for Prometheus
    GET  /health  /ready                 alive; able to answer
    GET  /  /status.json                 the page and its twin

One key is read in the event loop, which takes microseconds; many are read in slices; appending waits for the disk and
has a thread. `front` stands before all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from headrace.clock import show_time
from headrace.config.serve_settings import ServeSettings
from headrace.errors import DataError, DiskFullError, HeadraceError, shown
from headrace.read import key as keys
from headrace.read.catalog import Readable, key_from_json
from headrace.read.reader import Answer, Reader
from headrace.serve import batch as batches
from headrace.serve.body import events_of, read_body, refuse_too_large
from headrace.serve.event_intake import Accepted, Intake
from headrace.serve.feature_reads import FLAG, Reads, staleness
from headrace.serve.feature_reads import told as told_of
from headrace.serve.limits import BusyError, Take, refuse_when_behind, room_for
from headrace.serve.middleware import Front, Standing
from headrace.serve.past_reads import Past, moment_of
from headrace.serve.request_queue import done_within, sent_within
from headrace.serve.responses import encode, json_answer, told
from headrace.serve.scoring import route as scores
from headrace.serve.scoring.lineup import Served
from headrace.serve.scoring.rows import TRIES, Scoring
from headrace.serve.served_samples import Samples
from headrace.serve.status_routes import Looks
from headrace.serve.status_view import Watch
from headrace.tiles.changelog import KeyPart

FEATURES, SCORE = b"/v1/features/", "/v1/score/"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Parts:
    """What the application is made of."""

    reader: Reader
    intake: Intake
    watch: Watch
    limits: ServeSettings
    samples: Samples
    past: Past
    standing: Standing = field(default_factory=Standing)


class Handlers:
    """One method for each path."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._room = parts, room_for(parts.limits)
        # Who reads is not kept away by who writes, nor the other way round.
        self._reading_room = room_for(parts.limits)
        self._reading_room.status = 503
        self.work = parts.standing.work
        standing = parts.standing
        self._reads = Reads(
            parts.reader, self.work.clock, parts.watch, parts.samples, standing.metrics, standing.dimensions
        )
        self._scoring = Scoring(standing.models, standing.metrics.scores)
        # Then no second clock is needed for a score: what it waits for is given up long before.
        self._scores_in_time = TRIES * standing.models.timeout <= parts.limits.timeout
        names = {planned.view.name for planned in parts.reader.plan.features if parts.limits.stale == FLAG}
        self._views = {name.encode(): self._reads.find(name) for name in names}

    async def features(self, request: Request) -> Response:
        """All features of a key."""
        name, slash, rest = _raw_path(request).removeprefix(FEATURES).partition(b"/")
        of = self._reads.find(unquote_to_bytes(name).decode("utf-8", "replace"))
        given = keys.named(request.scope.get("query_string", b""))
        stale = staleness(None if "stale" in of.by else given.pop("stale", None), self._parts.limits.stale)
        at = None if "at" in of.by else given.pop("at", None)
        written = keys.segments(slash + rest)
        if written and given:
            raise DataError("bad-request", "A key is in the path or in the query, not in both.", got=shown(given))
        key = _key(of, written, given)
        needs = self._reads.requests(of)
        if needs.needed:
            hint = 'POST them to /v1/features, as in {"view": ..., "keys": [...], "request": {...}}.'
            message = f"Feature set {of.name!r} needs request values."
            raise DataError("bad-request", message, got=f"none of {', '.join(needs.needed)}", hint=hint)
        requests, now = needs.read(b"{}"), self.work.clock.now()
        if at is None:
            return json_answer(self._reads.answer(of, key, requests, now, stale))
        moment = moment_of(at, now)
        return json_answer(told_of(of, key, await self._past(of, key, moment), requests, moment, stale))

    async def _past(self, of: Readable, key: Mapping[str, KeyPart], t: int) -> Mapping[str, Answer]:
        """What a key had at a past moment; it takes a while, so it has a thread and a slot."""

        async def work() -> Mapping[str, Answer]:
            async with self.work.reading.slot():
                return await run_in_threadpool(self._parts.past.read, of, key, t)

        return await done_within(work, self._parts.limits.timeout)

    def at_once(self, path: bytes) -> bytes | None:
        """The same for a key of a view and nothing else; None for all others, and for those that are to be refused."""
        name, slash, rest = path.removeprefix(FEATURES).partition(b"/")
        of = self._views.get(name)
        if of is None:
            return None
        try:
            key = _key(of, keys.segments(slash + rest), {})
            return encode(self._reads.answer(of, key, {}, self.work.clock.now(), FLAG))
        except Exception:
            # It is answered again, in the way that says why.
            return None

    async def straight(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The same without a router, which takes longer than the read and finds no key with a line break in it."""
        request = Request(scope)
        try:
            answer = await self.features(request)
        except Exception as error:
            answer = await self.refused(request, error)
        await answer(scope, receive, send)

    async def batch(self, request: Request) -> Response:
        """All features of many keys."""
        limits = self._parts.limits
        with self._reading_room.request() as take:
            body = await sent_within(read_body(request, limits.max_body, take), limits.timeout)
            asked = batches.batch_of(body, self._reads, most=limits.max_keys, stale=limits.stale)

            async def work() -> dict[str, Any]:
                async with self.work.reading.slot():
                    return await batches.answers(asked, self._reads)

            return json_answer(await done_within(work, limits.timeout))

    async def score(self, request: Request) -> Response:
        """Scores of one key or many."""
        limits, served = self._parts.limits, self._scoring.find(request.path_params["model"])
        with self._reading_room.request() as take:
            body = await sent_within(read_body(request, limits.max_body, take), limits.timeout)
            return await self._scored(served, body)

    async def scored(self, scope: Scope, body: bytes) -> Response:
        """The same for a body that has come, without a router."""
        try:
            served = self._scoring.find(scope["path"].removeprefix(SCORE))
            with self._reading_room.request() as take:
                refuse_too_large(body, self._parts.limits.max_body)
                take(len(body))
                return await self._scored(served, body)
        except Exception as error:
            return await self.refused(Request(scope), error)

    async def _scored(self, served: Served, body: bytes) -> Response:
        limits = self._parts.limits
        wanted = scores.wanted_of(body, served, self._reads, most=limits.max_keys, stale=limits.stale)
        one = len(wanted.batch.keys) == 1
        if one and self._scores_in_time:
            return json_answer(await scores.answers(wanted, self._reads, self._scoring))

        async def work() -> dict[str, Any]:
            # One key is read in a moment, as anywhere; how much is scored at once is each version's bound.
            if one:
                return await scores.answers(wanted, self._reads, self._scoring)
            async with self.work.reading.slot():
                return await scores.answers(wanted, self._reads, self._scoring)

        return json_answer(await done_within(work, limits.timeout))

    async def events(self, request: Request) -> Response:
        """Append events."""
        parts, name = self._parts, request.path_params["stream"]
        taken = parts.intake.stream(name)
        given = keys.named(request.scope.get("query_string", b""))
        if given not in ({}, {"unchecked": "1"}):
            hint = "The one parameter is unchecked=1, which appends events as they are."
            raise DataError("bad-request", "The query is not known.", got=shown(given), hint=hint)
        refuse_when_behind(name, parts.watch.behind.get(name), parts.watch.free_disk, parts.limits)
        with self._room.request() as take:
            accepted = await self._take(request, take, name, taken.arrival.name, unchecked=bool(given))
        parts.watch.answered["events"] += len(accepted)
        places = [
            {
                "partition": place.partition,
                "offset": place.offset,
                "arrived_at": None if place.arrived_at is None else show_time(place.arrived_at),
            }
            for place in accepted
        ]
        return json_answer({"stream": name, "accepted": len(places), "positions": places}, status=202)

    async def _take(
        self, request: Request, take: Take, stream: str, arrival: str | None, *, unchecked: bool
    ) -> list[Accepted]:
        limits = self._parts.limits
        body = await sent_within(read_body(request, limits.max_body, take), limits.timeout)
        kind, held = request.headers.get("content-type", ""), request.headers.get(arrival or "")

        def append() -> list[Accepted]:
            return self._parts.intake.take(stream, events_of(body, kind), unchecked=unchecked, arrival=held)

        async def work() -> list[Accepted]:
            async with self.work.writing.slot():
                return await run_in_threadpool(append)

        return await done_within(work, limits.timeout)

    async def gone(self, _: Request, __: Exception) -> Response:
        """The caller went away half-way: nobody reads this, and nothing went wrong here."""
        return Response(status_code=400)

    async def refused(self, request: Request, error: Exception) -> Response:
        """Every error in one shape; what went wrong inside is told to the log, not to the caller."""
        status, said, headers = told(request, error)
        if status >= 500 and not isinstance(error, BusyError | DiskFullError) and said.get("code") != "too-stale":
            unforeseen = None if isinstance(error, HeadraceError) else error
            _logger.error("%s %s: %s", request.method, request.url.path, error, exc_info=unforeseen)
        self._parts.watch.answered["errors"] += 1
        return json_answer({"error": said}, status=status, headers=headers)


def build_app(parts: Parts) -> Front:
    """The application; whatever it needs is in `parts`, so a test can hand it anything."""
    made = Handlers(parts)
    looks = Looks(parts.reader.plan, parts.limits, parts.watch, parts.standing)
    routes = [
        Route("/v1/features/{rest:path}", made.features, methods=["GET"]),
        Route("/v1/features", made.batch, methods=["POST"]),
        Route("/v1/score/{model}", made.score, methods=["POST"]),
        Route("/v1/events/{stream}", made.events, methods=["POST"]),
        *looks.routes(),
    ]
    refusals: dict[Any, Any] = dict.fromkeys((HeadraceError, BusyError, HTTPException, Exception), made.refused)
    refusals[ClientDisconnect] = made.gone
    routed = Starlette(routes=routes, exception_handlers=refusals)
    return Front(routed, parts.standing, made.straight, made.at_once, made.scored)


def _key(of: Readable, written: list[str], given: dict[str, str]) -> dict[str, KeyPart]:
    """A key from the path or the query, by the names of its columns."""
    if of.feature_set is not None:
        return key_from_json(of, dict(given) if given or not written else list(written))
    if len(written) == len(of.by):
        return {name: keys.part_of(name, of.types[name], text) for name, text in zip(of.by, written, strict=True)}
    (view,) = of.views
    key = keys.key_of(view, written) if written or not given else keys.key_of_names(view, given)
    return dict(zip(view.by, key, strict=True))


def _raw_path(request: Request) -> bytes:
    """The path as it was sent: in the decoded one a slash inside a key looks like one between two."""
    raw: bytes = request.scope["raw_path"]
    return raw.partition(b"?")[0]
