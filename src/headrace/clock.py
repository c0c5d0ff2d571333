"""Time as Headrace keeps it: integer microseconds since 1970 in UTC, and durations as integer microseconds.

Nothing here reads the wall clock except `SystemClock`: everything that needs "now" is handed a `Clock`.
"""

from __future__ import annotations

import functools
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from headrace.errors import DefinitionError, shown

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
LONGEST = 36_525 * DAY

_UNITS = {"us": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
_PART = re.compile(r"(\d{1,15})(us|ms|s|m|h|d|w)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-](?:0\d|1[0-7]):[0-5]\d|[+-]18:00)",
    re.ASCII,
)


def duration(value: Any, what: str = "a duration", *, zero: bool = False) -> int:
    """Read a duration such as "10m", "1h30m" or a `timedelta` into microseconds.

    Parameters
    ----------
    value
        Text of whole numbers with the units us, ms, s, m, h, d, w; or a `timedelta`.
    what
        What the duration is for, as the error should call it.
    zero
        Whether zero is allowed.

    Examples
    --------
    >>> duration("1h30m")
    5400000000
    """
    micros = _micros(value)
    if micros is None:
        hint = 'Write whole numbers with units, such as "30s", "10m", "1h30m" or "7d".'
        raise DefinitionError("bad-duration", f"{_capital(what)} cannot be read.", got=shown(value), hint=hint)
    if micros < 0 or (micros == 0 and not zero):
        wanted = "must not be negative" if zero else "must be longer than zero"
        raise DefinitionError("bad-duration", f"{_capital(what)} {wanted}.", got=shown(value))
    if micros > LONGEST:
        hint = "The longest is 100 years; for everything ever seen use hr.lifetime()."
        raise DefinitionError("bad-duration", f"{_capital(what)} is absurdly long.", got=shown(value), hint=hint)
    return micros


def _micros(value: Any) -> int | None:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if not isinstance(value, str) or len(value) > 60:
        return None
    text = value.strip()
    if re.fullmatch(r"-?0+", text):
        return 0
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sign * sum(int(number) * _UNITS[unit] for number, unit in parts)


def _capital(what: str) -> str:
    return what[0].upper() + what[1:]


def show_duration(micros: int) -> str:
    """The shortest exact text of a duration: the inverse of `duration`.

    >>> show_duration(5_400_000_000)
    '1h30m'
    """
    if micros == 0:
        return "0s"
    text, rest = "-" if micros < 0 else "", abs(micros)
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, rest = divmod(rest, _UNITS[unit])
        text += f"{count}{unit}" if count else ""
    return text


def parse_timestamp(text: str) -> int | None:
    """Microseconds of an RFC 3339 timestamp with an offset; None for anything else, a naive one included.

    Digits past the microsecond are cut off. Spark's `CAST(... AS TIMESTAMP)` gives the same for all that pass.

    >>> parse_timestamp("2026-01-01T00:00:00.5+01:00")
    1767222000500000
    >>> parse_timestamp("2026-01-01T00:00:00") is None
    True
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    try:
        naive = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
    except ValueError:
        return None
    micros = (naive - _EPOCH) // timedelta(microseconds=1) + int(((fraction or "") + "000000")[:6])
    if offset != "Z":
        ahead = (int(offset[1:3]) * 60 + int(offset[4:6])) * MINUTE
        micros += -ahead if offset[0] == "+" else ahead
    return micros


def micros(value: Any, what: str = "a time") -> int:
    """Read a moment: integer microseconds, an aware `datetime`, or RFC 3339 text. A naive one is refused.

    >>> micros("2026-01-01T00:00:00Z")
    1767225600000000
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, datetime) and value.tzinfo is not None:
        return (value - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, str) and (parsed := parse_timestamp(value)) is not None:
        return parsed
    hint = 'Add the offset, as in "2026-01-31T12:00:00Z" or datetime(..., tzinfo=timezone.utc).'
    raise DefinitionError("naive-timestamp", f"{_capital(what)} needs a UTC offset.", got=shown(value), hint=hint)


def show_time(micros: int) -> str:
    """RFC 3339 text in UTC of integer microseconds.

    >>> show_time(1767225600500000)
    '2026-01-01T00:00:00.500000Z'
    """
    seconds, rest = divmod(micros, SECOND)
    return f"{_to_the_second(seconds)}.{rest:06}Z" if rest else f"{_to_the_second(seconds)}Z"


@functools.lru_cache(maxsize=1_024)
def _to_the_second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat().removesuffix("+00:00")


class Clock(Protocol):
    """Anything that can say what time it is."""

    def now(self) -> int:
        """Microseconds since 1970 in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        """Microseconds since 1970 in UTC."""
        return time.time_ns() // 1_000
