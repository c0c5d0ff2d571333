"""The values of a feature set by column: the one way from what was read to what a model gets, and to what JSON shows.

Values are raw: timestamps are microseconds, decimals have all their digits, and what an on-demand function gave is as
it gave it. Whoever scores, on request or in a stream, takes the row from here, so that both mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from headrace.define.feature_set import FeatureSet
from headrace.define.on_demand import OnDemand
from headrace.read.answer_json import has_form, value_json
from headrace.read.on_demand import computed, computed_json
from headrace.read.reader import ViewValues
from headrace.types.field_types import Type

RequestValues = Mapping[str, Mapping[str, Any]]
"""For each on-demand feature, what the caller sent for it."""


def model_row(
    feature_set: FeatureSet, answers: Mapping[str, ViewValues], requests: RequestValues, t: int
) -> dict[str, Any]:
    """The values of a feature set by column, in its order.

    Parameters
    ----------
    answers
        What was read of every view and dimension behind the set, by its name.
    requests
        The request values of each on-demand feature, as `on_demand.Requests` reads them.
    t
        The moment the values are for.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
    >>> @hr.on_demand(users, request={"limit": int})
    ... def left(n, limit) -> int:
    ...     return limit - n
    >>> read = ViewValues("users", {"user": "ann"}, {"n": 3}, 0, 0, 0.0, False, False, "micro-batch")
    >>> model_row(hr.feature_set("habits", [users, left]), {"users": read}, {"left": {"limit": 5}}, t=0)
    {'n': 3, 'left': 2}
    """
    stored = {name: answer.values for name, answer in answers.items()}
    sources = _sources_of(feature_set).sources
    if not feature_set.on_demands:
        return {name: stored[source][name] for name, source in sources}
    made = computed(feature_set, stored, requests, t)
    return {name: made[name] if source is None else stored[source][name] for name, source in sources}


def row_json(feature_set: FeatureSet, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON writes it; what an on-demand function gave and JSON has no form for is refused.

    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"last_at": hr.last("at", over="1h")})
    >>> row_json(hr.feature_set("habits", [users]), {"last_at": 0})
    {'last_at': '1970-01-01T00:00:00Z'}
    """
    found = dict(row)
    for name, kind in _sources_of(feature_set).forms:
        found[name] = computed_json(name, row[name]) if kind is None else value_json(kind, row[name])
    return found


class _FeatureSources(NamedTuple):
    """The ways of a feature set's values, worked out once.

    Parameters
    ----------
    of
        The set: kept with its ways, so that its id stays.
    sources
        Of each column, the view or dimension it is of; None for an on-demand feature.
    forms
        The columns that JSON may write in another way, with their types; None for an on-demand feature.
    """

    of: FeatureSet
    sources: tuple[tuple[str, Any], ...]
    forms: tuple[tuple[str, Type | None], ...]


_known: dict[int, _FeatureSources] = {}


def _sources_of(feature_set: FeatureSet) -> _FeatureSources:
    known = _known.get(id(feature_set))
    if known is None:
        sources, forms = list[tuple[str, str | None]](), list[tuple[str, Type | None]]()
        for each in feature_set.picked:
            if isinstance(each, OnDemand):
                sources.append((each.name, None))
                forms.append((each.name, None))
            else:
                keyed, feature = each
                sources.append((feature.name, keyed.name))
                forms += [(feature.name, feature.type)] if has_form(feature.type) else []
        known = _known[id(feature_set)] = _FeatureSources(feature_set, tuple(sources), tuple(forms))
    return known
