"""Many samples of a view against the lake: those that are equal are told fast, each of the others gets its cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

from headrace.asof.lake import PastEvents
from headrace.codec.json.rules import LATEST
from headrace.define.view import Feature, View
from headrace.lake.table import LakeTable
from headrace.meaning.event import Event
from headrace.meaning.exact import Key, ViewEvents
from headrace.skew.cause import Mismatch, mismatch
from headrace.skew.freshness import Age, Ages
from headrace.skew.sample import Sample
from headrace.skew.tile_state import KeyEvent, KeyHistory

AT_ONCE = 50_000
"""Samples whose events are in memory at the same time."""
EXAMINED = 50
"""Of so many defects among them it is found out what they look like; where there are more, there is one reason."""
NEAR = 1e-9
"""How near is near enough, without looking at events, where the last digits depend on their order."""


@dataclass(frozen=True)
class Against:
    """What a view is audited against.

    Parameters
    ----------
    grain
        How long its tiles are.
    version
        The fingerprint of its features as they are defined now.
    patience
        How long a late event may be on its way, in microseconds.
    """

    view: View
    grain: int
    version: str
    patience: int


class Judged(NamedTuple):
    """A sample, and what is wrong with it.

    Parameters
    ----------
    known
        Every feature of the view, from all that was known at the moment.
    state
        The same from what was in the tiles, as far as that explains the sample.
    age
        How old the newest event in them was; None when there was none.
    """

    sample: Sample
    known: Mapping[str, Any]
    state: Mapping[str, Any]
    mismatch: Mismatch | None
    age: Age | None


def compared(against: Against, silver: LakeTable, samples: Sequence[Sample]) -> Iterator[Judged]:
    """Every sample of the view with its verdict."""
    in_order = sorted(samples, key=lambda sample: sample.t)
    for at in range(0, len(in_order), AT_ONCE):
        some = in_order[at : at + AT_ONCE]
        moments, keys = [sample.t for sample in some], {sample.key for sample in some}
        past = PastEvents.read(silver, against.view, moments, keys)
        yield from judged(against, past, some, cache(partial(_all_of, silver, against.view, moments, frozenset(keys))))


def _all_of(silver: LakeTable, view: View, moments: Sequence[int], keys: frozenset[Key]) -> PastEvents:
    """What the lake has of keys by now, whenever it arrived."""
    return PastEvents.read(silver, view, moments, keys, arrived_by=LATEST)


def judged(
    against: Against, past: PastEvents, samples: Sequence[Sample], everything: Callable[[], PastEvents] | None = None
) -> list[Judged]:
    """Samples of the view, from events that are there; `everything` has those that came later as well."""
    columns = past.values([(sample.key, sample.moment) for sample in samples])
    meaning, ages = ViewEvents(against.view, ()), Ages(past)
    found: list[Judged] = []
    left = EXAMINED
    for at, sample in enumerate(samples):
        known = {name: values[at] for name, values in columns.items()}
        if _plainly_equal(sample, known):
            found.append(Judged(sample, known, known, None, ages.at(sample.key, sample.moment)))
        else:
            held = _key_history(against, past, meaning, sample)
            after = _after(sample, everything()) if everything is not None and sample.own is not None else ()
            wrong = mismatch(held, against.version, examined=left > 0, after=after)
            left -= wrong is not None and wrong.cause in ("defect", "undecided")
            missing = () if wrong is None else wrong.missing
            age = ages.at(sample.key, sample.moment, missing)
            found.append(Judged(sample, known, held.values(missing) if missing else known, wrong, age))
    return found


def _after(sample: Sample, everything: PastEvents) -> list[Event]:
    """The events of a sample's key that came after its own, in the order of the log."""
    later = [event for event in everything.held.get(sample.key, ()) if event.place >= sample.moment]
    return sorted(later, key=lambda event: event.place)


def _key_history(against: Against, past: PastEvents, meaning: ViewEvents, sample: Sample) -> KeyHistory:
    events = [event for event in past.held.get(sample.key, ()) if event.place < sample.moment]
    held = [KeyEvent(event, event.place in past.late) for event in sorted(events, key=lambda event: event.place)]
    return KeyHistory(sample, held, meaning, against.grain, against.patience)


def _plainly_equal(sample: Sample, known: Mapping[str, Any]) -> bool:
    """Whether all values are equal as far as can be told without looking at events."""
    view = sample.view
    return all(_equal(view.feature(name), value, known[name]) for name, value in sample.values.items())


def _equal(feature: Feature, a: Any, b: Any) -> bool:
    if a == b:
        return True
    near = len(feature.terms) == 1 and feature.terms[0].aggregate.is_rounded
    return near and isinstance(a, float) and isinstance(b, float) and abs(a - b) <= NEAR * min(abs(a), abs(b))
