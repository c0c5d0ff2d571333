"""The roles of models, kept: each change is read, made and written under a lock, and appears in one step.

Whoever reads takes no lock. What a change means is said in `models.roles`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import msgspec

from headrace.clock import Clock
from headrace.errors import DataError, HeadraceError, MachineError
from headrace.faults import FaultPoints
from headrace.files import lock_file, write_atomically
from headrace.models import roles as changes
from headrace.models.roles import By, RoleChange, Roles

FILE, LOCK = "roles.json", ".lock"
PATIENCE = 10.0
"""Seconds that a change waits for its turn; one takes milliseconds."""
Token = tuple[int, int, int]
What = Literal["promote", "rollback", "challenge", "unchallenge", "shadow", "unshadow"]


class RolesFile(ABC):
    """The roles of the models in a folder."""

    def __init__(self, folder: Path, clock: Clock, faults: FaultPoints) -> None:
        self._folder, self._clock, self._faults = folder, clock, faults

    @abstractmethod
    def sound(self, model: str, version: int) -> Any:
        """Refuse a version that is not there, or not as it was added."""

    @abstractmethod
    def versions(self, model: str) -> list[int]:
        """The numbers of a model's versions; a model without any is refused."""

    def roles(self, model: str) -> Roles:
        """The roles of a model's versions; none has any until one is promoted."""
        file = self._folder / model / FILE
        try:
            return msgspec.json.decode(file.read_bytes(), type=Roles)
        except FileNotFoundError:
            return Roles()
        except (OSError, msgspec.DecodeError) as error:
            message = f"The roles of model {model!r} cannot be read."
            raise DataError(
                "bad-model", message, got=str(error), where=str(file), hint="Promote a version anew."
            ) from None

    def token(self, model: str) -> Token | None:
        """What tells that roles have changed, without reading them: it is then another."""
        try:
            found = (self._folder / model / FILE).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def promote(self, model: str, version: int, why: str | None = None) -> Roles:
        """Make a version the champion."""
        self.sound(model, version)
        return self._changed(
            model,
            lambda roles: (
                roles
                if roles.champion == version
                else changes.promoted(roles, self._change("promote", version, roles.champion, why))
            ),
        )

    def challenge(self, model: str, version: int, share: float, why: str | None = None) -> Roles:
        """Let a version answer a share of the keys in the champion's place."""
        self.sound(model, version)
        return self._changed(
            model,
            lambda roles: changes.challenged(roles, self._change("challenge", version, roles.challenger, why), share),
        )

    def unchallenge(self, model: str, why: str | None = None, *, failing: int | None = None, by: By = "user") -> Roles:
        """Take the challenger away, if there is one; with `failing`, only if it is that one."""

        def change(roles: Roles) -> Roles:
            now = roles.challenger
            if now is None or failing not in (None, now):
                return roles
            return changes.unchallenged(roles, self._change("unchallenge", now, now, why, by))

        return self._changed(model, change)

    def shadow(self, model: str, version: int, why: str | None = None) -> Roles:
        """Let a version score beside the others, unheard."""
        self.sound(model, version)
        return self._changed(model, lambda roles: changes.shadowed(roles, self._change("shadow", version, None, why)))

    def unshadow(self, model: str, version: int, why: str | None = None) -> Roles:
        """Let a shadow score no longer, if it is one."""
        return self._changed(
            model,
            lambda roles: (
                changes.unshadowed(roles, self._change("unshadow", version, version, why))
                if version in roles.shadows
                else roles
            ),
        )

    def rollback(self, model: str, why: str | None = None, *, failing: int | None = None, by: By = "user") -> Roles:
        """Make the champion before the champion again; once more goes further back.

        Parameters
        ----------
        failing
            The champion that is to go. Nothing happens when it is the champion no longer: of several processes that
            notice at once, one rolls back.
        by
            Who wants it.
        """

        def change(roles: Roles) -> Roles:
            if failing is not None and roles.champion != failing:
                return roles
            version = self._before(model, roles)
            return changes.promoted(roles, self._change("rollback", version, roles.champion, why, by))

        return self._changed(model, change)

    def _before(self, model: str, roles: Roles) -> int:
        """The latest of the champions before that can still be loaded."""
        for version in changes.earlier(roles):
            try:
                self.sound(model, version)
            except HeadraceError:
                continue
            return version
        message, hint = f"Model {model!r} has no champion before to go back to.", "Promote another version."
        got = "no champion" if roles.champion is None else f"champion {roles.champion}"
        raise DataError("no-champion", message, got=got, hint=hint)

    def _change(self, what: What, version: int, before: int | None, why: str | None, by: By = "user") -> RoleChange:
        return RoleChange(self._clock.now(), what, version, before, why, by)

    def _changed(self, model: str, change: Callable[[Roles], Roles]) -> Roles:
        self.versions(model)
        with locked(self._folder / model):
            before = self.roles(model)
            after = change(before)
            if after != before:
                text = msgspec.json.format(msgspec.json.encode(after), indent=2).decode()
                self._faults.reach("models.roles.before")
                write_atomically(self._folder / model / FILE, text + "\n")
                self._faults.reach("models.roles.after")
        return after


def locked(folder: Path) -> AbstractContextManager[None]:
    """Be the one that changes a model; whoever comes meanwhile waits for its turn."""
    message, hint = "Another process changes the model, and does not come to an end.", "Try again, or end it."
    refusal = MachineError("models-locked", message, got=str(folder), hint=hint)
    return lock_file(folder / LOCK, refusal, PATIENCE)
