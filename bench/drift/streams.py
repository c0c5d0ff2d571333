"""A year of hourly windows with a daily and a weekly rhythm, and changes that are known.

Days have a peak, weekends are flatter and lower, traffic doubles over the year, and what is left over is like itself
from hour to hour. That is so in all streams; those that are called seasonal have nothing else, and every alarm
there is false.  What competitors see is `values`, one number an hour as people would feed it: the share of wrong
predictions, the mean of a feature, the share of nulls. Headrace sees windows with the same numbers in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headrace.clock import HOUR
from headrace.drift import DriftWindow, Reference, Statistics

START = 1_767_571_200_000_000
"""A Monday, in microseconds."""
MONTH, WARM = 30 * 24, 56 * 24
"""Windows of a month, and of the time at the beginning in which no alarm counts for or against anybody."""
DRAWS = 10
"""Predictions of an hour that detectors of single errors are fed."""
PATIENCE = 14 * 24
"""Windows after a change in which an alarm has found it."""
LATE = 72
"""Windows that labels are late by, in the stream where they are."""
ERROR, MEAN, SPREAD, NULLS = 0.08, 50.0, 10.0, 0.005
EDGES = tuple(MEAN + SPREAD * (at - 10) * 0.45 for at in range(21))

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """Something that changes: in which window, how long it may take to be found, and whether it must be."""

    at: int
    patience: int = PATIENCE
    required: bool = True


@dataclass(frozen=True)
class Stream:
    """A year.

    Parameters
    ----------
    values
        The number that is watched, hour by hour.
    draws
        Single predictions of each hour, 1 for a wrong one; empty where the stream is not about errors.
    fed
        Windows as Headrace is fed them, each with the hour in which it is there.
    late
        How many hours after its end a value is known.
    """

    name: str
    values: list[float]
    draws: list[list[int]]
    fed: list[tuple[int, DriftWindow]]
    changes: tuple[Change, ...] = ()
    references: dict[str, Reference] = field(default_factory=dict)
    late: int = 0


def rhythm(hours: int) -> Floats:
    """What the hour and the weekday do, as the logarithm of a factor."""
    at = np.arange(hours)
    weekend = (at // 24 % 7) >= 5
    daily = np.cos(2 * math.pi * (at % 24 - 15) / 24)
    told: Floats = np.where(weekend, 0.1 * daily - 0.2, 0.25 * daily)
    return told


def rows_of(hours: int, chance: np.random.Generator) -> npt.NDArray[np.int64]:
    """Predictions an hour: more by day, and twice as many after a year."""
    usual = 400 * np.exp(2.5 * rhythm(hours) + math.log(2) * np.arange(hours) / (12 * MONTH))
    return chance.poisson(usual)


def wander(hours: int, size: float, chance: np.random.Generator) -> Floats:
    """Noise that is like itself from hour to hour (0.8 of it stays)."""
    steps = chance.normal(0.0, size * math.sqrt(1 - 0.64), hours)
    left = np.empty(hours)
    last = 0.0
    for at, step in enumerate(steps):
        last = left[at] = 0.8 * last + step
    return left


def step_at(hours: int, at: int, over: int = 1) -> Floats:
    """0 before a change, 1 after it, a straight line while it comes about."""
    return np.clip((np.arange(hours) - at + 1) / over, 0.0, 1.0)


def errors(name: str, hours: int, chance: np.random.Generator, drift: Floats, *changes: Change) -> Stream:
    """The share of wrong predictions; where drift is 1, it is half as much again."""
    rows = rows_of(hours, chance)
    share = ERROR * np.exp(rhythm(hours) + wander(hours, 0.04, chance) + math.log(1.5) * drift)
    values = (chance.binomial(rows, share) / rows).tolist()
    draws = (chance.random((hours, DRAWS)) < np.array(values)[:, None]).astype(int).tolist()
    fed = [
        (at, DriftWindow(*_hour(at), measures={"error_rate": (value, math.sqrt(value * (1 - value) / rows[at]))}))
        for at, value in enumerate(values)
    ]
    return Stream(name, values, draws, fed, changes)


def feature(name: str, hours: int, chance: np.random.Generator, drift: Floats, *changes: Change) -> Stream:
    """The mean of a feature; where drift is 1, it is half a standard deviation higher."""
    columns = _columns(hours, chance, 0.5 * drift, np.zeros(hours))
    return _of_columns(name, columns, [each.mean for each in columns], changes)


def nulls(name: str, hours: int, chance: np.random.Generator, drift: Floats, *changes: Change) -> Stream:
    """The share of nulls of a feature; where drift is 1, a fifth of it is null."""
    columns = _columns(hours, chance, np.zeros(hours), drift)
    return _of_columns(name, columns, [each.nulls / each.count for each in columns], changes)


def labels_late(name: str, hours: int, chance: np.random.Generator, drift: Floats, *changes: Change) -> Stream:
    """Wrong predictions that are known three days later, while the inputs, known at once, stay as they are."""
    told = errors(name, hours, chance, drift, *changes)
    inputs = _of_columns(name, _columns(hours, chance, np.zeros(hours), np.zeros(hours)), [], ())
    fed = sorted([*inputs.fed, *((at + LATE, window) for at, window in told.fed)], key=lambda each: each[0])
    return Stream(name, told.values, told.draws, fed, changes, inputs.references, LATE)


def _of_columns(name: str, columns: list[Statistics], values: list[float], changes: tuple[Change, ...]) -> Stream:
    fed = [(at, DriftWindow(*_hour(at), columns={"amount": each})) for at, each in enumerate(columns)]
    return Stream(name, values, [], fed, changes, {"amount": trained()})


def trained() -> Reference:
    """The feature as the model was trained on it."""
    counts = np.round(1_000_000 * _shares(0.0)).astype(int)
    return Reference(1_000_000, NULLS, MEAN, SPREAD, EDGES, tuple(counts.tolist()))


def _columns(hours: int, chance: np.random.Generator, shift: Floats, gone: Floats) -> list[Statistics]:
    """A feature in every hour: a normal distribution whose mean has the rhythm, and nulls."""
    rows, level = rows_of(hours, chance), rhythm(hours) + wander(hours, 0.04, chance) + shift
    lost = chance.binomial(rows, np.where(gone > 0, 0.2 * gone, NULLS * np.exp(rhythm(hours))))
    made = []
    for at in range(hours):
        values = int(rows[at] - lost[at])
        counts = chance.multinomial(values, _shares(float(level[at])))
        mean = MEAN + SPREAD * float(level[at] + chance.normal() / math.sqrt(max(1, values)))
        m2 = SPREAD**2 * max(0, values - 1)
        made.append(Statistics(int(rows[at]), int(lost[at]), mean, m2, tuple(counts.tolist())))
    return made


def _shares(level: float) -> Floats:
    """The shares of the bins of a normal distribution that is shifted by so many standard deviations."""
    below = [0.5 * (1 + math.erf(((edge - MEAN) / SPREAD - level) / math.sqrt(2))) for edge in EDGES]
    return np.diff([0.0, *below, 1.0])


def _hour(at: int) -> tuple[int, int]:
    return START + at * HOUR, START + (at + 1) * HOUR


Make = Callable[..., Stream]


def abrupt(name: str, make: Make, hours: int, chance: np.random.Generator) -> Stream:
    """One change from one hour to the next, at any hour of the second half."""
    at = int(chance.integers(hours // 2, hours - 2 * MONTH))
    return make(name, hours, chance, step_at(hours, at), Change(at))


def gradual(name: str, make: Make, hours: int, chance: np.random.Generator) -> Stream:
    """One change that takes four weeks."""
    at = int(chance.integers(hours // 2, hours - 3 * MONTH))
    return make(name, hours, chance, step_at(hours, at, 28 * 24), Change(at, 28 * 24 + PATIENCE))


def recurring(name: str, make: Make, hours: int, chance: np.random.Generator) -> Stream:
    """Two weeks in every eight. Whoever tells that it is over is not wrong, and need not."""
    drift, changes = np.zeros(hours), []
    for at in range(WARM + int(chance.integers(0, MONTH)), hours - 28 * 24, 56 * 24):
        drift[at : at + 14 * 24] = 1.0
        changes += [Change(at), Change(at + 14 * 24, required=False)]
    return make(name, hours, chance, drift, *changes)


def seasonal(name: str, make: Make, hours: int, chance: np.random.Generator) -> Stream:
    """Nothing changes."""
    return make(name, hours, chance, np.zeros(hours))


STREAMS: dict[str, tuple[Callable[..., Stream], Make]] = {
    "abrupt error": (abrupt, errors),
    "abrupt feature": (abrupt, feature),
    "gradual error": (gradual, errors),
    "gradual feature": (gradual, feature),
    "recurring error": (recurring, errors),
    "field turns null": (abrupt, nulls),
    "late labels": (abrupt, labels_late),
    "seasonal error": (seasonal, errors),
    "seasonal feature": (seasonal, feature),
}
"""All streams: what changes how, and what it is about."""
FAMILIES = {
    "errors": (("abrupt error", "late labels"), ("seasonal error",)),
    "features": (("abrupt feature", "field turns null"), ("seasonal feature",)),
}
"""What the target is held against: streams with abrupt changes, and those without any."""


def stream(name: str, seed: int, months: int = 12) -> Stream:
    """A stream by name; the same seed gives the same one."""
    how, what = STREAMS[name]
    chance = np.random.default_rng([seed, list(STREAMS).index(name)])
    return how(name, what, months * MONTH, chance)
