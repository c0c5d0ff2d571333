"""The handlers that show how things stand: alive, ready, the page and its twin, metrics, and what can be asked.

They only look: nothing here reads a key or takes an event.
"""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from headrace.serve import openapi
from headrace.serve.handler_context import HandlerContext
from headrace.serve.responses import json_answer
from headrace.serve.status_page import render

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


async def show_health(_: HandlerContext, __: Request) -> Response:
    """The process lives."""
    return json_answer({"alive": True})


async def show_ready(context: HandlerContext, _: Request) -> Response:
    """Whether values can be served, and what is waited for."""
    standing = context.standing
    tables = standing.dimensions
    said = {**context.watch.readiness(), **tables.readiness(), **standing.models.readiness()}
    # It answers all the same, from what it last read.
    failing = {"failing_dimensions": sorted(tables.failing)} if tables.failing else {}
    if standing.draining:
        return json_answer({"ready": False, **said, **failing, "draining": True}, status=503)
    ready = all(said.values())
    return json_answer({"ready": ready, **said, **failing}, status=200 if ready else 503)


async def show_status(context: HandlerContext, _: Request) -> Response:
    """What the page shows."""
    return json_answer(await _status(context))


async def show_page(context: HandlerContext, _: Request) -> Response:
    """The page, with its first state in it."""
    headers = {"content-security-policy": _POLICY, "cache-control": "no-store"}
    return HTMLResponse(render(await _status(context)), headers=headers)


async def show_openapi(context: HandlerContext, _: Request) -> Response:
    """What can be asked, as OpenAPI."""
    if not context.openapi:
        keyed = bool(context.standing.access.keys)
        context.openapi = openapi.document(context.router.routes, context.plan, context.limits, keyed=keyed)
    return json_answer(context.openapi)


async def show_metrics(context: HandlerContext, _: Request) -> Response:
    """Numbers for Prometheus."""
    context.standing.tell()
    text = context.standing.metrics.text(await _status(context))
    return Response(text, headers={"cache-control": "no-store"}, media_type=_PROMETHEUS)


async def _status(context: HandlerContext) -> dict[str, Any]:
    """How things stand; another process may have to be asked, but tables and models are in this one."""
    tables, models = context.standing.dimensions, context.standing.models
    told = await run_in_threadpool(context.watch.status)
    counted = await run_in_threadpool(models.status, context.standing.metrics)
    here = {**tables.readiness(), **models.readiness()}
    waiting = [part for part, there in here.items() if not there]
    ready = {"ready": told["ready"] and not waiting, "waiting_for": [*told["waiting_for"], *waiting]}
    alarms = {"alarms": [*told["alarms"], *models.alarms()]}
    return told | ready | alarms | {"dimensions": tables.status(), "models": counted}
