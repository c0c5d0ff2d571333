"""How things stand, over HTTP: alive, ready, the page and its twin, metrics, and what can be asked.

They only look: nothing here reads a key or takes an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from headrace.plan.model import Plan
from headrace.serve import openapi
from headrace.serve.answering import json_answer
from headrace.serve.front import Standing
from headrace.serve.gate import Gate
from headrace.serve.limits import Limits
from headrace.serve.metrics import standing as gauges
from headrace.serve.monitor import Monitor
from headrace.serve.page import render
from headrace.serve.samples import Samples
from headrace.serve.steady import Steady

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Work:
    """Who works and who waits, reading and writing, and the clock of the answers."""

    reading: Gate
    writing: Gate
    clock: Steady


class Looks:
    """One method for each path."""

    def __init__(
        self, plan: Plan, limits: Limits, *, monitor: Monitor, samples: Samples, work: Work, standing: Standing
    ) -> None:
        self._plan, self._limits, self._monitor, self._samples = plan, limits, monitor, samples
        self._work, self._standing, self._openapi = work, standing, dict[str, Any]()

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
        said = self._monitor.readiness()
        if self._standing.draining:
            return json_answer({"ready": False, **said, "draining": True}, status=503)
        ready = all(said.values())
        return json_answer({"ready": ready, **said}, status=200 if ready else 503)

    async def status(self, _: Request) -> Response:
        """What the page shows."""
        return json_answer(self._status())

    async def page(self, _: Request) -> Response:
        """The page, with its first state in it."""
        headers = {"content-security-policy": _POLICY, "cache-control": "no-store"}
        return HTMLResponse(render(self._status()), headers=headers)

    async def openapi(self, _: Request) -> Response:
        """What can be asked, as OpenAPI."""
        if not self._openapi:
            keyed = bool(self._standing.access.keys)
            self._openapi = openapi.document(self._plan, self._limits, keyed=keyed)
        return json_answer(self._openapi)

    async def metrics(self, _: Request) -> Response:
        """Numbers for Prometheus."""
        samples, work = self._samples, self._work
        more = [
            *gauges(self._monitor.status()),
            ("headrace_working", {}, work.reading.working + work.writing.working),
            ("headrace_waiting", {}, work.reading.waiting + work.writing.waiting),
            ("headrace_samples_kept_total", {}, samples.kept),
            ("headrace_samples_dropped_total", {}, samples.dropped),
            ("headrace_clock_behind_seconds", {}, work.clock.behind / 1e6),
        ]
        text = self._standing.metrics.text(more)
        return Response(text, headers={"cache-control": "no-store"}, media_type=_PROMETHEUS)

    def _status(self) -> dict[str, Any]:
        """How things stand, with what was dropped of the samples."""
        samples, said = self._samples, self._monitor.status()
        said["requests"] |= {"samples_kept": samples.kept, "samples_dropped": samples.dropped}
        return said
