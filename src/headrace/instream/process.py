"""The scoring process: every model of a project that scores a stream, until told to stop, and how that goes.

It reads the store that serving fills and models from their folder; it writes predictions, and where it is in the status
topic. One that dies is started again and goes on where its positions are.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from typing import Any

from headrace.clock import Clock, SystemClock
from headrace.config import Config, models_folder, names
from headrace.instream.features import EventFeatures
from headrace.instream.scoring import StreamScoring
from headrace.log.protocol import Log, Offsets
from headrace.machine import collect_seldom
from headrace.plan.inputs import FittingModels
from headrace.plan.model import Plan
from headrace.schema.registry_ids import registry_of
from headrace.serve.dimensions import Dimensions, dimensions_of
from headrace.serve.monitor import percentiles
from headrace.serve.reading import Reader
from headrace.store.opening import look_into
from headrace.store.protocol import Store
from headrace.topics import STATUS, create, open_log, topics

COMPONENT = "score"
WAIT = 0.05
"""Seconds to wait for records before it looks whether it should end, and at the models' roles."""
LOOK, TELL = 0.25, 1.0
"""Seconds between two looks at roles and progress, and between two words of how it goes."""


class Scoring:
    """The models of a plan that score a stream."""

    def __init__(
        self, plan: Plan, config: Config, log: Log, store: Store, dimensions: Dimensions, clock: Clock
    ) -> None:
        named, self._log, self._clock = names(config), log, clock
        self._status = named.topic(STATUS)
        create(log, topics(plan, named, config.partitions))
        reader, registry = Reader(plan, store), FittingModels(models_folder(config), clock).bind(plan)
        ids = registry_of(config, [stage.stream for stage in plan.admissions])
        self.models = [
            StreamScoring(model, EventFeatures(model, plan, reader, dimensions), log, named, registry, clock, ids)
            for model in plan.models
            if model.stream is not None
        ]
        self._looked = self._told = 0.0

    def step(self, come: Mapping[str, Offsets] | None = None) -> int:
        """Score what has come, and look around now and then; how many records there were.

        Parameters
        ----------
        come
            What `wait` said; without it, everything is looked at.
        """
        now = time.monotonic()
        if now - self._looked >= LOOK:
            for each in self.models:
                each.refresh()
            self._looked = now
        done = sum(each.step(None if come is None else come.get(each.topic, {})) for each in self.models)
        if now - self._told >= TELL:
            self.tell()
            self._told = now
        return done

    def wait(self) -> Mapping[str, Offsets] | None:
        """Wait for the next record, for a moment; where there is one, or None when there may be any everywhere."""
        if any(each.waiting for each in self.models):
            return None
        reading: dict[str, dict[int, int]] = {}
        for each in self.models:
            at = reading.setdefault(each.topic, {})
            at |= {p: min(at.get(p, offset), offset) for p, offset in each.reading.items()}
        told = {topic: at for topic, at in reading.items() if at}
        if told:
            return self._log.wait(told, WAIT)
        time.sleep(WAIT)
        return None

    def tell(self) -> None:
        """Say in the status topic how each model is doing."""
        told = {
            "component": COMPONENT,
            "at": self._clock.now(),
            "models": {each.model.name: self._model(each) for each in self.models},
            "alarms": [],
        }
        self._log.append(self._status, json.dumps(told, separators=(",", ":")).encode(), key=COMPONENT.encode())

    def _model(self, each: StreamScoring) -> Mapping[str, Any]:
        lineup, ends = each.lineup, self._log.end_offsets(each.topic)
        tails = each.features.tails.values()
        return {
            "champion": None if lineup is None else lineup.roles.champion,
            "failing": each.lineups.failing,
            "counts": dict(each.counts),
            "positions": {str(p): at for p, at in each.positions.items()},
            "lag_events": sum(end - each.positions[p] for p, end in ends.items()) if each.positions else 0,
            "latency": percentiles(list(each.latencies), "ms"),
            "tail_events": sum(tail.events for tail in tails),
            "tail_dropped": sum(tail.dropped for tail in tails),
        }

    def close(self) -> None:
        """Note how far every model has come."""
        for each in self.models:
            each.note(now=True)


def main(plan: Plan, config: Config, stop: threading.Event, clock: Clock | None = None) -> None:
    """Score the streams of a plan's models until told to stop."""
    clock = clock or SystemClock()
    dimensions = dimensions_of(config, plan, clock)
    with open_log(config, clock) as log, look_into(config) as store:
        scoring = Scoring(plan, config, log, store, dimensions, clock)
        looking = threading.Thread(target=dimensions.run, args=(stop,), name="dimensions", daemon=True)
        looking.start()
        collect_seldom()
        try:
            come: Mapping[str, Offsets] | None = None
            while not stop.is_set():
                scoring.step(come)
                come = scoring.wait()
        finally:
            scoring.close()
