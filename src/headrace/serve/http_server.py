"""Answering over HTTP, in a process that does that alone or beside filling the store.

Told to stop, it takes no more connections, answers what has been asked, and returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from headrace.clock import Clock, SystemClock
from headrace.codec.registry.ids import registry_of
from headrace.codec.wire import SchemaIds
from headrace.config.config import Config, Names
from headrace.define.stream import Stream
from headrace.log.protocol import Log
from headrace.plan.model import Plan
from headrace.read.reader import Reader
from headrace.serve.background import BackgroundThreads, Work, call_when_set
from headrace.serve.connections import Connections
from headrace.serve.dimensions import Dimensions
from headrace.serve.event_intake import Intake
from headrace.serve.fast_path import Shortcuts
from headrace.serve.handler_context import HandlerContext, ServingContext
from headrace.serve.in_flight import work_of
from headrace.serve.metrics import Metrics
from headrace.serve.middleware import Middleware
from headrace.serve.past_reads import PastReads, Tables
from headrace.serve.route import Router
from headrace.serve.routes import ROUTES
from headrace.serve.scoring.models import Models
from headrace.serve.served_samples import Samples
from headrace.serve.server_options import ServerOptions
from headrace.serve.status_view import StatusView

if TYPE_CHECKING:
    import uvicorn

    from headrace.lake.table import LakeTable

SWITCH = 0.0002
"""Seconds that a thread may compute while another waits for the interpreter. A read gives it up whenever it looks into
the store, some dozen times: beside a thread that fills the store it would wait for as many times Python's own 5 ms."""
LOOK = 0.02
"""Seconds between two looks at what is still under way."""


class Answers(Protocol):
    """What answers requests, on which terms, and what is done beside it."""

    app: Middleware
    standing: ServingContext
    terms: ServerOptions
    beside: tuple[Work, ...]


@dataclass(frozen=True)
class Sources:
    """What answers need beside the store: ids of schemas, tables of the lake, dimensions and models."""

    ids: SchemaIds | None = None
    tables: Tables = lambda _: {}
    dimensions: Dimensions = field(default_factory=Dimensions)
    models: Models = field(default_factory=Models)


class Answering:
    """The parts that answer, put together."""

    def __init__(
        self,
        reader: Reader,
        log: Log,
        named: Names,
        watch: StatusView,
        *,
        clock: Clock | None = None,
        terms: ServerOptions | None = None,
        sources: Sources | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        plan, clock, self.terms = reader.plan, clock or SystemClock(), terms or ServerOptions()
        settings = self.terms.settings
        sources = sources or Sources()
        dimensions, models = sources.dimensions, sources.models
        self.standing = ServingContext(
            self.terms.callers, metrics or Metrics(), work_of(settings, clock), dimensions, models
        )
        self._answered = watch.answered
        self.samples = Samples(plan, log, named, settings.sample, tell=self._sampled)
        intake, past = Intake(plan, log, named, clock, sources.ids), PastReads(sources.tables, log, named, dimensions)
        router = Router(ROUTES)
        self.app = Middleware(
            HandlerContext(router, reader, intake, watch, settings, self.samples, past, self.standing)
        )
        self.beside: tuple[Work, ...] = (self.samples.run, dimensions.run, models.run)

    def _sampled(self, *, kept: int = 0, dropped: int = 0) -> None:
        self.standing.metrics.sampled(kept=kept, dropped=dropped)
        self._answered["samples_kept"] += kept
        self._answered["samples_dropped"] += dropped


def ids_of(config: Config, plan: Plan) -> SchemaIds | None:
    """The schema registry of a project's streams, if there is one."""
    return registry_of(config, [stage.stream for stage in plan.admissions])


def lake_of(config: Config) -> Tables:
    """Where past values come from."""

    def tables(stream: Stream) -> Mapping[str, LakeTable]:
        from headrace.lake.location import find_tables

        return find_tables(config, stream)

    return tables


def serve(listener: socket.socket, answers: Answers, stop: threading.Event, started: Callable[[], None]) -> None:
    """Answer on a listening socket until told to stop; `started` is called when it does."""
    import uvloop

    server = _server(answers, started)
    sys.setswitchinterval(SWITCH)

    def exit_soon() -> None:
        server.should_exit = True

    call_when_set(stop, exit_soon)
    beside = BackgroundThreads(answers.beside, exit_soon)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.serve(sockets=[listener]))
    finally:
        beside.end()
    beside.refuse_failure()


def _server(answers: Answers, started: Callable[[], None]) -> uvicorn.Server:
    import uvicorn

    class Server(uvicorn.Server):
        """Signals are the caller's business: uvicorn would end the process with the signal's own exit code."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            """Take no more connections, let requests under way end, and say so on the connections there are."""
            answers.standing.draining = True
            for server in self.servers:
                server.close()
            deadline = time.monotonic() + answers.terms.settings.drain
            while answers.standing.metrics.in_flight and time.monotonic() < deadline:
                await asyncio.sleep(LOOK)
            self.config.timeout_graceful_shutdown = max(1, math.ceil(deadline - time.monotonic()))
            await super().shutdown(sockets)

    terms = answers.terms
    shortcuts = Shortcuts(answers.app.at_once, answers.app.soon)
    settings = terms.settings
    connections = Connections(settings.max_connections, settings.idle, answers.standing.metrics, shortcuts)
    config = uvicorn.Config(
        answers.app,
        http=cast("type[asyncio.Protocol]", connections.protocol()),
        log_config=None,
        access_log=False,
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        ssl_context_factory=None if terms.tls is None else lambda *_: cast("ssl.SSLContext", terms.tls),
    )
    return Server(config)
