"""What is usual at an hour of a day: the level and the spread of a series, learnt from its reference period.

Learnt once, and not moved afterwards: a baseline that follows its series would follow a slow drift too. The day
of the week counts when the period has three weeks. Where few windows tell of a slot, it is taken to be like its
neighbours: each correction is shrunk by how little it rests on. What is left over after the baseline goes to
`drift.detector`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import numpy.typing as npt

SUNDAY, HOLIDAY = 6, 7
WEEKLY_FROM = 21
"""Days a reference period needs before weekdays differ."""
ENOUGH_HOLIDAYS = 3
"""Holidays it needs before they differ from Sundays."""
CLIP = 5.0
"""A residual counts as no more than this, so that one wild window is not a change."""
_TO_SIGMA = 1.4826
_POOLED_WEIGHT = 10
_DAYS, _HOURS = np.indices((8, 24))
_KINDS = (_DAYS >= SUNDAY - 1) * 24 + _HOURS
_SLOTS = _DAYS * 24 + _HOURS
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


class Slot(NamedTuple):
    """When a window begins where its people live: the number of the day, its weekday (0 to 6, or 7), the hour."""

    date: int
    day: int
    hour: int


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def slot_of(start: int, zone: str = "UTC", holidays: Collection[date] = ()) -> Slot:
    """The slot of a moment.

    Examples
    --------
    >>> slot_of(0, "Asia/Tokyo")
    Slot(date=719163, day=3, hour=9)
    >>> slot_of(0, holidays=[date(1970, 1, 1)]).day
    7
    """
    here = (_EPOCH + timedelta(microseconds=start)).astimezone(_zone(zone))
    day = HOLIDAY if here.date() in holidays else here.weekday()
    return Slot(here.toordinal(), day, here.hour)


class Baseline(msgspec.Struct, frozen=True):
    """What is usual in each slot.

    Parameters
    ----------
    levels, scales
        By kind of day, then by hour: what is expected, and how far a window usually is from it.
    rows
        Of each day from Monday to Sunday, and of holidays, which of them holds.
    """

    levels: tuple[tuple[float, ...], ...]
    scales: tuple[tuple[float, ...], ...]
    rows: tuple[int, ...]

    def at(self, slot: Slot) -> tuple[float, float]:
        """What is expected in a slot, and the scale there.

        >>> flat = Baseline(((2.0,) * 24,), ((0.5,) * 24,), (0,) * 8)
        >>> flat.at(slot_of(0))
        (2.0, 0.5)
        """
        row = self.rows[slot.day]
        return self.levels[row][slot.hour], self.scales[row][slot.hour]


class Fitted(NamedTuple):
    """A baseline, and what the reference period leaves over: each part of it as seen by a baseline of the others."""

    baseline: Baseline
    residuals: Floats


def fitted(slots: Sequence[Slot], values: Sequence[float], floor: float) -> Fitted:
    """Learn a baseline.

    Parameters
    ----------
    slots, values
        The windows of the reference period in order.
    floor
        The least scale: differences below it are nothing, even if the series never moved.

    Examples
    --------
    >>> hours = [slot_of(at * 3_600_000_000) for at in range(24 * 7)]
    >>> usual = fitted(hours, [float(slot.hour) for slot in hours], floor=0.1).baseline
    >>> [round(usual.at(slot)[0], 1) for slot in hours[:3]]
    [0.8, 1.7, 2.6]
    """
    numbers, hours = np.array(values, dtype=np.float64), np.array([slot.hour for slot in slots], dtype=np.intp)
    known = len({slot.date for slot in slots if slot.day == HOLIDAY}) >= ENOUGH_HOLIDAYS
    days = np.array([SUNDAY if slot.day == HOLIDAY and not known else slot.day for slot in slots], dtype=np.intp)
    weekly = slots[-1].date - slots[0].date + 1 >= WEEKLY_FROM
    cells = _Cells(days, hours, weekly)
    left = _left_out(cells, numbers)
    levels, scales = _levels(cells, numbers), _scales(cells, left, floor)
    if not known:
        levels[HOLIDAY], scales[HOLIDAY] = levels[SUNDAY], scales[SUNDAY]
    return Fitted(_tables_json(levels, scales, weekly), left / scales[days, hours])


class _Cells(NamedTuple):
    days: Ints
    hours: Ints
    weekly: bool

    def some(self, at: Ints) -> _Cells:
        return _Cells(self.days[at], self.hours[at], self.weekly)


def _levels(cells: _Cells, values: Floats) -> Floats:
    """The level of each slot: the median of all, corrected for the hour, then for ever finer slots."""
    levels = np.full((8, 24), np.median(values))
    _correct(levels, cells, values, grid=_HOURS, shrink=0.1 if cells.weekly else 0.5)
    if cells.weekly:
        for grid, shrink in ((_KINDS, 1.0), (_DAYS, 24.0), (_SLOTS, 3.0)):
            _correct(levels, cells, values, grid=grid, shrink=shrink)
    return levels


def _correct(levels: Floats, cells: _Cells, values: Floats, *, grid: npt.NDArray[np.int_], shrink: float) -> None:
    """Move each group of slots to the median of what is left there, the less the fewer windows it has."""
    left, groups = values - levels[cells.days, cells.hours], grid[cells.days, cells.hours]
    for group in np.unique(groups):
        inside = left[groups == group]
        levels[grid == group] += np.median(inside) * len(inside) / (len(inside) + shrink)


def _left_out(cells: _Cells, values: Floats) -> Floats:
    """What each part of the period is off from a baseline that has not seen it.

    A baseline fits what it was learnt from better than anything that comes later; thresholds from that fit would be
    too tight.
    """
    left = np.empty_like(values)
    order = np.arange(len(values))
    for part in np.array_split(order, min(8, max(3, len(values) // (7 * 24)))):
        others = np.setdiff1d(order, part)
        seen = _levels(cells.some(others), values[others])
        left[part] = values[part] - seen[cells.days[part], cells.hours[part]]
    return left


def _scales(cells: _Cells, left: Floats, floor: float) -> Floats:
    """The spread in each slot, drawn towards that of all slots together."""
    pooled = max(_spread(left), floor)
    scales = np.full((8, 24), pooled)
    grid = _KINDS if cells.weekly else _HOURS
    groups = grid[cells.days, cells.hours]
    for group in np.unique(groups):
        inside = left[groups == group]
        own = len(inside) * _spread(inside) ** 2 + _POOLED_WEIGHT * pooled**2
        scales[grid == group] = max(floor, float(np.sqrt(own / (len(inside) + _POOLED_WEIGHT))))
    return scales


def _spread(left: Floats) -> float:
    return float(_TO_SIGMA * np.median(np.abs(left - np.median(left))))


def _tables_json(levels: Floats, scales: Floats, weekly: bool) -> Baseline:
    """The tables with the digits that count; without weekdays, one row is all."""
    rows = range(8) if weekly else range(1)
    told = [tuple(tuple(float(f"{x:.9g}") for x in table[row]) for row in rows) for table in (levels, scales)]
    return Baseline(told[0], told[1], tuple(rows) if weekly else (0,) * 8)
