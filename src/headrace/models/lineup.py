"""The versions that have a role now, loaded: one value that is swapped as a whole when roles change.

Whoever scores takes a lineup once and keeps it to the end of what it does: a request is never answered by two versions,
and none is dropped by a change. What is loaded before stays when a new champion cannot be loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from headrace.errors import HeadraceError, MachineError
from headrace.models.registry import Registry
from headrace.models.roles import SHADOW, KeyPart, Roles, chosen
from headrace.models.roles_file import Token
from headrace.models.scorer import Scorer

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Chosen:
    """A version that scores, and in which role."""

    scorer: Scorer
    version: int
    role: str


@dataclass(frozen=True)
class Lineup:
    """The versions of a model that have a role, loaded."""

    model: str
    roles: Roles
    scorers: Mapping[int, Scorer]

    def choose(self, key: Sequence[KeyPart]) -> Chosen:
        """Who answers a key."""
        version, role = chosen(self.model, self.roles, key)
        return Chosen(self.scorers[version], version, role)

    @property
    def shadows(self) -> tuple[Chosen, ...]:
        """Who scores besides, unheard."""
        return tuple(Chosen(self.scorers[version], version, SHADOW) for version in self.roles.shadows)


class Lineups:
    """The lineup of a model as its roles change.

    Parameters
    ----------
    registry, model
        Where the model is kept, and its name.

    Attributes
    ----------
    failing
        What could not be loaded or read at the last refresh, and why; None when all is well.
    """

    def __init__(self, registry: Registry, model: str) -> None:
        self._registry, self._model = registry, model
        self._lineup: Lineup | None = None
        self._seen: Token | None = None
        self.failing: str | None = None

    @property
    def lineup(self) -> Lineup:
        """The lineup now: take it once for all that belongs together."""
        made = self._lineup
        if made is None:
            message = f"Model {self._model!r} has no version to score with."
            hint = "Promote a version that can be loaded."
            raise MachineError("no-champion", message, got=self.failing, hint=hint)
        return made

    def refresh(self) -> bool:
        """Look whether roles have changed, and take over what they say; whether there is a new lineup."""
        token = self._registry.token(self._model)
        if token == self._seen and not self.failing:
            return False
        try:
            roles = self._registry.roles(self._model)
        except HeadraceError as error:
            self._fail(error.brief)
            return False
        scorers, failing = self._load(roles)
        self._fail(" ".join(f"Version {version}: {said}" for version, said in failing.items()) or None)
        if roles.champion is None or roles.champion in failing:
            return False
        self._seen = token
        made = Lineup(self._model, _without(roles, failing), scorers)
        if self._lineup is not None and made == self._lineup:
            return False
        self._lineup = made
        return True

    def _load(self, roles: Roles) -> tuple[dict[int, Scorer], dict[int, str]]:
        """The versions with a role, those that are loaded already as they are; and what is wrong with the others."""
        held = {} if self._lineup is None else self._lineup.scorers
        scorers: dict[int, Scorer] = {}
        failing: dict[int, str] = {}
        for version in (roles.champion, roles.challenger, *roles.shadows):
            if version is None:
                continue
            try:
                scorers[version] = held.get(version) or self._registry.load(self._model, version)
            except Exception as error:
                # Whatever it is: what was loaded before goes on scoring.
                failing[version] = error.brief if isinstance(error, HeadraceError) else f"{type(error).__name__}."
        return scorers, failing

    def _fail(self, said: str | None) -> None:
        if said is not None and said != self.failing:
            _logger.error("model %s goes on without what cannot be loaded: %s", self._model, said)
        self.failing = said


def _without(roles: Roles, failing: Mapping[int, str]) -> Roles:
    """The roles without challengers and shadows that cannot be loaded: the champion answers for them."""
    if roles.challenger in failing:
        roles = replace(roles, challenger=None, share=0.0)
    return replace(roles, shadows=tuple(each for each in roles.shadows if each not in failing))
