"""The processes of a model's versions that serve: started when a version gets a role, ended when it has none any more.

Which versions serve, and how one takes the place of another, is `models.lineup`. A thread that may wait looks whether
anything has changed. A version is held against the plan, started and scored once before it has its place; one that left
ends when what it was asked is answered. A process that has died is started again, after pauses that grow.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.clock import show_time
from headrace.define.model import Model
from headrace.errors import HeadraceError
from headrace.models.lineup import Lineup, Lineups
from headrace.models.roles import FALLBACK, RoleChange
from headrace.plan.model_inputs import FittingModels
from headrace.serve.scoring.version_process import VersionProcess
from headrace.status.serving import FallbackStatus, ServedModelStatus

FIRST, LONGEST = 0.2, 30.0
"""Seconds: the pause before a process is started for the second time, and the longest; the first is at once."""
LONG = 60.0
"""Seconds of life after which pauses begin anew."""
AGAIN = 10.0
"""Seconds to the next try with a version that could not serve."""

_logger = logging.getLogger(__name__)


@dataclass
class Mending:
    """How often a process was started again, when last, and when it may be next."""

    times: int = 0
    began: float = field(default_factory=time.monotonic)
    next: float = 0.0


class Served(Lineups[VersionProcess]):
    """One model of a plan and the processes of its versions that score.

    Parameters
    ----------
    make
        Makes the process of a version, not started yet.
    """

    def __init__(self, model: Model, registry: FittingModels, make: Callable[[str, int], VersionProcess]) -> None:
        self._leaving: list[VersionProcess] = []
        super().__init__(registry, model.name, self._start, self._leaving.append, AGAIN)
        self.model, self.columns, self._models, self._make = model, registry.inputs(model.name), registry, make
        self._mending: dict[int, Mending] = {}

    def _start(self, version: int) -> VersionProcess:
        self._models.refuse_unfit(self.name, version)
        child = self._make(self.name, version)
        child.start()
        return child

    @property
    def _children(self) -> dict[int, VersionProcess]:
        return {seat.version: seat.scorer for seat in self.lineup.seats}

    @property
    def hurried(self) -> bool:
        """Whether there is something to do before the next look is due."""
        return bool(self._leaving) or not all(seat.scorer.up for seat in self.lineup.seats)

    @property
    def in_flight(self) -> int:
        """Rows of all versions that are not answered yet."""
        return sum(seat.scorer.in_flight for seat in self.lineup.seats)

    def look(self) -> None:
        """See whether who should serve has changed, and have them serve; start those again that have died."""
        self._leaving[:] = [child for child in self._leaving if not child.end()]
        self._mend()
        self.refresh()

    def _mend(self) -> None:
        """Start again what has died, if it is time."""
        now, children = time.monotonic(), self._children
        self._mending = {version: self._mending.get(version) or Mending() for version in children}
        for version, child in children.items():
            if child.up:
                continue
            held = self._mending[version]
            if now - held.began > LONG:
                held.times, held.next = 0, 0.0
            if now < held.next:
                continue
            held.began, held.next, held.times = now, now + min(LONGEST, FIRST * 2**held.times), held.times + 1
            _logger.error("version %d of model %s has ended: starting it again", version, self.name)
            try:
                child.start()
            except (HeadraceError, OSError) as error:
                _logger.error("version %d of model %s cannot be started: %s", version, self.name, error)

    def close(self) -> None:
        """End every process."""
        for child in (*(seat.scorer for seat in self.lineup.seats), *self._leaving):
            child.close()
        self._leaving.clear()
        self.lineup = Lineup(self.name)

    def status(self) -> ServedModelStatus:
        """Who answers, and what runs for it."""
        lineup = self.lineup
        return ServedModelStatus(
            features=self.model.features.name,
            champion=None if lineup.champion is None else lineup.champion.version,
            challenger=None if lineup.challenger is None else lineup.challenger.version,
            share=None if lineup.challenger is None else lineup.roles.share,
            shadows=[seat.version for seat in lineup.shadows],
            processes={str(version): child.pid for version, child in self._children.items()},
            in_flight=self.in_flight,
            fallback_from=lineup.fallback_from,
            fallbacks=[_fallback_status(each) for each in lineup.roles.history if each.by == FALLBACK],
            failing=self.failure,
        )


def _fallback_status(change: RoleChange) -> FallbackStatus:
    to = change.version if change.what == "rollback" else None
    return FallbackStatus(at=show_time(change.at), failed=change.before, version=to, why=change.why)
