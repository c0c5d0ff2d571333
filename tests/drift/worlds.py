"""Windows to watch: an hourly error with a rhythm, and columns that are counted from drawn values."""

from __future__ import annotations

import math

import numpy as np

from headrace.clock import HOUR
from headrace.drift import DriftWindow, Reference, Statistics, WatchSettings

START = 1_767_571_200_000_000
"""A Monday."""
WEEK = 7 * 24
AMOUNT = Reference(
    rows=1_000,
    null_rate=0.0,
    mean=0.0,
    stddev=1.0,
    edges=(-4.0, -1.0, 0.0, 1.0, 4.0),
    counts=(0, 160, 340, 340, 160, 0),
)
COUNTRY = Reference(rows=1_000, null_rate=0.0, texts={"DE": 600, "FR": 400})
REFERENCES = {"amount": AMOUNT, "country": COUNTRY}
QUICK = WatchSettings(reference=2 * WEEK, false_alarms_per_month=0.5)


def hour(at: int) -> tuple[int, int]:
    return START + at * HOUR, START + (at + 1) * HOUR


def usual(hours):
    """The error an hour has by its rhythm alone."""
    at = np.arange(hours)
    weekend = at // 24 % 7 >= 5
    return 0.4 + np.where(weekend, -0.05, 0.1 * np.cos(2 * math.pi * at / 24))


def noise(hours, seed, size=0.02):
    """What is left over: like itself from hour to hour."""
    steps = np.random.default_rng(seed).normal(0.0, size * 0.8, hours)
    left, last = np.empty(hours), 0.0
    for at, step in enumerate(steps):
        last = left[at] = 0.6 * last + step
    return left


def errors(hours, seed=1, *, moved=None, by=0.2):
    """Windows with an error that moves in one hour, for good."""
    values = usual(hours) + noise(hours, seed)
    if moved is not None:
        values[moved:] += by
    return [DriftWindow(*hour(at), measures={"log_loss": (float(value), 0.01)}) for at, value in enumerate(values)]


def amounts(hours, seed=2, *, moved=None, by=0.8, nulls=None, new=None, segments=False):
    """Windows of two columns, 200 rows an hour; from some hours on, their mean, nulls or categories change."""
    chance = np.random.default_rng(seed)
    made = []
    for at in range(hours):
        mean = 0.1 * math.cos(2 * math.pi * at / 24) + (by if moved is not None and at >= moved else 0.0)
        gone = 60 if nulls is not None and at >= nulls else int(chance.poisson(1))
        columns = {"amount": amount(chance, mean, gone)}
        if segments:
            columns["amount[country=DE]"] = amount(chance, mean, gone)
            columns["amount[country=FR]"] = amount(chance, 0.0, gone)
        other = 20 if new is not None and at >= new else 0
        german = int(chance.binomial(200 - other, 0.6))
        columns["country"] = Statistics(200, texts={"DE": german, "FR": 200 - other - german}, other=other)
        made.append(DriftWindow(*hour(at), columns=columns))
    return made


def amount(chance, mean, nulls):
    values = chance.normal(mean, 1.0, 200 - nulls)
    places = np.searchsorted(AMOUNT.edges, values, side="right")
    counts = np.bincount(places, minlength=6)
    squares = float(((values - values.mean()) ** 2).sum())
    return Statistics(200, nulls, float(values.mean()), squares, tuple(counts.tolist()), against=AMOUNT.fingerprint)


def together(inputs, outputs):
    """Windows that have columns and measures at once."""
    return [DriftWindow(a.start, a.end, a.columns, b.measures) for a, b in zip(inputs, outputs, strict=True)]
