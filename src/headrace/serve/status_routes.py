"""How things stand, over HTTP: alive, ready, the page and its twin, metrics, and what can be asked.

They only look: nothing here reads a key or takes an event.
"""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from headrace.config.serve_settings import ServeSettings
from headrace.plan.model import Plan
from headrace.serve import openapi
from headrace.serve.middleware import Standing
from headrace.serve.responses import json_answer
from headrace.serve.status_page import render
from headrace.serve.status_view import Watch

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Looks:
    """One method for each path."""

    def __init__(self, plan: Plan, limits: ServeSettings, watch: Watch, standing: Standing) -> None:
        self._plan, self._limits, self._watch, self._standing = plan, limits, watch, standing
        self._models = standing.models
        self._openapi: dict[str, Any] = {}

    def routes(self) -> list[Route]:
        """The paths."""
        paths = {
            "/openapi.json": self.openapi,
            "/metrics": self.metrics,
            "/health": self.health,
            "/ready": self.ready,
            "/status.json": self.status,
            "/": self.page,
        }
        return [Route(path, handler, methods=["GET"]) for path, handler in paths.items()]

    async def health(self, _: Request) -> Response:
        """The process lives."""
        return json_answer({"alive": True})

    async def ready(self, _: Request) -> Response:
        """Whether values can be served, and what is waited for."""
        tables = self._standing.dimensions
        said = {**self._watch.readiness(), **tables.readiness(), **self._models.readiness()}
        # It answers all the same, from what it last read.
        failing = {"failing_dimensions": sorted(tables.failing)} if tables.failing else {}
        if self._standing.draining:
            return json_answer({"ready": False, **said, **failing, "draining": True}, status=503)
        ready = all(said.values())
        return json_answer({"ready": ready, **said, **failing}, status=200 if ready else 503)

    async def status(self, _: Request) -> Response:
        """What the page shows."""
        return json_answer(await self._status())

    async def page(self, _: Request) -> Response:
        """The page, with its first state in it."""
        headers = {"content-security-policy": _POLICY, "cache-control": "no-store"}
        return HTMLResponse(render(await self._status()), headers=headers)

    async def openapi(self, _: Request) -> Response:
        """What can be asked, as OpenAPI."""
        if not self._openapi:
            keyed = bool(self._standing.access.keys)
            self._openapi = openapi.document(self._plan, self._limits, keyed=keyed)
        return json_answer(self._openapi)

    async def metrics(self, _: Request) -> Response:
        """Numbers for Prometheus."""
        self._standing.tell()
        text = self._standing.metrics.text(await self._status())
        return Response(text, headers={"cache-control": "no-store"}, media_type=_PROMETHEUS)

    async def _status(self) -> dict[str, Any]:
        """How things stand; another process may have to be asked, but tables and models are in this one."""
        told, tables, models = await run_in_threadpool(self._watch.status), self._standing.dimensions, self._models
        counted = await run_in_threadpool(models.status, self._standing.metrics)
        here = {**tables.readiness(), **models.readiness()}
        waiting = [part for part, there in here.items() if not there]
        ready = {"ready": told["ready"] and not waiting, "waiting_for": [*told["waiting_for"], *waiting]}
        alarms = {"alarms": [*told["alarms"], *models.alarms()]}
        return told | ready | alarms | {"dimensions": tables.status(), "models": counted}
