"""What can be read by name: a view, a dimension, or a feature set with all that is behind it.

Keys come as text (a path, a query) or as JSON. In JSON a value is of its column's type, or the text that a path would
have for it. Values are read by `reads`; how text becomes a key's value is in `key`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headrace.define.dimension import Keyed
from headrace.define.feature_set import FeatureSet
from headrace.errors import DataError, ProjectError, did_you_mean, shown
from headrace.plan.model import Plan
from headrace.read.key import part_of
from headrace.tiles.changelog import KeyPart
from headrace.types.field_types import LARGEST_INTEGER, SMALLEST_INTEGER, Boolean, Integer, Type


@dataclass(frozen=True)
class Readable:
    """A name, the views and dimensions to read for it, and the feature set when it is one."""

    name: str
    views: tuple[Keyed, ...]
    feature_set: FeatureSet | None = None

    @cached_property
    def by(self) -> tuple[str, ...]:
        """The columns of the key, each once."""
        return tuple(dict.fromkeys(name for view in self.views for name in view.by))

    @cached_property
    def types(self) -> dict[str, Type]:
        """The type of each column."""
        return {name: kind for view in self.views for name, kind in view.key_types}

    @cached_property
    def ordered(self) -> bool:
        """Whether a key can be given as values in order: one of the views is kept by all the columns."""
        return any(view.by == self.by for view in self.views)


def readables(plan: Plan) -> dict[str, Readable]:
    """Everything that can be read, by name.

    >>> import headrace as hr
    >>> from headrace.plan.build import build
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
    >>> list(readables(build([hr.feature_set("habits", [users])])))
    ['users', 'habits']
    """
    views: dict[str, Keyed] = {planned.view.name: planned.view for planned in plan.features}
    views |= {planned.dimension.name: planned.dimension for planned in plan.dimensions}
    found = {name: Readable(name, (view,)) for name, view in views.items()}
    return found | {each.name: Readable(each.name, each.keyed, each) for each in plan.feature_sets}


def find(known: Mapping[str, Readable], name: str) -> Readable:
    """What a name stands for; an unknown one is refused."""
    found = known.get(name)
    if found is None:
        hint = did_you_mean(name, known)
        raise ProjectError("not-found", "There is no such view, dimension or feature set.", got=shown(name), hint=hint)
    return found


def key_from_json(of: Readable, given: Any, others: Iterable[str] = ()) -> dict[str, KeyPart]:
    """A key's values by name, from an object, an array in the order of the columns, or the one value alone.

    Parameters
    ----------
    others
        Columns that may be there for something else that is read with the same key.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "shop": int, "at": hr.Timestamp}, event_time="at")
    >>> shops = hr.view("shops", clicks, by=("shop", "user"), features={"n": hr.count(over="1h")})
    >>> key_from_json(Readable("shops", (shops,)), {"user": "ann", "shop": 7})
    {'shop': 7, 'user': 'ann'}
    >>> key_from_json(Readable("shops", (shops,)), ["7", "ann"])
    {'shop': 7, 'user': 'ann'}
    """
    named = given if isinstance(given, dict) else _by_name(of, given)
    for name in named:
        if name not in of.by and name not in others:
            message = f"{of.name!r} has no such column in its key."
            raise DataError("bad-request", message, got=shown(name), hint=did_you_mean(name, of.by))
    missing = [name for name in of.by if name not in named]
    if missing:
        message, hint = f"{of.name!r} needs its whole key.", f"Give {', '.join(missing)} too."
        raise DataError("bad-request", message, got=shown(given), hint=hint)
    types = of.types
    return {name: _typed(name, types[name], named[name]) for name in of.by}


def _by_name(of: Readable, given: Any) -> dict[str, Any]:
    parts = given if isinstance(given, list) else [given]
    if not of.ordered or len(parts) != len(of.by):
        columns = ", ".join(of.by) or "no column: write an empty object"
        hint = f"Write an object by the names of its columns; {of.name!r} is kept by {columns}."
        raise DataError("bad-request", "A key has not the columns it needs.", got=shown(given), hint=hint)
    return dict(zip(of.by, parts, strict=True))


def _typed(name: str, kind: Type, value: Any) -> KeyPart:
    if isinstance(value, str):
        return part_of(name, kind, value)
    if isinstance(value, bool):
        if isinstance(kind, Boolean):
            return value
    elif isinstance(value, int) and isinstance(kind, Integer) and SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
        return value
    message = f"The key column {name!r} is of type {kind}."
    raise DataError("bad-request", message, got=shown(value), hint=f"Write a JSON {kind}, or its text.")
