"""A process that answers and does nothing else: it reads the store that another one fills.

It ends when it is told to, after what has been asked is answered, and at once when the process that fills the store
has gone. Run as `python -m headrace.serve.worker LISTENER PIPE FOLDER`, by `workers` alone.
"""

from __future__ import annotations

import _thread
import functools
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

from headrace.config.config import Config, names
from headrace.errors import HeadraceError
from headrace.machine import collect_seldom
from headrace.plan.model import Plan
from headrace.read.reader import Reader
from headrace.safe_text import quote_logs
from headrace.serve.dimensions import dimensions_of
from headrace.serve.http_server import Answering, Sources, ids_of, lake_of, serve
from headrace.serve.metrics import Metrics
from headrace.serve.scoring.models import models_of
from headrace.serve.server_options import terms_of
from headrace.serve.worker_pipe import WorkerStatusView
from headrace.serve.workers import Target
from headrace.store.open import look_into
from headrace.topics import open_log

_logger = logging.getLogger(__name__)


class Loaded(Protocol):
    """What is needed of a project."""

    @property
    def config(self) -> Config:
        """Its settings."""
        ...

    def plan(self) -> Plan:
        """What it runs."""
        ...

    def loader(self) -> Callable[[], Loaded]:
        """What loads it in another process."""
        ...


def main(given: Sequence[str]) -> None:
    """Take over what was inherited, hear what is to be done, and do it."""
    listener, pipe, folder = given
    keeper: Connection = Connection(int(pipe))
    work: Target = keeper.recv()
    work(socket.socket(fileno=int(listener)), keeper, Path(folder))


def worker_of(load: Callable[[], Loaded], workers: int) -> Target:
    """What each of so many workers of a project does, which is loaded anew in each."""
    return functools.partial(_run_worker, load, workers)


def _run_worker(
    load: Callable[[], Loaded], workers: int, listener: socket.socket, keeper: Connection, folder: Path
) -> None:
    quote_logs()
    stop = threading.Event()
    # Ctrl-C reaches every process of a terminal; who has the workers tells them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # In a thread: the interrupted one may hold the event's own lock.
    signal.signal(signal.SIGTERM, lambda *_: _thread.start_new_thread(stop.set, ()))
    project = load()
    config, plan = project.config, project.plan()
    heard = WorkerStatusView(keeper)
    with open_log(config) as log, look_into(config) as store:
        answering = Answering(
            Reader(plan, store),
            log,
            names(config),
            heard,
            terms=terms_of(config, workers),
            sources=Sources(
                ids_of(config, plan), lake_of(config), dimensions_of(config, plan), models_of(config, plan)
            ),
            metrics=Metrics(folder),
        )
        heard.before = answering.standing.tell
        answering.beside = (*answering.beside, heard.run)
        collect_seldom()
        try:
            serve(listener, answering, stop, heard.beat)
        except HeadraceError as error:
            _logger.error("a worker ends: %s", error)
            sys.exit(error.exit_code)


if __name__ == "__main__":
    main(sys.argv[1:])
