"""The application of Headrace's serving over a store that another process has filled, for any ASGI server to run.

`BENCH_PROJECT` names the project's folder.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from starlette.types import ASGIApp

from headrace import project
from headrace.config.config import names
from headrace.read.reader import Reader
from headrace.serve.http_server import Answering
from headrace.serve.limits import Behind
from headrace.serve.status_view import ANSWERED, READS, ProjectStatus
from headrace.store.open import look_into
from headrace.topics import open_log

PROJECT = "BENCH_PROJECT"
_open = ExitStack()


class Still:
    """Nothing changes: see `Watch`."""

    def __init__(self) -> None:
        self.behind: Mapping[str, Behind] = {}
        self.free_disk: int | None = None
        self.reads: deque[float] = deque(maxlen=READS)
        self.answered = dict.fromkeys(ANSWERED, 0)

    def readiness(self) -> Mapping[str, bool]:
        """Always ready."""
        return {"store": True}

    def status(self) -> ProjectStatus:
        """Nobody asks."""
        raise NotImplementedError


def made() -> ASGIApp:
    """The application; the store stays open as long as the process lives."""
    loaded = project.load(Path(os.environ[PROJECT]))
    log = _open.enter_context(open_log(loaded.config))
    store = _open.enter_context(look_into(loaded.config))
    return Answering(Reader(loaded.plan(), store), log, names(loaded.config), Still()).app
