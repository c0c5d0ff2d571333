"""The serving process: the store is filled and things are watched, while workers, one or more, answer requests.

They are processes of their own: a read that shares an interpreter with whoever fills the store waits for it. A part
that fails takes the process with it: a store that is no longer filled must not look alive.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from headrace.clock import Clock, SystemClock
from headrace.config.config import Names, names
from headrace.errors import ConfigError, DiskFullError
from headrace.files import write_or_overwrite
from headrace.log.protocol import Log
from headrace.plan.model import Plan
from headrace.read.reader import Reader
from headrace.serve.background import JOIN, BackgroundThreads, Work, call_when_set
from headrace.serve.metrics_folder import counts_folder
from headrace.serve.monitor import Monitor
from headrace.serve.server_options import terms_of
from headrace.serve.worker import Loaded, worker_of
from headrace.serve.workers import Workers
from headrace.store.materializer import Materialiser
from headrace.store.open import open_store
from headrace.store.protocol import Store
from headrace.tiles.fold import folds
from headrace.topics import RUNS, create, open_log, topics

BACKLOG = 1_024
READY_FILE = "run/serve.json"


def main(project: Loaded, stop: threading.Event, *, port: int | None = None) -> None:
    """Serve a project until told to stop; where it listens is written to `run/serve.json` in its data folder."""
    config, plan, named = project.config, project.plan(), names(project.config)
    terms, ready, workers = terms_of(config), named.path(READY_FILE), config.serve.workers
    port = config.serve.port if port is None else port
    with listening(config.serve.host, port, workers) as listeners, open_log(config) as log:
        # On a full disk those that are there will do: reads need none.
        with contextlib.suppress(DiskFullError):
            create(log, topics(plan, named, config.log.partitions))

        def started() -> None:
            announce(ready, listeners[0], secure=terms.tls is not None)

        with counts_folder(named.path()) as folder, open_store(config, folds(plan)) as store:
            try:
                filling = Filling(plan, log, store, named, least=config.serve.min_free_disk)
                work = worker_of(project.loader(), workers)
                keep(filling, Workers(listeners, work, filling.monitor, folder, config.serve.drain), stop, started)
            finally:
                _withdraw(ready)


class Filling:
    """What fills the store and watches over everything."""

    def __init__(
        self, plan: Plan, log: Log, store: Store, named: Names, clock: Clock | None = None, *, least: int = 0
    ) -> None:
        clock = clock or SystemClock()
        changelogs = [named.topic(RUNS), *(named.topic(f"changelog.{tiles.id}") for tiles in plan.tile_sets)]
        self.reader = Reader(plan, store)
        self.filler = Materialiser(log, store, changelogs, clock=clock)
        self.monitor = Monitor(self.reader, self.filler, log, named, clock, least=least)
        self.beside: tuple[Work, ...] = (self.filler.run, self.monitor.run)


def keep(filling: Filling, workers: Workers, stop: threading.Event, started: Callable[[], None]) -> None:
    """Fill and watch while workers answer, until told to stop; `started` is called when all of them do."""
    over = threading.Event()
    call_when_set(stop, over.set)
    beside = BackgroundThreads(filling.beside, over.set)
    answering = BackgroundThreads([workers.run], over.set)
    try:
        while not over.wait(0.05):
            if workers.up.is_set():
                started()
                break
        over.wait()
    finally:
        # What was asked is answered from a store that is still filled.
        answering.end(workers.patience + JOIN)
        beside.end()
    answering.refuse_failure()
    beside.refuse_failure()


@contextlib.contextmanager
def listening(host: str, port: int, count: int = 1) -> Iterator[Sequence[socket.socket]]:
    """Listening sockets, all on one port; port 0 takes a free one."""
    family, listeners = socket.AF_INET6 if ":" in host else socket.AF_INET, list[socket.socket]()
    with contextlib.ExitStack() as stack:
        try:
            if count > 1:
                # Several sockets share a port with whoever asks for that as well: nobody else may have it.
                with socket.create_server((host, port), family=family) as first:
                    port = first.getsockname()[1]
            for _ in range(count):
                listener = socket.create_server((host, port), family=family, backlog=BACKLOG, reuse_port=count > 1)
                listeners.append(stack.enter_context(listener))
                # Accepted connections inherit it. Without it a small answer waits 40 ms for the caller's delayed ACK.
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            hint = "Choose another with --port or serve.port in headrace.toml; 0 takes a free one."
            taken = error.errno == errno.EADDRINUSE
            message = "The port to serve on is taken." if taken else "The address to serve on cannot be used."
            raise ConfigError("port-taken", message, got=f"{host}:{port}, {error}", hint=hint) from error
        yield listeners


def announce(file: Path, listener: socket.socket, *, secure: bool = False) -> None:
    """Write host, port and pid to a file in one step: a reader sees all of it or the file before."""
    host, port = listener.getsockname()[:2]
    scheme = {"scheme": "https"} if secure else {}
    write_or_overwrite(file, json.dumps({"host": host, "port": port, "pid": os.getpid(), **scheme}) + "\n")


def _withdraw(file: Path) -> None:
    """Take back what was announced, unless somebody else has announced since."""
    with contextlib.suppress(OSError, ValueError):
        if json.loads(file.read_text(encoding="utf-8"))["pid"] == os.getpid():
            file.unlink()
