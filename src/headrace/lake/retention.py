"""How much of a stream's history must stay, because a view may still ask for it.

A value of now reaches back by its window; the batch side of a hand-over is computed for a moment that lies allowed
lateness and clock skew back, and copies of events are looked for as far. What is older serves training sets alone, and
may be forgotten (`lake.maintenance`).
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.clock import DAY, show_duration, show_time
from headrace.define.stream import Stream
from headrace.errors import DataError
from headrace.lake.counters import behind
from headrace.lake.layout import BRONZE, SILVER
from headrace.lake.table import LakeTable
from headrace.plan.model import Plan


@dataclass(frozen=True)
class Needed:
    """How long history must be kept, None for ever, and because of which feature (None: no view reads the stream)."""

    keep: int | None
    reach: int | None
    feature: str | None

    def why(self, stream: Stream) -> str:
        """The reason as a hint says it."""
        margin = (
            f"{show_duration(stream.allowed_lateness)} of lateness and {show_duration(stream.max_clock_skew)} of skew"
        )
        if self.feature is None:
            return f"no view reads the stream, but copies are looked for within {margin}"
        if self.reach is None:
            return f"{self.feature} is over a lifetime"
        return f"{self.feature} looks back {show_duration(self.reach)}, and there are {margin}"


def needed(plan: Plan, stream: Stream) -> Needed:
    """What the views of a plan need of a stream.

    Examples
    --------
    >>> import headrace as hr
    >>> from headrace.plan.build import build
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at", allowed_lateness="1h")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over=hr.tumbling("7d"))})
    >>> show_duration(needed(build([users]), clicks).keep)
    '7d1h1m'
    """
    margin = stream.allowed_lateness + stream.max_clock_skew
    reaches = [
        (feature.id, term.term.window.reach)
        for feature in plan.features
        if feature.tile_set.stream.name == stream.name
        for term in feature.terms
    ]
    for name, reach in reaches:
        if reach is None:
            return Needed(None, None, name)
    if not reaches:
        return Needed(margin, 0, None)
    name, longest = max(((name, reach or 0) for name, reach in reaches), key=lambda pair: pair[1])
    return Needed(longest + margin, longest, name)


def first_day_kept(age: int, now: int) -> str:
    """The first day that stays when what is older than `age` is forgotten: whole days go, the one it falls in stays.

    >>> first_day_kept(2 * DAY, 10 * DAY + 5)
    '1970-01-09'
    """
    before = now - age
    return show_time(before - before % DAY)[:10]


def refuse_needed(tables: dict[str, LakeTable], plan: Plan, stream: Stream, age: int) -> None:
    """Refuse to forget what a view can still ask for, or what silver still has to be made from."""
    found = needed(plan, stream)
    if found.keep is None or age < found.keep:
        kept = "for ever" if found.keep is None else f"at least {show_duration(found.keep)}"
        message = f"Days of {stream.name!r} would be forgotten that a view can still ask for."
        hint = f"Keep it {kept}: {found.why(stream)}."
        raise DataError("lake-needed", message, got=show_duration(age), hint=hint)
    bronze = tables.get(BRONZE)
    if bronze is not None and behind(bronze, tables.get(SILVER)):
        message = f"Silver of {stream.name!r} lacks a batch that bronze has, and is made up for from there."
        hint = "Start the archive with `headrace up`; it does so before anything else. Then forget."
        raise DataError("lake-needed", message, hint=hint)
