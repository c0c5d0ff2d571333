"""Names users give: checked once, the same way everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from headrace.errors import DefinitionError, did_you_mean, shown


class NamedValue:
    """A definition: it shows itself by its kind and name, because all that it holds would fill a screen."""

    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")


def name_of(value: Any, what: str) -> str:
    """A lower-case identifier of at most 100 characters, or an error.

    >>> name_of("card_activity", "a view")
    'card_activity'
    """
    if isinstance(value, str) and NAME.fullmatch(value):
        return value
    hint = "Use lower-case letters, digits and underscores, at most 100, starting with a letter."
    raise DefinitionError("bad-name", f"The name of {what} cannot be used.", got=shown(value), hint=hint)


def one_of(value: Any, allowed: Iterable[str], what: str) -> str:
    """One of the allowed words, or an error that names the closest."""
    allowed = tuple(allowed)
    if isinstance(value, str) and value in allowed:
        return value
    hint = did_you_mean(value, allowed)
    raise DefinitionError("bad-argument", f"{what} is not one of the known words.", got=shown(value), hint=hint)


def text_of(value: Any, what: str) -> str | None:
    """Text or nothing, for owners and descriptions."""
    if value is None or isinstance(value, str):
        return value
    raise DefinitionError("bad-argument", f"{what} must be text.", got=shown(value))


def texts_of(value: Any, what: str) -> tuple[str, ...]:
    """A tuple of texts, for tags. A lone text is refused: it would be read letter by letter."""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise DefinitionError("bad-argument", f"{what} must be a list of texts.", got=shown(value), hint='As in ["fraud"].')


def flag_of(value: Any, what: str) -> bool:
    """True or False, nothing that merely looks like it."""
    if isinstance(value, bool):
        return value
    raise DefinitionError("bad-argument", f"{what} must be True or False.", got=shown(value))
