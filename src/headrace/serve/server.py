"""The serving process: HTTP in the main thread; the materialiser, the monitor and the samples in threads of their own.

Told to stop, it takes no more connections, answers what has been asked, lets the last batch end, and returns. A thread
that fails takes the process with it: a store that is no longer filled must not look alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import math
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from headrace.clock import Clock, SystemClock
from headrace.config import Config, Names, names
from headrace.define.stream import Stream
from headrace.errors import ConfigError
from headrace.log.protocol import Log
from headrace.plan.model import Plan
from headrace.schema.registry_ids import registry_of
from headrace.schema.wire import SchemaIds
from headrace.serve.app import Parts, build_app
from headrace.serve.connections import LARGEST_HEAD, Connections
from headrace.serve.events import Intake
from headrace.serve.front import Standing
from headrace.serve.limits import Limits
from headrace.serve.monitor import Monitor
from headrace.serve.past import Past, Tables
from headrace.serve.reading import Reader
from headrace.serve.samples import Samples
from headrace.serve.terms import Terms, terms_of
from headrace.store.materialise import Materialiser
from headrace.store.opening import open_store
from headrace.store.protocol import Store
from headrace.topics import RUNS, create, open_log, topics
from headrace.whole import write_whole

if TYPE_CHECKING:
    import uvicorn

    from headrace.lake.table import LakeTable

JOIN = 5.0
LOOK = 0.02
"""Seconds between two looks at what is still under way."""
BACKLOG = 1_024
READY_FILE = "run/serve.json"


class Loaded(Protocol):
    """What is needed of a project."""

    @property
    def config(self) -> Config:
        """Its settings."""
        ...

    def plan(self) -> Plan:
        """What it runs."""
        ...


def main(project: Loaded, stop: threading.Event, *, port: int | None = None, clock: Clock | None = None) -> None:
    """Serve a project until told to stop; where it listens is written to `run/serve.json` in its data folder."""
    config, plan, named = project.config, project.plan(), names(project.config)
    terms, ready = terms_of(config), named.path(READY_FILE)
    with listening(config.host, config.port if port is None else port) as listener, open_log(config) as log:
        create(log, topics(plan, named, config.partitions))
        ids = registry_of(config, [stage.stream for stage in plan.admissions])
        with open_store(config) as store:
            try:
                serving = Serving(plan, log, store, named, clock, ids, Limits.of(config), terms, _lake(config))
                serve(listener, serving, stop, lambda: announce(ready, listener, secure=terms.tls is not None))
            finally:
                _withdraw(ready)


def _lake(config: Config) -> Tables:
    def tables(stream: Stream) -> Mapping[str, LakeTable]:
        from headrace.lake.place import look

        return look(config, stream)

    return tables


class Serving:
    """The parts of a serving process, put together."""

    def __init__(
        self,
        plan: Plan,
        log: Log,
        store: Store,
        named: Names,
        clock: Clock | None = None,
        ids: SchemaIds | None = None,
        limits: Limits | None = None,
        terms: Terms | None = None,
        tables: Tables = lambda _: {},
    ) -> None:
        clock, self.terms = clock or SystemClock(), terms or Terms()
        changelogs = [named.topic(RUNS), *(named.topic(f"changelog.{tiles.id}") for tiles in plan.tile_sets)]
        reader = Reader(plan, store)
        self.filler = Materialiser(log, store, changelogs, clock=clock)
        self.monitor = Monitor(reader, self.filler, log, named, clock)
        intake = Intake(plan, log, named, clock, ids)
        self.samples = Samples(plan, log, named, self.terms.sample)
        self.standing = Standing(self.terms.access)
        past = Past(tables, log, named)
        parts = Parts(reader, intake, self.monitor, clock, limits or Limits(), self.samples, past, self.standing)
        self.app = build_app(parts)


def serve(listener: socket.socket, serving: Serving, stop: threading.Event, started: Callable[[], None]) -> None:
    """Answer on a listening socket until told to stop; `started` is called when it does."""
    server = _server(serving, started)
    ended = threading.Event()
    failures: list[BaseException] = []

    def background(work: Callable[[threading.Event], None]) -> threading.Thread:
        def run() -> None:
            try:
                work(ended)
            except BaseException as failure:
                failures.append(failure)
                server.should_exit = True

        thread = threading.Thread(target=run, name=work.__qualname__, daemon=True)
        thread.start()
        return thread

    def watch(_: threading.Event) -> None:
        stop.wait()
        server.should_exit = True

    threads = [background(work) for work in (serving.filler.run, serving.monitor.run, serving.samples.run)]
    background(watch)
    try:
        asyncio.run(server.serve(sockets=[listener]))
    finally:
        ended.set()
        for thread in threads:
            thread.join(JOIN)
    if failures:
        raise failures[0]


def _server(serving: Serving, started: Callable[[], None]) -> uvicorn.Server:
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
            serving.standing.draining = True
            for server in self.servers:
                server.close()
            deadline = time.monotonic() + serving.terms.drain
            while serving.standing.metrics.in_flight and time.monotonic() < deadline:
                await asyncio.sleep(LOOK)
            self.config.timeout_graceful_shutdown = max(1, math.ceil(deadline - time.monotonic()))
            await super().shutdown(sockets)

    terms = serving.terms
    connections = Connections(terms.max_connections, terms.idle, serving.standing.metrics)
    config = uvicorn.Config(
        serving.app,
        http=cast("type[asyncio.Protocol]", connections.protocol()),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        ssl_context_factory=None if terms.tls is None else lambda *_: cast("ssl.SSLContext", terms.tls),
    )
    return Server(config)


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        # Accepted connections inherit it. Without it a small answer waits 40 ms for the caller's delayed ACK.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        hint = "Choose another with --port or serve.port in headrace.toml; 0 takes a free one."
        taken = error.errno == errno.EADDRINUSE
        message = "The port to serve on is taken." if taken else "The address to serve on cannot be used."
        raise ConfigError("port-taken", message, got=f"{host}:{port}, {error}", hint=hint) from error
    with listener:
        yield listener


def announce(file: Path, listener: socket.socket, *, secure: bool = False) -> None:
    """Write host, port and pid to a file in one step: a reader sees all of it or the file before."""
    host, port = listener.getsockname()[:2]
    scheme = {"scheme": "https"} if secure else {}
    write_whole(file, json.dumps({"host": host, "port": port, "pid": os.getpid(), **scheme}) + "\n")


def _withdraw(file: Path) -> None:
    """Take back what was announced, unless somebody else has announced since."""
    with contextlib.suppress(OSError, ValueError):
        if json.loads(file.read_text(encoding="utf-8"))["pid"] == os.getpid():
            file.unlink()
