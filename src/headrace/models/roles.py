"""Who of a model's versions answers: the champion, a challenger for a share of the keys, and shadows that nobody hears.

Roles are a value; each change makes a new one, with the change in its history. Keeping them is the registry's part.
Which of two versions a key gets is decided by a digest of the key, so that every machine and process says the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from headrace.errors import DataError, ProjectError, shown

CHAMPION, CHALLENGER, SHADOW = "champion", "challenger", "shadow"
By = Literal["user", "fallback"]
FALLBACK: Final = "fallback"
"""Who made a change that nobody asked for."""
KeyPart = str | int | bool


class RoleChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One change: when (microseconds), what, of which version, which was in its place, why, and by whom."""

    at: int
    what: Literal["promote", "rollback", "challenge", "unchallenge", "shadow", "unshadow"]
    version: int
    before: int | None = None
    why: str | None = None
    by: By = "user"


class Roles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The roles of a model's versions. `share` is the part of the keys that the challenger answers."""

    champion: int | None = None
    challenger: int | None = None
    share: float = 0.0
    shadows: tuple[int, ...] = ()
    history: tuple[RoleChange, ...] = ()


def promoted(roles: Roles, change: RoleChange) -> Roles:
    """The version is the champion, and nothing else any more.

    >>> promoted(Roles(challenger=2, share=0.1), RoleChange(0, "promote", 2)).champion
    2
    """
    made = _noted(roles, change, champion=change.version)
    if made.challenger == change.version:
        made = replace(made, challenger=None, share=0.0)
    return replace(made, shadows=tuple(each for each in made.shadows if each != change.version))


def challenged(roles: Roles, change: RoleChange, share: float) -> Roles:
    """The version answers a share of the keys."""
    if roles.champion is None:
        raise DataError("no-champion", "There is no champion to challenge.", hint="Promote a version first.")
    if roles.champion == change.version:
        hint = "Name another version; `headrace model list` shows them."
        raise DataError(
            "bad-argument", "The champion cannot challenge itself.", got=f"version {change.version}", hint=hint
        )
    if not 0.0 < share < 1.0:
        hint = "To give it all keys, promote it; to give it none, make it a shadow."
        raise DataError("bad-argument", "A challenger's share is between 0 and 1.", got=shown(share), hint=hint)
    made = _noted(roles, change, challenger=change.version, share=float(share))
    return replace(made, shadows=tuple(each for each in made.shadows if each != change.version))


def unchallenged(roles: Roles, change: RoleChange) -> Roles:
    """The champion answers every key."""
    return _noted(roles, change, challenger=None, share=0.0)


def shadowed(roles: Roles, change: RoleChange) -> Roles:
    """The version scores what the champion scores, and nobody hears it."""
    if change.version in (roles.champion, roles.challenger):
        hint = "Name a version that does not answer; `headrace model list` shows them."
        raise DataError(
            "bad-argument", "A version that answers is no shadow.", got=f"version {change.version}", hint=hint
        )
    others = tuple(each for each in roles.shadows if each != change.version)
    return _noted(roles, change, shadows=tuple(sorted((*others, change.version))))


def unshadowed(roles: Roles, change: RoleChange) -> Roles:
    """The version scores no longer."""
    return _noted(roles, change, shadows=tuple(each for each in roles.shadows if each != change.version))


def _noted(roles: Roles, change: RoleChange, **fields: object) -> Roles:
    return replace(roles, history=(*roles.history, change), **fields)


def earlier(roles: Roles) -> list[int]:
    """The champions before, the latest first: those that were promoted, without those that were rolled back since.

    >>> history = [RoleChange(at, "promote", at + 1) for at in range(3)]
    >>> history.append(RoleChange(3, "rollback", 2))
    >>> earlier(Roles(champion=2, history=tuple(history)))
    [1]
    """
    stack: list[int] = []
    for change in roles.history:
        if change.what == "promote":
            stack = [*(each for each in stack if each != change.version), change.version]
        elif change.what == "rollback":
            # It may have passed over versions that could not be loaded.
            stack = stack[: stack.index(change.version) + 1]
    return stack[-2::-1]


def fallback_from(roles: Roles) -> int | None:
    """The version whose place the champion took because it failed; None when somebody wanted the champion.

    >>> fallback_from(Roles(champion=1, history=(RoleChange(2, "rollback", 1, before=2, by="fallback"),)))
    2
    """
    changes = [change for change in roles.history if change.what in ("promote", "rollback")]
    return changes[-1].before if changes and changes[-1].by == FALLBACK else None


def choose_version(model: str, roles: Roles, key: Sequence[KeyPart]) -> tuple[int, str]:
    """The version that answers a key, and its role.

    >>> choose_version("fraud", Roles(champion=1, challenger=2, share=0.5), ["4242"])
    (2, 'challenger')
    """
    if roles.champion is None:
        hint = "Promote a version of it."
        raise ProjectError("no-champion", f"Model {model!r} has no champion.", hint=hint)
    if roles.challenger is not None and part(model, key) < roles.share:
        return roles.challenger, CHALLENGER
    return roles.champion, CHAMPION


def part(model: str, key: Sequence[KeyPart]) -> float:
    """Where a key falls between 0 and 1; the name of the model counts, so that models do not share their victims."""
    told = json.dumps([model, list(key)], separators=(",", ":"), ensure_ascii=True)
    return int.from_bytes(hashlib.blake2b(told.encode(), digest_size=8).digest(), "big") / 2**64
