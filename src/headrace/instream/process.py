"""The scoring process: every model of a project that scores a stream, until told to stop, and how that goes.

It reads the store that serving fills and models from their folder; it writes predictions, and where it is in the status
topic. One that dies is started again and goes on where its positions are.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from headrace.clock import Clock, SystemClock
from headrace.config import Config, models_folder, names
from headrace.define.model import Model
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
FIRST, LONGEST = 1.0, 30.0
"""Seconds until a model that failed is begun anew, the first time and at the most."""
LOOK, TELL = 0.25, 1.0
"""Seconds between two looks at roles and progress, and between two words of how it goes."""


_logger = logging.getLogger(__name__)


class ScoredModel:
    """One model of the process: it is begun anew after a failure, and no other model notices.

    Parameters
    ----------
    make
        Makes its scoring, which goes on where its positions are.

    Attributes
    ----------
    failure
        What ended its scoring last; None while it goes on.
    """

    def __init__(self, name: str, make: Callable[[], StreamScoring]) -> None:
        self.name, self._make = name, make
        self.scoring = make()
        self.failure: Exception | None = None
        self._delay, self._due = FIRST, 0.0

    def attempt(self, work: Callable[[StreamScoring], int]) -> int:
        """Do something with its scoring, if it is not waiting after a failure; how many records that took."""
        if time.monotonic() < self._due:
            return 0
        try:
            if self.failure is not None:
                self.scoring = self._make()
                self.scoring.refresh()
            done = work(self.scoring)
        except Exception as error:
            # Whatever it is, it is this model's alone.
            _logger.exception("model %s is begun anew in %.0f s", self.name, self._delay)
            self.failure, self._due = error, time.monotonic() + self._delay
            self._delay = min(self._delay * 2, LONGEST)
            return 0
        if done or self.failure is None:
            self._delay = FIRST
        self.failure = None
        return done


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

        def scoring(model: Model) -> StreamScoring:
            features = EventFeatures(model, plan, reader, dimensions)
            return StreamScoring(model, features, log, named, registry, clock, ids)

        scored = [model for model in plan.models if model.stream is not None]
        self.models = [ScoredModel(model.name, partial(scoring, model)) for model in scored]
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
                each.attempt(_refresh)
            self._looked = now
        done = sum(each.attempt(partial(_step, come=come)) for each in self.models)
        failures = [each.failure for each in self.models]
        if failures and all(failures):
            # What fails for every model is no model's: whoever started the process knows what to do.
            raise failures[0] or RuntimeError
        if now - self._told >= TELL:
            self.tell()
            self._told = now
        return done

    def wait(self) -> Mapping[str, Offsets] | None:
        """Wait for the next record, for a moment; where there is one, or None when there may be any everywhere."""
        going = [each.scoring for each in self.models if each.failure is None]
        if any(each.waiting for each in going):
            return None
        reading: dict[str, dict[int, int]] = {}
        for each in going:
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
            "models": {each.name: self._model(each) for each in self.models},
            "alarms": [],
        }
        self._log.append(self._status, json.dumps(told, separators=(",", ":")).encode(), key=COMPONENT.encode())

    def _model(self, of: ScoredModel) -> Mapping[str, Any]:
        each, failure = of.scoring, of.failure
        lineup, ends = each.lineup, self._log.end_offsets(each.topic)
        tails = each.features.tails.values()
        return {
            "champion": None if lineup is None else lineup.roles.champion,
            "failing": each.lineups.failing if failure is None else f"{type(failure).__name__}: {failure}"[:500],
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
            if each.failure is None:
                each.attempt(_note)


def _refresh(scoring: StreamScoring) -> int:
    scoring.refresh()
    return 0


def _step(scoring: StreamScoring, come: Mapping[str, Offsets] | None) -> int:
    return scoring.step(None if come is None else come.get(scoring.topic, {}))


def _note(scoring: StreamScoring) -> int:
    scoring.note(now=True)
    return 0


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
