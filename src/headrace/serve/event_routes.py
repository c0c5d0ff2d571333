"""The handler that appends events. Appending waits for the disk, so it has a thread."""

from __future__ import annotations

from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from headrace.clock import show_time
from headrace.errors import DataError, shown
from headrace.read import key as keys
from headrace.serve.body import events_of
from headrace.serve.event_intake import Accepted
from headrace.serve.handler_context import HandlerContext
from headrace.serve.limits import refuse_when_behind
from headrace.serve.responses import json_answer


async def append_events(context: HandlerContext, request: Request) -> Response:
    """Append events, all of a request or none."""
    watch, name = context.watch, request.path_params["stream"]
    context.intake.stream(name)  # An unknown one is refused before its body is read.
    given = keys.named(request.scope.get("query_string", b""))
    if given not in ({}, {"unchecked": "1"}):
        hint = "The one parameter is unchecked=1, which appends events as they are."
        raise DataError("bad-request", "The query is not known.", got=shown(given), hint=hint)
    refuse_when_behind(name, watch.behind.get(name), watch.free_disk, context.limits)
    with context.writing_room.request() as take:
        body = await context.read_body(request, take)
        work = partial(run_in_threadpool, _append, context, request, body, unchecked=bool(given))
        accepted = await context.work.writing.run(work, context.limits.timeout)
    watch.answered["events"] += len(accepted)
    places = [
        {
            "partition": place.partition,
            "offset": place.offset,
            "arrived_at": None if place.arrived_at is None else show_time(place.arrived_at),
        }
        for place in accepted
    ]
    return json_answer({"stream": name, "accepted": len(places), "positions": places}, status=202)


def _append(context: HandlerContext, request: Request, body: bytes, *, unchecked: bool) -> list[Accepted]:
    name, headers = request.path_params["stream"], request.headers
    events = events_of(body, headers.get("content-type", ""))
    arrival = headers.get(context.intake.stream(name).arrival.name or "")
    return context.intake.take(name, events, unchecked=unchecked, arrival=arrival)
