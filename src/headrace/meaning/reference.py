"""The meaning, in plain Python: what every feature is, from a list of records.

No Spark, no tiles, no sketches: records are judged (`meaning.verdict`), and a value is computed from the single events
that count, exactly as the definition says (`meaning.exact`). Every engine mode and the serving path are held to this
file; when they differ, one of them is wrong. Tiles are given too (`ReferenceResult.tiles`), so that engines can be
compared column by column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.define.view import View
from headrace.log.record import Record
from headrace.meaning.event import Event
from headrace.meaning.exact import Key, Mode, Moment, ViewEvents
from headrace.meaning.verdict import DEAD, Judgement, count_verdicts, judge
from headrace.plan.model import Plan, TileSet


class ReferenceResult:
    """What a list of records means under a plan."""

    def __init__(self, plan: Plan, records: Iterable[Record]) -> None:
        self.plan = plan
        by_topic: dict[str, list[Record]] = {stage.stream.name: [] for stage in plan.admissions}
        for record in records:
            if record.topic in by_topic:
                by_topic[record.topic].append(record)
        self.judged = {stage.stream.name: judge(stage.stream, by_topic[stage.stream.name]) for stage in plan.admissions}
        self._views: dict[str, ViewEvents] = {}

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
        return self._events_of(view).values(key, moment, mode)

    def keys(self, view: View) -> list[Key]:
        """Every key that has an event, in order."""
        return sorted(self._events_of(view).by_key)

    def events(self, view: View, key: Key) -> list[Event]:
        """The events of a key that count, by event time."""
        return self._events_of(view).by_key.get(key, [])

    def _events_of(self, view: View) -> ViewEvents:
        if view.name not in self._views:
            counted = contributing(view.stream.late, self.judged[view.stream.name])
            self._views[view.name] = ViewEvents(view, [event for _, event in counted])
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
