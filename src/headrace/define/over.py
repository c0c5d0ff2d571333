"""The words users write behind `over=`: they build windows and refuse numbers that do not fit together."""

from __future__ import annotations

from datetime import timedelta
from math import gcd
from typing import Any
from zoneinfo import ZoneInfo

from headrace.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND, duration, show_duration
from headrace.define.name import flag_of, one_of
from headrace.define.window import EXACT, Calendar, Hopping, Lifetime, Session, Trailing, Tumbling, Window
from headrace.errors import DefinitionError, shown
from headrace.public_calls import check_call

LONGEST_EXACT = HOUR
_ROUND = [
    *(step * MILLISECOND for step in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(step * SECOND for step in (1, 2, 5, 10, 15, 30)),
    *(step * MINUTE for step in (1, 2, 5, 10, 15, 30)),
    *(step * HOUR for step in (1, 2, 3, 6, 12)),
    *(step * DAY for step in (1, 2, 5, 7, 10, 30)),
]


@check_call
def trailing(size: Any, *, resolution: Any = None) -> Trailing:
    """The last `size` before now, sliding with every event.

    Parameters
    ----------
    size
        How long, as "10m".
    resolution
        How finely the tail is cut: it must divide `size`. About a sixtieth of it by default; "exact" keeps single
        events for windows of at most an hour.

    Examples
    --------
    >>> str(trailing("1h"))
    'trailing(1h) by 1m'
    """
    length = duration(size, "a trailing window's size")
    if resolution == "exact":
        if length > LONGEST_EXACT:
            hint = "Name a resolution instead: the head of a trailing window is always exact."
            message = f"An exact window keeps every event and may be at most {show_duration(LONGEST_EXACT)} long."
            raise DefinitionError("bad-window", message, got=show_duration(length), hint=hint)
        return Trailing(EXACT, length)
    return Trailing(_resolution(resolution, default_resolution(length), {"size": length}), length)


@check_call
def tumbling(size: Any, *, previous: Any = False, resolution: Any = None) -> Tumbling:
    """Fixed buckets counted from 1970 in UTC; the current one, or the one before.

    >>> str(tumbling("1h", previous=True))
    'tumbling(1h, previous) by 1h'
    """
    length = duration(size, "a tumbling window's size")
    return Tumbling(_resolution(resolution, length, {"size": length}), length, flag_of(previous, "`previous`"))


@check_call
def hopping(size: Any, *, every: Any, resolution: Any = None) -> Hopping:
    """A bucket of `size`, moved on every `every`; always the last one that has elapsed.

    >>> str(hopping("1h", every="15m"))
    'hopping(1h, every 15m) by 15m'
    """
    length, hop = duration(size, "a hopping window's size"), duration(every, "a hopping window's hop")
    if hop > length:
        hint = "Events between two buckets would never count: make `every` at most `size`."
        raise DefinitionError("bad-window", "A hop is longer than its window.", got=shown(every), hint=hint)
    return Hopping(_resolution(resolution, gcd(length, hop), {"size": length, "hop": hop}), length, hop)


@check_call
def session(gap: Any, *, max_length: Any = None, resolution: Any = None) -> Session:
    """The run of events with pauses of at most `gap` that is still going on.

    Parameters
    ----------
    gap
        The longest pause inside a session.
    max_length
        How far back a session is followed; the smallest multiple of `gap` of at least a day by default.
    resolution
        At most `gap`, and it must divide it; by default the gap itself.

    Examples
    --------
    >>> str(session(gap="30m"))
    'session(gap 30m, at most 1d) by 30m'
    """
    pause = duration(gap, "a session's gap")
    longest = -(-max(DAY, pause) // pause) * pause if max_length is None else duration(max_length, "a session's length")
    if longest < pause:
        raise DefinitionError("bad-window", "A session's length is shorter than its gap.", got=shown(max_length))
    if resolution is not None and duration(resolution, "a resolution") > pause:
        hint = f"Use at most {show_duration(pause)}, or leave it out."
        message = "A session's resolution exceeds its gap, so a pause could hide inside one tile."
        raise DefinitionError("bad-resolution", message, got=shown(resolution), hint=hint)
    grain = _resolution(resolution, gcd(pause, longest), {"gap": pause, "length": longest})
    return Session(grain, pause, longest)


@check_call
def lifetime(*, resolution: Any = None) -> Lifetime:
    """Everything ever seen of a key.

    >>> str(lifetime())
    'lifetime() by 1d'
    """
    return Lifetime(_resolution(resolution, DAY, {}))


@check_call
def calendar(unit: Any, *, timezone: Any = "UTC", previous: Any = False) -> Calendar:
    """The current day, week (from Monday) or month of a time zone, or the one before.

    >>> str(calendar("day", timezone="Europe/Berlin"))
    'calendar(day in Europe/Berlin) by 15m'
    """
    one_of(unit, ("day", "week", "month"), "A calendar unit")
    try:
        ZoneInfo(timezone)
    except Exception as cause:
        hint = 'Use a name of the tz database, as "Europe/Berlin".'
        raise DefinitionError("bad-timezone", "The time zone is not known.", got=shown(timezone), hint=hint) from cause
    return Calendar(DAY if timezone == "UTC" else 15 * MINUTE, unit, timezone, flag_of(previous, "`previous`"))


def window_of(value: Any) -> Window:
    """`over=` as users write it: a window, or a plain duration for a trailing one."""
    if isinstance(value, Window):
        return value
    if isinstance(value, str | timedelta):
        return trailing(value)
    hint = 'Give a duration such as "10m", or hr.tumbling, hr.hopping, hr.session, hr.calendar or hr.lifetime.'
    raise DefinitionError("bad-window", "`over` is not a window.", got=shown(value), hint=hint)


def default_resolution(size: int) -> int:
    """The largest round duration that divides `size` into 60 tiles or more.

    >>> [show_duration(default_resolution(duration(size))) for size in ("10m", "1h", "1d", "7d")]
    ['10s', '1m', '15m', '2h']
    """
    fitting = [step for step in _ROUND if step * 60 <= size and size % step == 0]
    return fitting[-1] if fitting else size


def _resolution(given: Any, default: int, divides: dict[str, int]) -> int:
    grain = default if given is None else duration(given, "a resolution")
    for what, length in divides.items():
        if length % grain:
            message = f"The resolution does not divide the window's {what} of {show_duration(length)}."
            hint = f"Try {show_duration(gcd(length, grain))}, or leave it out."
            raise DefinitionError("bad-resolution", message, got=show_duration(grain), hint=hint)
    return grain
