"""Every feature of a view from single events, exactly as the definition says: no tiles, no sketches.

It is how the reference interpreter computes (`meaning.reference`), and how values of a past moment are answered from
the lake (`asof.lake`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

from headrace.define.view import Feature, Term, View
from headrace.meaning.event import Event

Mode = Literal["as_known", "as_happened"]
Key = tuple[Any, ...]
Moment = tuple[int, ...]
"""(t,) for a request, (arrived_at, partition, offset) for the record that triggers a score."""


class ViewEvents:
    """The events of a view by key, in event time order, each with what every term eats."""

    def __init__(self, view: View, events: Iterable[Event]) -> None:
        self.view = view
        wanted = view.stream.filter.python() if view.stream.filter else None
        parts = [column.python() for _, column in view.key]
        self.by_key: dict[Key, list[Event]] = {}
        for event in events:
            if wanted is None or wanted(event.row) is True:
                self.by_key.setdefault(tuple(part(event.row) for part in parts), []).append(event)
        for held in self.by_key.values():
            held.sort(key=lambda event: (event.event_time, event.event_id))

    @cached_property
    def eaten(self) -> Mapping[Term, Any]:
        return {term: term.value.python() for feature in self.view.features for term in feature.terms}

    def values(self, key: Key, moment: Moment, mode: Mode = "as_known") -> dict[str, Any]:
        """Every feature of a key, from what was known at a moment."""
        held = self.by_key.get(key, [])
        return self.of([event for event in held if is_known(event, moment, mode)], moment[0])

    def of(self, known: list[Event], t: int) -> dict[str, Any]:
        """Every feature at a time from these events, which are in the order of event time."""
        times = [event.event_time for event in known]
        return {feature.name: self._value(feature, known, times, t) for feature in self.view.features}

    def _value(self, feature: Feature, known: list[Event], times: list[int], t: int) -> Any:
        return feature.combine([self._term(term, known, times, t) for term in feature.terms])

    def _term(self, term: Term, known: list[Event], times: list[int], t: int) -> Any:
        low, high = term.window.span(t)
        begin, end = bisect_left(times, low), bisect_left(times, high)
        held, eat = times[begin:end], self.eaten[term]
        inside = known[begin + term.window.narrow(held, held, t) : end]
        inputs = [(event.event_time, event.event_id, eat(event.row)) for event in inside]
        return term.aggregate.exact([given for given in inputs if given[2] is not None], t)


def is_known(event: Event, moment: Moment, mode: Mode) -> bool:
    """Whether an event counts at a moment: since its arrival, or since it happened."""
    return event.place < moment if mode == "as_known" else event.event_time < moment[0]
