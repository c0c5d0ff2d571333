"""The versions of a model that serve: which process stands for which role, and how one takes the place of another.

A thread that may wait looks whether the roles have changed. Whoever is new is held against the plan, started and scored
once before it has its place; then one immutable `Lineup` is put in the place of the other, and whoever left ends when
what it was asked is answered. Who cannot serve has no place: a champion that cannot leaves all as it was, a challenger
or shadow is left out, and `failing` says why. A process that has died is started again, after pauses that grow.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.clock import show_time
from headrace.define.model import Model
from headrace.errors import DataError, HeadraceError
from headrace.models.breaker import Breaker
from headrace.models.manifest import Manifest
from headrace.models.registry import Registry
from headrace.models.roles import CHALLENGER, CHAMPION, SHADOW, Change, Roles, chosen
from headrace.plan.model import Plan
from headrace.plan.model_inputs import inputs_of, unfit
from headrace.serve.scoring.version_process import Child
from headrace.status.serving import FallbackStatus, ServedModelStatus
from headrace.tiles.changelog import KeyPart

FALLBACK: Final = "fallback"
"""Who made a change that nobody asked for."""
FIRST, LONGEST = 0.2, 30.0
"""Seconds: the pause before a process is started for the second time, and the longest; the first is at once."""
LONG = 60.0
"""Seconds of life after which pauses begin anew."""
AGAIN = 10.0
"""Seconds to the next try with a version that could not serve."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Seat:
    """A version in a role."""

    version: int
    role: str
    manifest: Manifest
    child: Child


@dataclass(frozen=True)
class Lineup:
    """Who answers, all at one moment."""

    model: str
    roles: Roles | None = None
    champion: Seat | None = None
    challenger: Seat | None = None
    shadows: tuple[Seat, ...] = ()
    fallback_from: int | None = None

    @property
    def seats(self) -> tuple[Seat, ...]:
        """Everyone, the champion first."""
        return tuple(seat for seat in (self.champion, self.challenger, *self.shadows) if seat is not None)

    def choose(self, key: Sequence[KeyPart]) -> Seat | None:
        """Who answers for a key: the champion, or for its share the challenger."""
        if self.challenger is None or self.roles is None or self.champion is None:
            return self.champion
        version, _ = chosen(self.model, self.roles, key)
        return self.challenger if version == self.challenger.version else self.champion


@dataclass
class Mending:
    """How often a process was started again, when last, and when it may be next."""

    times: int = 0
    began: float = field(default_factory=time.monotonic)
    next: float = 0.0


class Served:
    """One model of a plan and the versions of it that serve.

    Parameters
    ----------
    make
        Makes the process of a version, not started yet.

    Attributes
    ----------
    lineup
        Who answers now; another object whenever that changes.
    failing
        Of each version that should serve and cannot, why.
    stuck
        Versions that fail and have nobody to fall back to.
    """

    def __init__(self, model: Model, plan: Plan, registry: Registry, make: Callable[[str, int], Child]) -> None:
        self.model, self.name, self._registry, self._make = model, model.name, registry, make
        self.columns = inputs_of(plan, model.features)
        self.lineup, self.failing = Lineup(model.name), dict[int, str]()
        self.stuck: frozenset[int] = frozenset()
        self._breakers: dict[int, Breaker] = {}
        self._children: dict[int, Child] = {}
        self._mending: dict[int, Mending] = {}
        self._leaving: list[Child] = []
        self._token: Any = _NEVER
        self._again_at = 0.0

    @property
    def hurried(self) -> bool:
        """Whether there is something to do before the next look is due."""
        return bool(self._leaving) or not all(child.up for child in self._children.values())

    @property
    def in_flight(self) -> int:
        """Rows of all versions that are not answered yet."""
        return sum(child.in_flight for child in self._children.values())

    def breaker(self, seat: Seat) -> Breaker | None:
        """The latest outcomes of a version; None when there is nothing to be done about them."""
        answering = {each.version for each in (self.lineup.champion, self.lineup.challenger) if each is not None}
        return self._breakers.get(seat.version) if seat.version in answering - self.stuck else None

    def look(self) -> None:
        """See whether who should serve has changed, and have them serve; start those again that have died."""
        self._leaving = [child for child in self._leaving if not child.end()]
        self._mend()
        token = self._registry.token(self.name)
        if token == self._token and (not self.failing or time.monotonic() < self._again_at):
            return
        self._token, self._again_at = token, time.monotonic() + AGAIN
        self._fill(self._registry.roles(self.name))

    def _fill(self, roles: Roles) -> None:
        """Put those into the line-up whom the roles name."""
        failing: dict[int, str] = {}
        champion = self._seat(roles.champion, CHAMPION, failing)
        challenger = self._seat(roles.challenger if roles.share > 0 else None, CHALLENGER, failing)
        shadows = [self._seat(version, SHADOW, failing) for version in roles.shadows]
        if champion is not None or roles.champion is None or self.lineup.champion is None:
            came = _came(roles)
            self.lineup = Lineup(
                model=self.name,
                roles=roles,
                champion=champion,
                challenger=challenger,
                shadows=tuple(seat for seat in shadows if seat is not None),
                fallback_from=came.before if came is not None and came.by == FALLBACK else None,
            )
        self._tell(failing)
        self._retire()

    def _seat(self, version: int | None, role: str, failing: dict[int, str]) -> Seat | None:
        """A version ready to score, or None and why it is not."""
        if version is None:
            return None
        try:
            manifest = self._registry.manifest(self.name, version)
            self._refuse_other_columns(manifest)
            if version not in self._children:
                child = self._make(self.name, version)
                child.start()
                self._children[version] = child
        except (HeadraceError, OSError) as error:
            failing[version] = error.brief if isinstance(error, HeadraceError) else str(error)
            return None
        return Seat(version, role, manifest, self._children[version])

    def _refuse_other_columns(self, manifest: Manifest) -> None:
        found = unfit(manifest, self.columns)
        if found:
            message = f"It does not take what feature set {self.model.features.name!r} has now."
            raise DataError("wrong-columns", message, got=" ".join(found), hint="Train it anew.")

    def _retire(self) -> None:
        """Let go of those who no longer serve."""
        serving = {seat.version for seat in self.lineup.seats}
        for version in self._children.keys() - serving:
            self._leaving.append(self._children.pop(version))
            self._mending.pop(version, None)
        # Who comes back begins anew.
        self._breakers = {version: self._breakers.get(version) or Breaker() for version in serving}
        self.stuck &= serving

    def _mend(self) -> None:
        """Start again what has died, if it is time."""
        now = time.monotonic()
        for version, child in self._children.items():
            if child.up:
                continue
            held = self._mending.setdefault(version, Mending())
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

    def fall_back(self, version: int, why: str) -> bool:
        """Have the version before take the place of a champion that fails; whether it was this call that did it.

        A challenger that fails has its keys taken away: the champion is there.
        """
        before = self._registry.roles(self.name)
        try:
            if before.challenger == version:
                roles = self._registry.unchallenge(self.name, why, failing=version, by=FALLBACK)
            else:
                roles = self._registry.rollback(self.name, why, failing=version, by=FALLBACK)
        except HeadraceError as error:
            self.stuck |= {version}
            self._tell({**self.failing, version: f"{why} {error.message}"})
            return False
        _logger.error("version %d of model %s fails, version %s answers: %s", version, self.name, roles.champion, why)
        self.look()
        if any(seat.version == version for seat in (self.lineup.champion, self.lineup.challenger) if seat is not None):
            # The one before cannot serve: `failing` says why, and nobody asks for it with every request.
            self.stuck |= {version}
        return version in (before.champion, before.challenger)

    def _tell(self, failing: Mapping[int, str]) -> None:
        for version, why in failing.items():
            if self.failing.get(version) != why:
                _logger.error("version %d of model %s cannot serve: %s", version, self.name, why)
        self.failing = dict(failing)

    def close(self) -> None:
        """End every process."""
        for child in (*self._children.values(), *self._leaving):
            child.close()
        self.lineup, self._children, self._leaving = Lineup(self.name), {}, []

    def status(self) -> ServedModelStatus:
        """Who answers, and what runs for it."""
        lineup = self.lineup
        changes: Iterable[Change] = () if lineup.roles is None else lineup.roles.history
        return ServedModelStatus(
            features=self.model.features.name,
            champion=None if lineup.champion is None else lineup.champion.version,
            challenger=None if lineup.challenger is None else lineup.challenger.version,
            share=None if lineup.challenger is None or lineup.roles is None else lineup.roles.share,
            shadows=[seat.version for seat in lineup.shadows],
            processes={str(version): child.pid for version, child in list(self._children.items())},
            in_flight=self.in_flight,
            fallback_from=lineup.fallback_from,
            fallbacks=[_fallback(each) for each in changes if each.by == FALLBACK],
            failing="; ".join(f"version {version}: {why}" for version, why in self.failing.items()) or None,
        )


_NEVER = object()
"""What no look has given."""


def _came(roles: Roles) -> Change | None:
    """The change that made the champion what it is."""
    changes = [each for each in roles.history if each.what in ("promote", "rollback")]
    return changes[-1] if changes else None


def _fallback(change: Change) -> FallbackStatus:
    to = change.version if change.what == "rollback" else None
    return FallbackStatus(at=show_time(change.at), failed=change.before, version=to, why=change.why)
