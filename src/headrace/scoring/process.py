"""The scoring process: a model of a project that scores a stream until told to stop, and its status.

It reads the store that serving fills and the model from its folder; it writes predictions, and where it is in the
status topic. One that dies is started again and goes on where its positions are. Several models have a process each
(`apart`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from io import RawIOBase

import msgspec

from headrace.clock import Clock, SystemClock
from headrace.codec.registry.ids import registry_of
from headrace.config.config import Config, models_folder, names
from headrace.define.model import Model
from headrace.log.protocol import Log, Offsets
from headrace.machine import collect_seldom, end_with
from headrace.plan.model import Plan
from headrace.plan.model_inputs import FittingModels
from headrace.processes.component import run_component
from headrace.read.reader import Reader
from headrace.scoring.features import EventFeatures
from headrace.scoring.model_processes import ModelProcesses, processes_of
from headrace.scoring.stream_scoring import StreamScoring
from headrace.serve.dimensions import Dimensions, dimensions_of
from headrace.serve.monitor import percentiles
from headrace.status.records import ModelScoring, ScoringStatus
from headrace.status.serving import LatencyShares
from headrace.status.topic import StatusPublisher
from headrace.store.open import look_into
from headrace.store.protocol import Store
from headrace.topics import STATUS, create, open_log, topics

WAIT = 0.05
"""Seconds to wait for records before it looks whether it should end, and at the models' roles."""
LOOK, PUBLISH = 0.25, 1.0
"""Seconds between two looks at roles and progress, and between two reports of how it goes."""


Report = Callable[[ModelScoring], None]


class StreamScorer:
    """The component that scores the stream of one model.

    Parameters
    ----------
    report
        Is given the status about once a second.
    """

    pause = 0.0

    def __init__(
        self,
        plan: Plan,
        config: Config,
        log: Log,
        store: Store,
        dimensions: Dimensions,
        clock: Clock,
        model: Model,
        report: Report,
    ) -> None:
        named, self._log, self._report = names(config), log, report
        create(log, topics(plan, named, config.log.partitions))
        registry = FittingModels(models_folder(config), clock).bind(plan)
        ids = registry_of(config, [stage.stream for stage in plan.admissions])
        features = EventFeatures(model, plan, Reader(plan, store), dimensions)
        self.scoring = StreamScoring(model, features, log, named, registry, clock, ids)
        self._looked = self._reported = 0.0

    def step(self) -> bool:
        """Wait a moment for records and score them; look at roles, and report, now and then."""
        come, now = self._wait(), time.monotonic()
        if now - self._looked >= LOOK:
            self.scoring.refresh()
            self._looked = now
        self.scoring.step(None if come is None else come.get(self.scoring.topic, {}))
        if now - self._reported >= PUBLISH:
            self._report(self.status())
            self._reported = now
        return True

    def _wait(self) -> Mapping[str, Offsets] | None:
        """Wait for the next record, for a moment; where there is one, or None when there may be any everywhere."""
        if self.scoring.waiting:
            return None
        if reading := self.scoring.reading:
            return self._log.wait({self.scoring.topic: reading}, WAIT)
        time.sleep(WAIT)
        return None

    def is_ready(self) -> bool:
        """Always: events wait in the log."""
        return True

    def status(self) -> ModelScoring:
        """How the model is doing."""
        each = self.scoring
        lineup, ends = each.lineup, self._log.end_offsets(each.topic)
        tails, (median, high) = each.features.tails.values(), percentiles(list(each.latencies))
        return ModelScoring(
            champion=None if lineup is None else lineup.roles.champion,
            failing=each.lineups.failure,
            counts=dict(each.counts),
            positions=dict(each.positions),
            lag_events=sum(end - each.positions[p] for p, end in ends.items()) if each.positions else 0,
            latency=LatencyShares(p50_ms=median, p99_ms=high),
            tail_events=sum(tail.events for tail in tails),
            tail_dropped=sum(tail.dropped for tail in tails),
        )

    def stop(self) -> None:
        """Note how far the model has come."""
        self.scoring.note(now=True)


def main(
    plan: Plan,
    config: Config,
    stop: threading.Event,
    clock: Clock | None = None,
    *,
    model: str | None = None,
    report: int | None = None,
) -> None:
    """Score the streams of a plan's models until told to stop.

    Parameters
    ----------
    model
        The one that is to be scored; all of them when left out.
    report
        The descriptor to which it says how it goes, in place of the status topic.
    """
    clock = clock or SystemClock()
    scored = [each for each in plan.models if each.stream is not None and model in (None, each.name)]
    with open_log(config, clock) as log:
        create(log, topics(plan, names(config), config.log.partitions))

        publisher = StatusPublisher(log, names(config).topic(STATUS), clock)

        def publish(models: dict[str, ModelScoring]) -> None:
            """Publish how each model is doing."""
            publisher.publish(ScoringStatus(models=models))

        if len(scored) != 1:
            with look_into(config):
                pass  # what would end every process is refused here
            processes = processes_of(config, [each.name for each in scored])
            run_component(ModelProcesses(processes, publish, PUBLISH), stop)
        elif report is None:
            name = scored[0].name
            _score(plan, config, log, stop, clock, scored[0], lambda status: publish({name: status}))
        else:
            end_with(os.getppid())
            with os.fdopen(report, "wb", buffering=0) as lines:
                _score(plan, config, log, stop, clock, scored[0], partial(_write_report, lines))


def _write_report(lines: RawIOBase, status: ModelScoring) -> None:
    lines.write(msgspec.json.encode(status) + b"\n")


def _score(
    plan: Plan, config: Config, log: Log, stop: threading.Event, clock: Clock, model: Model, report: Report
) -> None:
    """Score one model's stream until told to stop."""
    dimensions = dimensions_of(config, plan, clock)
    with look_into(config) as store:
        scoring = StreamScorer(plan, config, log, store, dimensions, clock, model, report)
        looking = threading.Thread(target=dimensions.run, args=(stop,), name="dimensions", daemon=True)
        looking.start()
        collect_seldom()
        run_component(scoring, stop)
