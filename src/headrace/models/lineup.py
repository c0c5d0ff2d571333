"""The versions of a model that score now: one value that is swapped as a whole when roles change.

A lineup is taken once and kept to the end of a request or a batch: none is answered by two versions, and none is
dropped by a change. What scores is a `Scorer` here, or a process of its own (`serve.scoring`). A version has its place
when it can score. A champion that cannot leaves the lineup as it was, a challenger or shadow is left out, and `failing`
says why. A version that fails too often gives way to the one before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from headrace.errors import HeadraceError
from headrace.models.breaker import Breaker
from headrace.models.manifest import Manifest
from headrace.models.registry import ModelRegistry
from headrace.models.roles import CHALLENGER, CHAMPION, FALLBACK, SHADOW, KeyPart, Roles, choose_version, fallback_from
from headrace.models.scorer import Scorer

_logger = logging.getLogger(__name__)
S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Seat(Generic[S]):
    """A version in a role, and what scores for it."""

    version: int
    role: str
    manifest: Manifest
    scorer: S


@dataclass(frozen=True)
class Lineup(Generic[S]):
    """The versions of a model that have a role and can score, all at one moment."""

    model: str
    roles: Roles = field(default_factory=Roles)
    champion: Seat[S] | None = None
    challenger: Seat[S] | None = None
    shadows: tuple[Seat[S], ...] = ()

    @property
    def answering(self) -> tuple[Seat[S], ...]:
        """Those whose scores are answers, the champion first."""
        return tuple(seat for seat in (self.champion, self.challenger) if seat is not None)

    @property
    def seats(self) -> tuple[Seat[S], ...]:
        """All of them, the champion first."""
        return (*self.answering, *self.shadows)

    @cached_property
    def fallback_from(self) -> int | None:
        """The version that failed and in whose place the champion is; None when somebody wanted it."""
        return fallback_from(self.roles)

    def choose(self, key: Sequence[KeyPart]) -> Seat[S] | None:
        """The version that answers a key: the champion, or for its share the challenger."""
        if self.challenger is None or self.champion is None:
            return self.champion
        version, _ = choose_version(self.model, self.roles, key)
        return self.challenger if version == self.challenger.version else self.champion


class Lineups(Generic[S]):
    """The lineup of a model as its roles change.

    Parameters
    ----------
    registry, model
        Where the model is kept, and its name.
    load
        Makes what scores for a version, ready to score.
    release
        Is handed what scores no longer.
    pause
        Seconds to the next try with a version that could not be loaded.

    Attributes
    ----------
    lineup
        The lineup now: take it once for all that belongs together. It is another object whenever anything changes.
    stuck
        Versions that fail and have none to give way to, and why.
    """

    def __init__(
        self,
        registry: ModelRegistry,
        model: str,
        load: Callable[[int], S],
        release: Callable[[S], object] = lambda _: None,
        pause: float = 0.0,
    ) -> None:
        self._registry, self.name, self._load, self._release, self._pause = registry, model, load, release, pause
        self.lineup = Lineup[S](model)
        self.stuck: Mapping[int, str] = {}
        self._unloaded: Mapping[int, str] = {}
        self._unread: str | None = None
        self._breakers: Mapping[int, Breaker] = {}
        self._token: Any = _NEVER
        self._next_try = 0.0

    @property
    def failing(self) -> dict[int, str]:
        """Of each version that should score and cannot, why."""
        return {**self._unloaded, **self.stuck}

    @property
    def failure(self) -> str | None:
        """What is wrong, in sentences; None when all is well."""
        said = [f"Version {version}: {why}" for version, why in self.failing.items()]
        return " ".join([*([] if self._unread is None else [self._unread]), *said]) or None

    def refresh(self) -> bool:
        """Look whether roles have changed, and take over what they say; whether there is a new lineup."""
        token, is_whole = self._registry.token(self.name), not self._unloaded and self._unread is None
        if token == self._token and (is_whole or time.monotonic() < self._next_try):
            return False
        self._token, self._next_try = token, time.monotonic() + self._pause
        try:
            roles = self._registry.roles(self.name)
        except HeadraceError as error:
            if error.brief != self._unread:
                _logger.error("model %s stays as it is: %s", self.name, error.brief)
            self._unread = error.brief
            return False
        self._unread = None
        return self._fill(roles)

    def _fill(self, roles: Roles) -> bool:
        """Give their places to the versions that the roles name; whether there is a new lineup."""
        before, failing, loaded = self.lineup, dict[int, str](), {seat.version: seat for seat in self.lineup.seats}

        def seat(version: int | None, role: str) -> Seat[S] | None:
            if version is None:
                return None
            try:
                return self._seat(version, role, loaded)
            except Exception as error:
                # Whatever it is: what was loaded before goes on scoring.
                failing[version] = (
                    error.brief if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"
                )
                return None

        champion = seat(roles.champion, CHAMPION)
        challenger = seat(roles.challenger if roles.share > 0 else None, CHALLENGER)
        shadows = tuple(made for version in roles.shadows if (made := seat(version, SHADOW)) is not None)
        if champion is not None or roles.champion is None or before.champion is None:
            self.lineup = Lineup(self.name, roles, champion, challenger, shadows)
        for version, why in failing.items():
            if self._unloaded.get(version) != why:
                _logger.error("version %d of model %s cannot score: %s", version, self.name, why)
        self._unloaded = failing
        self._settle(loaded)
        return self.lineup != before

    def _seat(self, version: int, role: str, loaded: dict[int, Seat[S]]) -> Seat[S]:
        """A version in a role; what is loaded already stays as it is."""
        known = loaded.get(version)
        if known is None:
            known = Seat(version, role, self._registry.manifest(self.name, version), self._load(version))
        loaded[version] = known if known.role == role else Seat(version, role, known.manifest, known.scorer)
        return loaded[version]

    def _settle(self, loaded: Mapping[int, Seat[S]]) -> None:
        """Let go of what scores no longer. A version that comes back begins anew."""
        scoring = {seat.version for seat in self.lineup.seats}
        for version in loaded.keys() - scoring:
            self._release(loaded[version].scorer)
        answering = [seat.version for seat in self.lineup.answering]
        self._breakers = {version: self._breakers.get(version) or Breaker() for version in answering}
        self.stuck = {version: why for version, why in self.stuck.items() if version in answering}

    def count_outcomes(self, seat: Seat[S], scored: int, failed: int) -> bool:
        """Count a version's outcomes; whether it fails too often, so that it should give way (`fall_back`).

        A row that is refused for its own values is no outcome. Nobody waits for a shadow, and it never gives way.
        """
        breaker = self._breakers.get(seat.version)
        if breaker is None or seat.version in self.stuck:
            return False
        breaker.ok(scored)
        breaker.failed(failed)
        return bool(failed) and breaker.tripped

    def fall_back(self, version: int, why: str) -> bool:
        """Have the version before take the place of a champion that fails; whether it was this call that did it.

        A challenger that fails has its keys taken away: the champion is there.
        """
        before = self._registry.roles(self.name)
        change = self._registry.unchallenge if before.challenger == version else self._registry.rollback
        try:
            roles = change(self.name, why, failing=version, by=FALLBACK)
        except HeadraceError as error:
            self.stuck = {**self.stuck, version: f"{why} {error.message}"}
            _logger.error("version %d of model %s fails: %s", version, self.name, self.stuck[version])
            return False
        _logger.error("version %d of model %s fails, version %s answers: %s", version, self.name, roles.champion, why)
        self.refresh()
        if any(seat.version == version for seat in self.lineup.answering):
            # The one before cannot score: `failing` says why, and nobody asks for it with every request.
            self.stuck = {**self.stuck, version: why}
        return version in (before.champion, before.challenger)


_NEVER = object()
"""What no look has given."""


def loaded_lineups(registry: ModelRegistry, model: str) -> Lineups[Scorer]:
    """The lineups of a model whose versions are loaded in this process."""
    return Lineups(registry, model, lambda version: registry.load(model, version))
