"""The models of a process: a thread that starts, watches and ends the processes of their versions.

One thread does all that takes time: looking at roles, starting processes, falling back. The event loop asks it and
waits as a request would. It is also the one that every process of a model ends with, so it lives as long as serving
does. Each worker has its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections import deque
from concurrent.futures import Future
from pathlib import Path

from msgspec.structs import asdict, replace

from headrace.clock import Clock, SystemClock
from headrace.config.config import Config, models_folder
from headrace.config.serve_settings import DEFAULTS, ServeSettings
from headrace.errors import HeadraceError, ProjectError, did_you_mean, shown
from headrace.plan.model import Plan
from headrace.plan.model_inputs import FittingModels
from headrace.serve.background import call_when_set
from headrace.serve.metrics import Metrics
from headrace.serve.scoring.lineup import Served
from headrace.serve.scoring.version_process import VersionProcess
from headrace.status.serving import ModelAlarm, ScoreCounts, ServedModelStatus

SOON = 0.1
"""Seconds to the next look while something is to be done."""

_logger = logging.getLogger(__name__)
Wish = tuple[str, int, str, "Future[None]"]
"""A model, the version that fails, why, and what is told when it was seen to."""


class Models:
    """The models of a plan.

    Parameters
    ----------
    plan
        Whose models; None for none.
    folder
        Where their versions are.
    settings
        How long a score may take, how much each version has under way, and how often roles are looked at.
    """

    def __init__(
        self,
        plan: Plan | None = None,
        folder: Path | None = None,
        settings: ServeSettings = DEFAULTS,
        clock: Clock | None = None,
    ) -> None:
        self._wake, self._every, self._looked = threading.Event(), settings.models_every, False
        self._wishes: queue.SimpleQueue[Wish] = queue.SimpleQueue()
        self._falling: dict[tuple[str, int], Future[None]] = {}
        self._fallen: deque[str] = deque()
        self._served: dict[str, Served] = {}
        self.timeout = settings.score_timeout
        if plan is not None and folder is not None and plan.models:
            self._served = _served(plan, folder, settings, clock or SystemClock(), self._wake)

    def find(self, name: str) -> Served:
        """A model by its name; an unknown one is refused with `not-found`."""
        found = self._served.get(name)
        if found is None:
            hint = did_you_mean(name, self._served) or "The project has no models: `hr.model` declares one."
            raise ProjectError("not-found", "There is no such model.", got=shown(name), hint=hint)
        return found

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop, then end every process."""
        if not self._served:
            return
        call_when_set(stop, self._wake.set)
        try:
            while not stop.is_set():
                self._wake.clear()
                self.look()
                self._wake.wait(SOON if any(each.hurried for each in self._served.values()) else self._every)
        finally:
            self.close()

    def look(self) -> None:
        """See to everything once."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._fall(*self._wishes.get_nowait())
        for served in self._served.values():
            try:
                served.look()
            except Exception as error:
                # Whatever it is: who serves goes on, and so do the other models.
                known = isinstance(error, HeadraceError | OSError)
                _logger.error("model %s could not be looked after: %s", served.name, error, exc_info=not known)
        self._looked = True

    def _fall(self, name: str, version: int, why: str, seen: Future[None]) -> None:
        try:
            if self._served[name].fall_back(version, why):
                self._fallen.append(name)
        except Exception as error:
            _logger.error("model %s cannot fall back from version %d: %s", name, version, error)
        finally:
            seen.set_result(None)

    async def fall_back(self, name: str, version: int, why: str) -> None:
        """Have the version before take the place of a champion that fails; all who notice wait for the same."""
        seen = self._falling.get((name, version))
        if seen is None or seen.done():
            seen = self._falling[name, version] = Future()
            # So that a caller who goes away does not take it from the others.
            seen.set_running_or_notify_cancel()
            self._wishes.put((name, version, why, seen))
            self._wake.set()
        await asyncio.wrap_future(seen)

    def close(self) -> None:
        """End every process."""
        for served in self._served.values():
            served.close()

    def readiness(self) -> dict[str, bool]:
        """Whether who should serve was looked at once; nothing where there are no models."""
        return {"models": self._looked} if self._served else {}

    def status(self, metrics: Metrics) -> dict[str, ServedModelStatus]:
        """How each model stands, with what all workers have counted of it."""
        if not self._served:
            return {}
        counted = metrics.scores.standing(metrics.families())
        return {
            name: replace(served.status(), **asdict(counted.get(name, ScoreCounts())))
            for name, served in self._served.items()
        }

    def alarms(self) -> list[ModelAlarm]:
        """What is wrong, in sentences."""
        found = []
        for name, served in self._served.items():
            lineup = served.lineup
            if lineup.fallback_from is not None and lineup.champion is not None:
                says = (
                    f"Model {name} fell back from version {lineup.fallback_from}, which failed, to version "
                    f"{lineup.champion.version}."
                )
                found.append(ModelAlarm(model=name, kind="fallback", says=says))
            found += [
                ModelAlarm(model=name, kind="failing", says=f"Version {version} of model {name} cannot serve: {why}")
                for version, why in served.failing.items()
            ]
        return found

    def tell(self, metrics: Metrics) -> None:
        """Let the metrics have what is under way, and what fell back."""
        for name, served in self._served.items():
            metrics.scores.under_way(name, served.in_flight)
        with contextlib.suppress(IndexError):
            while True:
                metrics.scores.fell_back(self._fallen.popleft())


def _served(
    plan: Plan, folder: Path, settings: ServeSettings, clock: Clock, wake: threading.Event
) -> dict[str, Served]:
    registry = FittingModels(folder, clock).bind(plan)

    def make(model: str, version: int) -> VersionProcess:
        return VersionProcess(folder, model, version, settings, wake.set)

    return {model.name: Served(model, registry, make) for model in plan.models}


def models_of(config: Config, plan: Plan, clock: Clock | None = None) -> Models:
    """The models of a project."""
    return Models(plan, models_folder(config), config.serve, clock)
