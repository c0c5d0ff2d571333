"""Windows: which tiles of a key count at a time t.

Every window answers one question, `span(t)`: the half-open range of event times whose tiles count. A tile is `r` wide,
r being the window's resolution, so a span is always made of whole r-tiles; how finely tiles are stored never changes a
value. A session narrows its span further (`narrow`), to the events chained by gaps. No other module asks for the
class of a window: what is special about one is a property or method here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar
from zoneinfo import ZoneInfo

from headrace.clock import DAY, MICROSECOND, MINUTE, show_duration

if TYPE_CHECKING:
    from headrace.aggregate.columns import Array

EXACT = MICROSECOND
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Window:
    """What all windows share: a kind and a resolution in microseconds."""

    resolution: int
    kind: ClassVar[str] = "window"

    @property
    def exact(self) -> bool:
        """Whether single events are kept for the window's tail."""
        return self.resolution == EXACT

    def floor(self, t: int) -> int:
        """F(t): the start of the r-tile that holds t."""
        return t - t % self.resolution

    def span(self, t: int) -> tuple[int, int]:
        """The half-open range of event times whose r-tiles count at t."""
        raise NotImplementedError

    def spans(self, t: Array) -> tuple[Array, Array]:
        """The span at many moments.

        >>> import numpy as np
        >>> [each.tolist() for each in Trailing(10, 20).spans(np.array([5, 19]))]
        [[-20, -10], [10, 20]]
        """
        import numpy as np

        low, high = self.span(t)  # type: ignore[arg-type]  # Whole numbers or arrays of them: the arithmetic is the same.
        return np.broadcast_to(low, t.shape).astype(np.int64), np.broadcast_to(high, t.shape).astype(np.int64)

    @property
    def pause(self) -> int | None:
        """The longest pause between events that count together; None where pauses do not matter."""
        return None

    @property
    def needs_single_tiles(self) -> bool:
        """Whether tiles must be seen one by one, with the first and last time in each, to find the pauses."""
        return self.pause is not None

    def narrow(self, firsts: Sequence[int], lasts: Sequence[int], t: int) -> int:
        """How many of the oldest events, or tiles, of its span do not count at t.

        Parameters
        ----------
        firsts, lasts
            The first and the last event time of each, in order; of a single event the two are one.
        """
        del firsts, lasts, t
        return 0

    @property
    def lengths(self) -> tuple[int, ...]:
        """What the stored grain must divide: the resolution, sizes, hops and gaps."""
        raise NotImplementedError

    @property
    def reach(self) -> int | None:
        """How far behind t an event may lie and still count; None for ever."""
        return sum(self.lengths[-2:])

    @property
    def form(self) -> dict[str, Any]:
        """The window as JSON, for plans and fingerprints."""
        return {"kind": self.kind} | dict(self.__dict__)

    def _shown(self, *parts: str) -> str:
        listed = ", ".join(parts)
        return f"{self.kind}({listed}) by {self._grain()}"

    def _grain(self) -> str:
        return "exact" if self.exact else show_duration(self.resolution)


@dataclass(frozen=True)
class Trailing(Window):
    """The last `size` before t: the head exact to the last known event, the tail rounded to r."""

    size: int
    kind = "trailing"

    def span(self, t: int) -> tuple[int, int]:
        return self.floor(t) - self.size, self.floor(t) + self.resolution

    @property
    def lengths(self) -> tuple[int, ...]:
        return (self.resolution, self.size)

    def __str__(self) -> str:
        return self._shown(show_duration(self.size))


@dataclass(frozen=True)
class Tumbling(Window):
    """The bucket of fixed size that holds t, or the one before it. Buckets count from 1970-01-01T00:00Z."""

    size: int
    previous: bool = False
    kind = "tumbling"

    def span(self, t: int) -> tuple[int, int]:
        start = t - t % self.size
        return (start - self.size, start) if self.previous else (start, self.floor(t) + self.resolution)

    @property
    def lengths(self) -> tuple[int, ...]:
        return (self.resolution, self.size)

    @property
    def reach(self) -> int | None:
        return self.size * (2 if self.previous else 1)

    def __str__(self) -> str:
        return self._shown(show_duration(self.size), *(["previous"] if self.previous else []))


@dataclass(frozen=True)
class Hopping(Window):
    """The last elapsed hop: `size` long, ending at the latest multiple of `every`."""

    size: int
    every: int
    kind = "hopping"

    def span(self, t: int) -> tuple[int, int]:
        end = t - t % self.every
        return end - self.size, end

    @property
    def lengths(self) -> tuple[int, ...]:
        return (self.resolution, self.size, self.every)

    def __str__(self) -> str:
        return self._shown(show_duration(self.size), f"every {show_duration(self.every)}")


@dataclass(frozen=True)
class Session(Window):
    """The events chained by pauses of at most `gap`, if the last is at most `gap` before t; else empty.

    At most `max_length` of tiles before F(t) are looked at.
    """

    gap: int
    max_length: int
    kind = "session"

    def span(self, t: int) -> tuple[int, int]:
        return self.floor(t) - self.max_length, self.floor(t) + self.resolution

    @property
    def lengths(self) -> tuple[int, ...]:
        return (self.resolution, self.gap, self.max_length)

    @property
    def reach(self) -> int | None:
        return self.max_length + self.resolution

    @property
    def pause(self) -> int | None:
        return self.gap

    def narrow(self, firsts: Sequence[int], lasts: Sequence[int], t: int) -> int:
        if not lasts or t - lasts[-1] > self.gap:
            return len(lasts)
        begin = len(lasts) - 1
        while begin and firsts[begin] - lasts[begin - 1] <= self.gap:
            begin -= 1
        return begin

    def __str__(self) -> str:
        return self._shown(f"gap {show_duration(self.gap)}", f"at most {show_duration(self.max_length)}")


@dataclass(frozen=True)
class Lifetime(Window):
    """Everything ever seen, up to the tile that holds t."""

    kind = "lifetime"

    def span(self, t: int) -> tuple[int, int]:
        return -(2**62), self.floor(t) + self.resolution

    @property
    def lengths(self) -> tuple[int, ...]:
        return (self.resolution,)

    @property
    def reach(self) -> int | None:
        return None

    def __str__(self) -> str:
        return self._shown()


@dataclass(frozen=True)
class Calendar(Window):
    """The day, ISO week or month of a time zone that holds t, or the one before it."""

    unit: str
    timezone: str
    previous: bool = False
    kind = "calendar"

    def span(self, t: int) -> tuple[int, int]:
        zone = ZoneInfo(self.timezone)
        local = (_EPOCH + timedelta(microseconds=t)).astimezone(zone)
        start = _bucket_start(local, self.unit)
        if self.previous:
            before = _bucket_start(start - timedelta(days=1), self.unit)
            return self._ceil(_micros(before)), self._ceil(_micros(start))
        return self._ceil(_micros(start)), self.floor(t) + self.resolution

    def spans(self, t: Array) -> tuple[Array, Array]:
        import numpy as np

        # Clocks are changed at whole minutes, and days begin at them.
        different, which = np.unique(t // MINUTE, return_inverse=True)
        found = np.array([self.span(int(minute) * MINUTE) for minute in different], dtype=np.int64).reshape(-1, 2)
        return found[which, 0], found[which, 1]

    def _ceil(self, t: int) -> int:
        return -(-t // self.resolution) * self.resolution

    @property
    def lengths(self) -> tuple[int, ...]:
        return (self.resolution,)

    @property
    def reach(self) -> int | None:
        longest = {"day": DAY, "week": 7 * DAY, "month": 31 * DAY}[self.unit] + DAY
        return longest * (2 if self.previous else 1)

    def __str__(self) -> str:
        return self._shown(f"{self.unit} in {self.timezone}", *(["previous"] if self.previous else []))


def _bucket_start(local: datetime, unit: str) -> datetime:
    day = datetime(local.year, local.month, local.day, tzinfo=local.tzinfo)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if unit == "month" else day


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)
