"""Why a value is not what was known at its moment.

`freshness`: it is what the log held a little earlier, as far as the answer itself said it was. `late lane`: a late
event was on its way. `unready`: the answer said that it did not know what was in it, as while a store is being filled.
`version`: the features were defined otherwise then. Everything else is a `defect`. A cause must explain all values of a
sample at once: one number alone can be met by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headrace.audit.defect import Evidence, looks_like
from headrace.audit.state import Known
from headrace.define.event import Event

Cause = Literal["freshness", "late lane", "unready", "version", "undecided", "defect"]
CAUSES: tuple[Cause, ...] = ("freshness", "late lane", "unready", "version", "undecided", "defect")


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

    known: Known
    features: tuple[str, ...]
    cause: Cause
    missing: tuple[Event, ...] = ()
    delay: int | None = None
    evidence: Evidence | None = None


def mismatch(known: Known, version: str, *, examined: bool = True) -> Mismatch | None:
    """What is wrong with a sample; None when nothing is.

    Parameters
    ----------
    version
        The fingerprint of the view's features as they are now.
    examined
        Whether it is found out what a defect looks like, which takes a while.
    """
    features = tuple(known.differing(known.all))
    if not features:
        return None
    sample = known.sample
    if sample.version is not None and sample.version != version:
        return Mismatch(known, features, "version")
    if sample.as_of is None:
        return Mismatch(known, features, "unready")
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


UNEXPLAINED, NOT_EXAMINED = Evidence("unexplained"), Evidence("not examined")
