"""What a defect looks like: each kind is tried in turn, and the first that gives exactly the values served is named.

Nothing here excuses a difference. It says where to look, with the events that tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.clock import show_time
from headrace.define.window import Window
from headrace.meaning.event import Event
from headrace.skew.tile_state import KeyHistory

CLOCKS_APART = 60_000_000
"""How far the moment of an answer may be from when the log took the record of it, in microseconds."""


TRIED = 500
"""Of so many of the newest events each is tried by itself."""


@dataclass(frozen=True)
class Evidence:
    """A kind of defect, what tells, and the events that were missing, doubled or misplaced."""

    kind: str
    text: str = ""
    events: tuple[Event, ...] = ()


def looks_like(known: KeyHistory, features: Sequence[str]) -> Evidence | None:
    """The kind of defect that gives the values served; None when no kind does."""
    for kind, look in KINDS.items():
        found = look(known, features)
        if found is not None:
            return Evidence(kind, *found)
    return None


Found = tuple[str, tuple[Event, ...]]
Look = Callable[[KeyHistory, Sequence[str]], Found | None]


def _shifted_clock(known: KeyHistory, _: Sequence[str]) -> Found | None:
    """The moment is not when it was: progress that had not been made yet, or a record that was taken long before."""
    sample = known.sample
    if abs(sample.told_at - sample.t) > CLOCKS_APART:
        return f"asked for at {show_time(sample.t)}, kept at {show_time(sample.told_at)}", ()
    if sample.as_of is not None and sample.as_of > sample.t:
        return f"asked for at {show_time(sample.t)}, as of {show_time(sample.as_of)}", ()
    return None


def _mis_ordered(known: KeyHistory, features: Sequence[str]) -> Found | None:
    """The values are each other's."""
    meant, served = known.values(), known.sample.values
    whose: dict[str, str] = {}
    for name in features:
        others = (other for other in features if other not in whose.values() and _same(served[name], meant[other]))
        found = next(others, None)
        if found is None:
            return None
        whose[name] = found
    return "; ".join(f"{name} is {other}" for name, other in whose.items()), ()


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, int | float):
        return math.isclose(a, b)
    return bool(a == b)


def _wrong_default(known: KeyHistory, features: Sequence[str]) -> Found | None:
    """Nothing had happened, and something was said of it."""
    meant, nothing = known.values(), known.values(known.all)
    if any(meant[name] != nothing[name] for name in features):
        return None
    told = (f"{name} of nothing is {nothing[name]!r}, not {known.sample.values[name]!r}" for name in features)
    return "; ".join(told), ()


def _stale(known: KeyHistory, _: Sequence[str]) -> Found | None:
    """All of it is what the log held earlier than was said."""
    events = known.all
    for count in range(len(events) - 1, -1, -1):
        if not known.differing(events[:count]):
            missing = tuple(events[count:])
            seconds = (known.sample.t - missing[0].arrived_at) / 1e6
            return f"as it was {seconds:,.1f} s earlier", missing
    return None


def _late_lane(known: KeyHistory, _: Sequence[str]) -> Found | None:
    """Late events should have been published long ago."""
    late = [each.event for each in known.events if each.late]
    for missing in (*([event] for event in late), late):
        if missing and not known.differing(known.without(missing)):
            seconds = (known.sample.t - missing[0].arrived_at) / 1e6
            return f"not published {seconds:,.1f} s after it arrived", tuple(missing)
    return None


def _truncated(known: KeyHistory, _: Sequence[str]) -> Found | None:
    """Tiles before some moment are gone."""
    tiles = sorted({known.tile(event) for event in known.all})
    for first in [*tiles[1:], tiles[-1] + known.grain] if tiles else []:
        gone = [event for event in known.all if known.tile(event) < first]
        if not known.differing(known.without(gone)):
            return f"no tile before {show_time(first)}", tuple(gone)
    return None


def _dropped_tile(known: KeyHistory, _: Sequence[str]) -> Found | None:
    """One tile is gone, of one lane or of both."""
    for start in sorted({known.tile(event) for event in known.all}, reverse=True):
        inside = [each for each in known.events if known.tile(each.event) == start]
        lanes = [[each.event for each in inside if each.late is late] for late in (False, True)]
        for gone in (*lanes, [each.event for each in inside]):
            if gone and not known.differing(known.without(gone)):
                return f"tile {show_time(start)}", tuple(gone)
    return None


def _single(known: KeyHistory, changed: Callable[[list[Event], int], list[Event]]) -> Iterator[Event]:
    """The events with which one change each gives the values served."""
    events = known.all
    places = range(len(events) - 1, max(-1, len(events) - 1 - TRIED), -1)
    return (events[at] for at in places if not known.differing(changed(events, at)))


def _doubled(known: KeyHistory, _: Sequence[str]) -> Found | None:
    """One event counts twice."""
    event = next(_single(known, lambda events, at: [*events, events[at]]), None)
    return None if event is None else ("", (event,))


def _missing(known: KeyHistory, _: Sequence[str]) -> Found | None:
    """One event does not count that was there."""
    event = next(_single(known, lambda events, at: [*events[:at], *events[at + 1 :]]), None)
    return None if event is None else ("", (event,))


def _wrong_window(known: KeyHistory, features: Sequence[str]) -> Found | None:
    """The values are those of another stretch of time."""
    told = []
    for name in features:
        other = _other_span(known, name)
        if other is None:
            return None
        told.append(f"{name} from {show_time(other[0])} to {show_time(other[1])}")
    return "; ".join(told), ()


def _other_span(known: KeyHistory, name: str) -> tuple[int, int] | None:
    """The span of another window of the view, or one beginning or ending some tiles earlier or later."""
    feature, t = known.sample.view.feature(name), known.sample.t
    if len(feature.terms) != 1:
        return None
    term, served, events = feature.terms[0], known.sample.values[name], known.all
    eat = term.value.python()
    for low, high in _spans(known, term.window, t):
        inside = [(e.event_time, e.event_id, eat(e.row)) for e in events if low <= e.event_time < high]
        inputs = sorted((one for one in inside if one[2] is not None), key=lambda one: one[:2])
        if term.aggregate.close(served, term.aggregate.exact(inputs, t), inputs):
            return low, high
    return None


def _spans(known: KeyHistory, window: Window, t: int) -> Iterator[tuple[int, int]]:
    own = window.span(t)
    for feature in known.sample.view.features:
        yield from (span for term in feature.terms if (span := term.window.span(t)) != own)
    length, grain = own[1] - own[0], known.grain
    yield from ((own[0] - length * more, own[1]) for more in (1, 2, 4, 9))
    yield from ((own[1] - length // part, own[1]) for part in (2, 3, 5, 10))
    for tiles in range(1, 61):
        yield from ((own[0] + sign * tiles * grain, own[1]) for sign in (-1, 1))
        yield from ((own[0] + sign * tiles * grain, own[1] + sign * tiles * grain) for sign in (-1, 1))


KINDS: dict[str, Look] = {
    "shifted clock": _shifted_clock,
    "wrong default": _wrong_default,
    "mis-ordered features": _mis_ordered,
    "late event never published": _late_lane,
    "stale replica": _stale,
    "doubled event": _doubled,
    "missing event": _missing,
    "dropped tile": _dropped_tile,
    "truncated store": _truncated,
    "wrong window": _wrong_window,
}
"""In the order in which they are tried: what is told by more than values first, then what changes least."""
