"""Serving in one process, for tests that look into it: what fills and what answers, over one store."""

from __future__ import annotations

from typing import Any

from headrace.clock import Clock
from headrace.config.config import Names
from headrace.log.protocol import Log
from headrace.plan.model import Plan
from headrace.serve.http_server import Answering, Sources
from headrace.serve.server import Filling
from headrace.serve.server_options import ServerOptions
from headrace.store.protocol import Store
from headrace.tiles.fold import folds


class Serving:
    """Everything in one process."""

    def __init__(
        self,
        plan: Plan,
        log: Log,
        store: Store,
        named: Names,
        clock: Clock | None = None,
        *,
        terms: ServerOptions | None = None,
        **sources: Any,
    ) -> None:
        store.fold_with(folds(plan))
        filling = Filling(plan, log, store, named, clock)
        self.filler, self.monitor = filling.filler, filling.monitor
        answers = Answering(
            filling.reader, log, named, self.monitor, clock=clock, terms=terms, sources=Sources(**sources)
        )
        self.app, self.standing, self.terms = answers.app, answers.standing, answers.terms
        self.samples = answers.samples
        self.beside = (*filling.beside, *answers.beside)
