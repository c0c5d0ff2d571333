"""An answer as JSON: moments as RFC 3339 text, decimals as numbers with all their digits."""

from __future__ import annotations

from typing import Any

from headrace.clock import show_time
from headrace.define.dimension import Keyed
from headrace.read.reader import ViewValues
from headrace.types.field_types import List, Struct, Timestamp, Type


def answer_json(view: Keyed, answer: ViewValues) -> dict[str, Any]:
    """What `GET /v1/features/...` says.

    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"last_at": hr.last("at", over="1h")})
    >>> given = ViewValues("users", {"user": "ann"}, {"last_at": 0}, 5_000, 0, 5.0, False, False, "micro-batch")
    >>> said = answer_json(users, given)
    >>> said["features"], said["as_of"], said["freshness_ms"]
    ({'last_at': '1970-01-01T00:00:00Z'}, '1970-01-01T00:00:00Z', 5.0)
    """
    values = answer.values
    return {
        "view": answer.view,
        "key": answer.key,
        "features": values | {name: value_json(kind, values[name]) for name, kind in _written(view)},
        "at": show_time(answer.at),
        "as_of": None if answer.as_of is None else show_time(answer.as_of),
        "late_as_of": None if answer.late_as_of is None else show_time(answer.late_as_of),
        "freshness_ms": answer.freshness_ms,
        "missing": answer.missing,
        "stale": answer.stale,
        "mode": answer.mode,
    }


_known: dict[int, tuple[Keyed, tuple[tuple[str, Type], ...]]] = {}


def _written(view: Keyed) -> tuple[tuple[str, Type], ...]:
    """The features of a view that JSON writes in another way, worked out once; kept with it, so that its id stays."""
    known = _known.get(id(view))
    if known is None:
        types = ((feature.name, feature.type) for feature in view.features)
        others = tuple((name, kind) for name, kind in types if has_form(kind))
        known = _known[id(view)] = (view, others)
    return known[1]


def has_form(kind: Type) -> bool:
    """Whether JSON writes values of a type in another way than they are."""
    return isinstance(kind, Timestamp | List | Struct)


def value_json(kind: Type, value: Any) -> Any:
    """A value of a type as JSON writes it."""
    if value is None:
        return None
    match kind:
        case Timestamp():
            return show_time(value)
        case List(element):
            return [value_json(element, each) for each in value]
        case Struct(fields):
            return {field.name: value_json(field.type, value[field.name]) for field in fields}
    return value
