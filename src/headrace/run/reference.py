"""The meaning, in plain Python: what every feature is, from a list of records.

No Spark, no tiles, no sketches: a value is computed from the single events that count, exactly as the definition says.
Every engine mode and the serving path are held to this file; when they differ, one of them is wrong. Tiles are given
too (`Outcome.tiles`), so that engines can be compared column by column.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from headrace.define.view import Feature, Term, View
from headrace.define.window import Session
from headrace.log.record import Record
from headrace.plan.model import Plan, TileSet
from headrace.run.verdict import DEAD, Event, Judgement, count_verdicts, judge

Mode = Literal["as_known", "as_happened"]
Key = tuple[Any, ...]
Moment = tuple[int, ...]
"""(t,) for a request, (arrived_at, partition, offset) for the record that triggers a score."""


class Outcome:
    """What a list of records means under a plan."""

    def __init__(self, plan: Plan, records: Iterable[Record]) -> None:
        self.plan = plan
        by_topic: dict[str, list[Record]] = {stage.stream.name: [] for stage in plan.admissions}
        for record in records:
            if record.topic in by_topic:
                by_topic[record.topic].append(record)
        self.judged = {stage.stream.name: judge(stage.stream, by_topic[stage.stream.name]) for stage in plan.admissions}
        self._views: dict[str, _ViewEvents] = {}

    def verdicts(self, stream: str) -> dict[str, int]:
        """Counts by verdict; they add up to the records read."""
        return count_verdicts(self.judged[stream])

    def dead_letters(self, stream: str) -> list[Judgement]:
        """Records that go to `<stream>.dead`."""
        return [judged for judged in self.judged[stream] if judged.verdict in DEAD]

    def late_output(self, stream: str) -> list[Judgement]:
        """Records that go to `<stream>.late`, when the policy says so."""
        policy = next(stage.stream.late for stage in self.plan.admissions if stage.stream.name == stream)
        return [judged for judged in self.judged[stream] if judged.verdict == "late" and policy == "side_output"]

    def values(self, view: View, key: Key, moment: Moment, mode: Mode = "as_known") -> dict[str, Any]:
        """Every feature of a key, from what was known at a moment."""
        return self._held(view).values(key, moment, mode)

    def keys(self, view: View) -> list[Key]:
        """Every key that has an event, in order."""
        return sorted(self._held(view).by_key)

    def events(self, view: View, key: Key) -> list[Event]:
        """The events of a key that count, by event time."""
        return self._held(view).by_key.get(key, [])

    def _held(self, view: View) -> _ViewEvents:
        if view.name not in self._views:
            counted = contributing(view.stream.late, self.judged[view.stream.name])
            self._views[view.name] = _ViewEvents(view, [event for _, event in counted])
        return self._views[view.name]

    def tiles(self, tile_set: TileSet, before: Moment | None = None) -> dict[tuple[Key, int, str], dict[str, Any]]:
        """The partial columns of every (key, tile start, lane), from what was known before a moment."""
        wanted = tile_set.where.python() if tile_set.where else None
        key_parts = [column.python() for _, column in tile_set.key]
        columns = [(partial.name, partial.monoid, partial.value.python()) for partial in tile_set.partials]
        tiles: dict[tuple[Key, int, str], dict[str, Any]] = {}
        for lane, event in contributing(tile_set.stream.late, self.judged[tile_set.stream.name]):
            if (before and not event.place < before) or (wanted and wanted(event.row) is not True):
                continue
            key = tuple(part(event.row) for part in key_parts)
            start = event.event_time - event.event_time % tile_set.grain
            tile = tiles.setdefault((key, start, lane), {name: monoid.empty for name, monoid, _ in columns})
            for name, monoid, eaten in columns:
                lifted = monoid.lift(eaten(event.row), event.event_time, event.event_id)
                tile[name] = monoid.merge(tile[name], lifted)
        return tiles


def contributing(late_policy: str, judged: Sequence[Judgement]) -> list[tuple[str, Event]]:
    """The events that count, each with its lane. Late ones count only under the policy `update`."""
    counted = ("admitted", "late") if late_policy == "update" else ("admitted",)
    return [
        (judgement.lane, judgement.event)
        for judgement in judged
        if judgement.lane is not None and judgement.event is not None and judgement.verdict in counted
    ]


class _ViewEvents:
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

    def values(self, key: Key, moment: Moment, mode: Mode) -> dict[str, Any]:
        held = self.by_key.get(key, [])
        known = [event for event in held if _known(event, moment, mode)]
        times = [event.event_time for event in known]
        return {feature.name: self._value(feature, known, times, moment[0]) for feature in self.view.features}

    def _value(self, feature: Feature, known: list[Event], times: list[int], t: int) -> Any:
        return feature.combine([self._term(term, known, times, t) for term in feature.terms])

    def _term(self, term: Term, known: list[Event], times: list[int], t: int) -> Any:
        low, high = term.window.span(t)
        inside = known[bisect_left(times, low) : bisect_left(times, high)]
        if isinstance(term.window, Session):
            inside = _running_session(inside, term.window.gap, t)
        eat = self.eaten[term]
        inputs = [(event.event_time, event.event_id, eat(event.row)) for event in inside]
        return term.aggregate.exact([given for given in inputs if given[2] is not None], t)


def _known(event: Event, moment: Moment, mode: Mode) -> bool:
    return event.place < moment if mode == "as_known" else event.event_time < moment[0]


def _running_session(events: list[Event], gap: int, t: int) -> list[Event]:
    """The last events chained by pauses of at most the gap, if the last one is not further back than that."""
    if not events or t - events[-1].event_time > gap:
        return []
    first = len(events) - 1
    while first and events[first].event_time - events[first - 1].event_time <= gap:
        first -= 1
    return events[first:]
