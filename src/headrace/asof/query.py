"""What is asked of past events: the features of views that share a stream, a filter and a key, as plain data.

It travels to wherever events are; what values events are eaten as is computed there, from the expressions that come
with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.aggregate import Aggregate
from headrace.define.view import View
from headrace.define.window import Window
from headrace.expression import Expression
from headrace.meaning.exact import Mode
from headrace.types.field_types import Type


@dataclass(frozen=True)
class FeatureTerm:
    """A term of a feature: its aggregate, its window, and which of the eaten columns it takes."""

    aggregate: Aggregate
    window: Window
    column: int


@dataclass(frozen=True)
class FeatureQuery:
    """A feature as it is evaluated: one part, or the two of a ratio."""

    name: str
    kind: Type
    parts: tuple[FeatureTerm, ...]


@dataclass(frozen=True)
class AsOfQuery:
    """What is asked of events that share a stream, a filter and a key.

    Parameters
    ----------
    features
        Features, each with its parts.
    eaten
        The types of the columns that the parts take.
    skew
        How far ahead of its arrival an event may have happened, in microseconds.
    mode
        `as_known` counts an event from its arrival, `as_happened` from when it happened.
    """

    features: tuple[FeatureQuery, ...]
    eaten: tuple[Type, ...]
    skew: int
    mode: Mode

    @property
    def in_order(self) -> bool:
        """Whether event ids are needed, to know which of two events of one time comes first."""
        return any(part.aggregate.is_ordered for wanted in self.features for part in wanted.parts)


def question(views: Sequence[View], mode: Mode) -> tuple[AsOfQuery, list[Expression]]:
    """What some views ask for, and the expressions that give the columns which are eaten.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> features = {"n": hr.count(over="1h"), "m": hr.count(over="1d"), "first": hr.first("at", over="1d")}
    >>> asked, eaten = question([hr.view("users", clicks, by="user", features=features)], "as_known")
    >>> [wanted.name for wanted in asked.features], [each.text for each in eaten]
    (['n', 'm', 'first'], ['TRUE', 'at'])
    """
    columns: dict[tuple[str, Type], tuple[int, Expression]] = {}
    found = []
    for view in views:
        for feature in view.features:
            parts = []
            for term in feature.terms:
                known = columns.setdefault((term.value.text, term.aggregate.fed), (len(columns), term.value))
                parts.append(FeatureTerm(term.aggregate, term.window, known[0]))
            found.append(FeatureQuery(feature.name, feature.type, tuple(parts)))
    asked = AsOfQuery(tuple(found), tuple(kind for _, kind in columns), views[0].stream.max_clock_skew, mode)
    return asked, [expression for _, expression in columns.values()]
