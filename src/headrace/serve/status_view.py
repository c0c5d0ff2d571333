"""How things stand, as those who answer requests see it, and what they tell of their own work.

In one process it is the `monitor`; where several answer, each has what it last `heard` from the one that fills the
store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from headrace.alarms.alarm import AlarmStatus
from headrace.serve.limits import Behind
from headrace.status.serving import (
    DimensionStatus,
    ModelAlarm,
    RequestCounts,
    ServedModelStatus,
    StepLatencies,
    StoreSize,
    StoreUpdates,
    ViewStatus,
)
from headrace.status.streams import PublishedStatus

READS = 2_000
"""How many of the newest read times are kept."""
ANSWERED = ("features", "events", "errors", "samples_kept", "samples_dropped")
"""What is counted for the page."""


class PipelineAge(Struct, kw_only=True):
    """When the pipeline last published its status."""

    at: str
    age_ms: float


class ProjectStatus(PublishedStatus, kw_only=True):
    """Everything that the page shows; as JSON it is `/status.json`, the page's twin."""

    at: str
    project: str
    plan: str
    ready: bool
    waiting_for: list[str]
    alarms: list[AlarmStatus | ModelAlarm]
    views: dict[str, ViewStatus]
    materialiser: StoreUpdates
    latency: StepLatencies
    store: StoreSize
    requests: RequestCounts
    pipeline: PipelineAge | None = None
    dimensions: dict[str, DimensionStatus] = field(default_factory=dict)
    models: dict[str, ServedModelStatus] = field(default_factory=dict)

    def of_worker(
        self,
        waiting: Sequence[str],
        dimensions: dict[str, DimensionStatus],
        models: dict[str, ServedModelStatus],
        alarms: Sequence[ModelAlarm],
    ) -> ProjectStatus:
        """The status with the tables and models of the process that answers, and what it waits for."""
        return replace(
            self,
            ready=self.ready and not waiting,
            waiting_for=[*self.waiting_for, *waiting],
            alarms=[*self.alarms, *alarms],
            dimensions=dimensions,
            models=models,
        )


class StatusView(Protocol):
    """What requests ask, and what they tell.

    Attributes
    ----------
    behind
        How far the pipeline is behind each stream.
    free_disk
        Bytes that are left where the embedded log is; None if that is not known.
    reads
        How long the newest reads took, in microseconds.
    answered
        Keys read, events taken, errors, and samples kept or not, since the start.
    """

    @property
    def behind(self) -> Mapping[str, Behind]: ...

    @property
    def free_disk(self) -> int | None: ...

    @property
    def reads(self) -> deque[float]: ...

    @property
    def answered(self) -> dict[str, int]: ...

    def readiness(self) -> Mapping[str, bool]:
        """What must be true before values are served: the parts of `/ready`."""
        ...

    def status(self) -> ProjectStatus:
        """Everything the page shows; it may take a while."""
        ...
