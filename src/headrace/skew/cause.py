"""Why a value is not what was known at its moment.

`freshness`: it is what the log held a little earlier, as far as the answer itself said it was. `late lane`: a late
event was on its way. `ahead`: scoring was behind, and the tiles had passed the event that a prediction is of, so that
what came after it is in the value. `unready`: the answer said that it did not know what was in it, as while a store is
being filled. `version`: the features were defined otherwise then. Everything else is a `defect`. A cause must explain
all values of a sample at once: one number alone can be met by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headrace.meaning.event import Event
from headrace.skew.defect import Evidence, looks_like
from headrace.skew.tile_state import KeyHistory

Cause = Literal["freshness", "late lane", "ahead", "unready", "version", "undecided", "defect"]
CAUSES: tuple[Cause, ...] = ("freshness", "late lane", "ahead", "unready", "version", "undecided", "defect")
FURTHER = 20
"""Events by which tiles may be further than what was said of them."""


@dataclass(frozen=True)
class Mismatch:
    """Values of a sample that differ, and why.

    Parameters
    ----------
    features
        Their names.
    missing
        The events that the tiles lacked.
    delay
        From the arrival of the first of them to the sample's moment, in microseconds.
    evidence
        Of a defect, what it looks like.
    """

    known: KeyHistory
    features: tuple[str, ...]
    cause: Cause
    missing: tuple[Event, ...] = ()
    delay: int | None = None
    evidence: Evidence | None = None


def mismatch(known: KeyHistory, version: str, *, examined: bool = True, after: Sequence[Event] = ()) -> Mismatch | None:
    """What is wrong with a sample; None when nothing is.

    Parameters
    ----------
    version
        The fingerprint of the view's features as they are now.
    examined
        Whether it is found out what a defect looks like, which takes a while.
    after
        The events of the key that came after a prediction's own, in the order of the log.
    """
    features = tuple(known.differing(known.all))
    if not features:
        return None
    sample = known.sample
    if sample.version is not None and sample.version != version:
        return Mismatch(known, features, "version")
    if sample.as_of is None:
        return Mismatch(known, features, "unready")
    if _ahead(known, after):
        return Mismatch(known, features, "ahead")
    late = {each.event.place for each in known.events if each.late}
    for missing in known.lacking():
        if missing and not known.differing(known.without(missing)):
            on_time = [event for event in missing if event.place not in late]
            delay = sample.t - min(event.arrived_at for event in missing)
            return Mismatch(known, features, "freshness" if on_time else "late lane", tuple(missing), delay)
    evidence = looks_like(known, features) if examined else NOT_EXAMINED
    if not known.tried_all and evidence in (None, NOT_EXAMINED):
        return Mismatch(known, features, "undecided")
    return Mismatch(known, features, "defect", evidence=evidence or UNEXPLAINED)


def _ahead(known: KeyHistory, after: Sequence[Event]) -> bool:
    """Whether the values are what they are with events that came later: all that were in the tiles, or a few more."""
    positions = known.sample.positions or {}
    passed = [event for event in after if event.place[2] < positions.get(event.place[1], 0)]
    beyond = [event for event in after if event.place[2] >= positions.get(event.place[1], 0)][:FURTHER]
    states = ([*passed, *beyond[:count]] for count in range(0 if passed else 1, len(beyond) + 1))
    return any(not known.differing([*known.all, *more]) for more in states)


UNEXPLAINED, NOT_EXAMINED = Evidence("unexplained"), Evidence("not examined")
