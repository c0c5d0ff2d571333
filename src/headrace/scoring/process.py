"""The scoring process: a model of a project that scores a stream, until told to stop, and how that goes.

It reads the store that serving fills and the model from its folder; it writes predictions, and where it is in the
status topic. One that dies is started again and goes on where its positions are. Several models have a process each
(`apart`).
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from headrace.clock import Clock, SystemClock
from headrace.codec.registry.ids import registry_of
from headrace.config.config import Config, models_folder, names
from headrace.define.model import Model
from headrace.log.protocol import Log, Offsets
from headrace.machine import collect_seldom, end_with
from headrace.plan.model import Plan
from headrace.plan.model_inputs import FittingModels
from headrace.read.reader import Reader
from headrace.scoring.features import EventFeatures
from headrace.scoring.model_processes import keep_apart, processes_of
from headrace.scoring.stream_scoring import StreamScoring
from headrace.serve.dimensions import Dimensions, dimensions_of
from headrace.serve.monitor import percentiles
from headrace.store.open import look_into
from headrace.store.protocol import Store
from headrace.topics import STATUS, create, open_log, topics

COMPONENT = "score"
WAIT = 0.05
"""Seconds to wait for records before it looks whether it should end, and at the models' roles."""
LOOK, TELL = 0.25, 1.0
"""Seconds between two looks at roles and progress, and between two words of how it goes."""


class Scoring:
    """One model of a plan, and its stream."""

    def __init__(
        self, plan: Plan, config: Config, log: Log, store: Store, dimensions: Dimensions, clock: Clock, model: Model
    ) -> None:
        named, self._log, self._clock = names(config), log, clock
        create(log, topics(plan, named, config.log.partitions))
        registry = FittingModels(models_folder(config), clock).bind(plan)
        ids = registry_of(config, [stage.stream for stage in plan.admissions])
        features = EventFeatures(model, plan, Reader(plan, store), dimensions)
        self.scoring = StreamScoring(model, features, log, named, registry, clock, ids)
        self._looked = 0.0

    def step(self, come: Mapping[str, Offsets] | None = None) -> int:
        """Score what has come, and look around now and then; how many records there were.

        Parameters
        ----------
        come
            What `wait` said; without it, everything is looked at.
        """
        now = time.monotonic()
        if now - self._looked >= LOOK:
            self.scoring.refresh()
            self._looked = now
        return self.scoring.step(None if come is None else come.get(self.scoring.topic, {}))

    def wait(self) -> Mapping[str, Offsets] | None:
        """Wait for the next record, for a moment; where there is one, or None when there may be any everywhere."""
        if self.scoring.waiting:
            return None
        if reading := self.scoring.reading:
            return self._log.wait({self.scoring.topic: reading}, WAIT)
        time.sleep(WAIT)
        return None

    def standing(self) -> Mapping[str, Any]:
        """How the model is doing."""
        each = self.scoring
        lineup, ends = each.lineup, self._log.end_offsets(each.topic)
        tails = each.features.tails.values()
        return {
            "champion": None if lineup is None else lineup.roles.champion,
            "failing": each.lineups.failure,
            "counts": dict(each.counts),
            "positions": {str(p): at for p, at in each.positions.items()},
            "lag_events": sum(end - each.positions[p] for p, end in ends.items()) if each.positions else 0,
            "latency": percentiles(list(each.latencies), "ms"),
            "tail_events": sum(tail.events for tail in tails),
            "tail_dropped": sum(tail.dropped for tail in tails),
        }

    def close(self) -> None:
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

        def tell(models: Mapping[str, Any]) -> None:
            """Say in the status topic how each model is doing."""
            told = {"component": COMPONENT, "at": clock.now(), "models": models, "alarms": []}
            text = json.dumps(told, separators=(",", ":")).encode()
            log.append(names(config).topic(STATUS), text, key=COMPONENT.encode())

        if len(scored) == 1:
            name = scored[0].name
            if report is None:
                _score(plan, config, log, stop, clock, scored[0], lambda standing: tell({name: standing}))
            else:
                end_with(os.getppid())
                with os.fdopen(report, "w", encoding="utf-8") as lines:
                    _score(plan, config, log, stop, clock, scored[0], lambda standing: _report(lines, standing))
        else:
            with look_into(config):
                pass  # what would end every process is refused here
            keep_apart(processes_of(config, [each.name for each in scored]), stop, tell, TELL)


def _report(lines: TextIO, standing: Mapping[str, Any]) -> None:
    lines.write(json.dumps(standing, separators=(",", ":")) + "\n")
    lines.flush()


def _score(
    plan: Plan,
    config: Config,
    log: Log,
    stop: threading.Event,
    clock: Clock,
    model: Model,
    tell: Callable[[Mapping[str, Any]], None],
) -> None:
    """Score one model's stream until told to stop."""
    dimensions = dimensions_of(config, plan, clock)
    with look_into(config) as store:
        scoring = Scoring(plan, config, log, store, dimensions, clock, model)
        looking = threading.Thread(target=dimensions.run, args=(stop,), name="dimensions", daemon=True)
        looking.start()
        collect_seldom()
        told = 0.0
        try:
            come: Mapping[str, Offsets] | None = None
            while not stop.is_set():
                scoring.step(come)
                if time.monotonic() - told >= TELL:
                    tell(scoring.standing())
                    told = time.monotonic()
                come = scoring.wait()
        finally:
            scoring.close()
