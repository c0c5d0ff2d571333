"""What all handlers of requests work with, made once for a process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from headrace.clock import SystemClock
from headrace.config.serve_settings import DEFAULTS, ServeSettings
from headrace.read.reader import Reader
from headrace.serve.access import Access
from headrace.serve.body import read_body
from headrace.serve.dimensions import Dimensions
from headrace.serve.event_intake import Intake
from headrace.serve.feature_reads import FLAG, Reads
from headrace.serve.in_flight import RequestGates, work_of
from headrace.serve.limits import Take, room_for
from headrace.serve.metrics import Metrics
from headrace.serve.origins import Callers
from headrace.serve.past_reads import PastReads
from headrace.serve.request_queue import sent_within
from headrace.serve.route import Router
from headrace.serve.scoring.models import Models
from headrace.serve.scoring.rows import TRIES, RowScoring
from headrace.serve.served_samples import Samples
from headrace.serve.status_view import StatusView


@dataclass
class ServingContext:
    """How the process stands, as requests see it."""

    callers: Callers = field(default_factory=Callers)
    metrics: Metrics = field(default_factory=Metrics)
    work: RequestGates = field(default_factory=lambda: work_of(DEFAULTS, SystemClock()))
    dimensions: Dimensions = field(default_factory=Dimensions)
    models: Models = field(default_factory=Models)
    draining: bool = False

    @property
    def access(self) -> Access:
        """The API keys."""
        return self.callers.access

    def tell(self) -> None:
        """Let the metrics have what is under way now, how old tables are, and which models fell back."""
        self.work.tell(self.metrics)
        self.models.tell(self.metrics)
        self.dimensions.tell(self.metrics)


class HandlerContext:
    """The parts of a process that answers, as handlers use them."""

    def __init__(
        self,
        router: Router,
        reader: Reader,
        intake: Intake,
        watch: StatusView,
        limits: ServeSettings,
        samples: Samples,
        past: PastReads,
        standing: ServingContext,
    ) -> None:
        self.router, self.plan, self.intake, self.watch, self.limits = router, reader.plan, intake, watch, limits
        self.past, self.standing, self.work = past, standing, standing.work
        # Readers do not take the room of writers, nor writers that of readers.
        self.writing_room, self.reading_room = room_for(limits), room_for(limits)
        self.reading_room.status = 503
        self.reads = Reads(reader, self.work.clock, watch, samples, standing.metrics, standing.dimensions)
        self.scoring = RowScoring(standing.models, standing.metrics.scores)
        # Then a score needs no second clock: a model is given up long before the request is.
        self.scores_in_time = TRIES * standing.models.timeout <= limits.timeout
        names = {planned.view.name for planned in reader.plan.features if limits.stale == FLAG}
        self.flagged_views = {name.encode(): self.reads.find(name) for name in names}
        """Views whose stale values are flagged, by name."""
        self.openapi: dict[str, Any] = {}
        """The OpenAPI document; empty until it is first asked for."""

    async def read_body(self, request: Request, take: Take) -> bytes:
        """The body of a request, which must come in time."""
        return await sent_within(read_body(request, self.limits.max_body, take), self.limits.timeout)
