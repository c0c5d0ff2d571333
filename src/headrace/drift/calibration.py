"""The threshold of a detector, so that it is false no more often than its share of the budget allows.

The residuals of the reference period are put together anew, many times, in blocks of two days (a moving-block
bootstrap: what follows from hour to hour stays together). A detector that runs over years of such months shows how
often it is false.  What the period never held cannot be in them; half of the budget is kept back for that.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from headrace.clock import DAY
from headrace.drift.detector import Detector, PageHinkley, River, river_detector, scaled
from headrace.drift.season import CLIP
from headrace.drift.settings import MONTH, PAGE_HINKLEY
from headrace.plural import show_count

FEWEST = 50
"""Windows that a reference period must have at least."""
SHORTEST = 3 * DAY
"""How long it must be at least."""
STEPS = 200_000
"""Residuals that a Page-Hinkley detector is run over to calibrate it."""
RIVER_STEPS = 20_000
REPLICATES = 20
HELD_BACK = 0.5
_TAIL = 100
_GRIDS = {
    "adwin": tuple(10.0**-at for at in range(2, 31, 2)),
    "hddm-a": tuple(10.0**-at for at in range(2, 61, 4)),
    "hddm-w": tuple(10.0**-at for at in range(2, 61, 4)),
    "ddm": (3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 50.0),
}
"""Parameters of river's detectors, from the most to the least sensitive."""

Floats = npt.NDArray[np.float64]


class Calibration(msgspec.Struct, frozen=True):
    """How a series is watched, and what that rests on.

    Parameters
    ----------
    windows
        Of the reference period, that said something.
    reason
        Why the series is not watched; None when it is.
    level, center
        What the series usually is, and the mean of its residuals, which is taken off.
    least
        The least effect that is told, in the series' own units.
    allowed, expected
        False alarms a month: its share of the budget, and what the resampled period had.
    apart
        Whether the series was as far from the model's reference as matters, all through the reference period.
    """

    windows: int
    reason: str | None = None
    level: float = 0.0
    center: float = 0.0
    least: float = 0.0
    allowed: float = 0.0
    expected: float = 0.0
    apart: bool = False


class Budget(NamedTuple):
    """What a series is calibrated for: false alarms a month, how long a window is, and the seed of its chance."""

    rate: float
    length: int
    seed: int

    @property
    def per_month(self) -> float:
        """The windows of a month."""
        return MONTH / self.length


class CalibratedDetector(NamedTuple):
    """A detector, and the false alarms a month that it had in the resampled period."""

    detector: Detector
    expected: float


def too_short(windows: int, period: int) -> str | None:
    """Why a reference period cannot calibrate anything; None if it can.

    Examples
    --------
    >>> too_short(10, 10 * DAY)
    'the reference period has 10 windows that say something, and 50 are needed'
    """
    if windows < FEWEST:
        few = show_count(windows, "window that says", "windows that say")
        return f"the reference period has {few} something, and {FEWEST} are needed"
    if period < SHORTEST:
        return f"the reference period spans {period / DAY:.1f} days, and {SHORTEST // DAY} are needed"
    return None


def choose_detector(
    name: str, residuals: Floats, budget: Budget, *, allowance: float, upward: bool
) -> CalibratedDetector:
    """The most sensitive detector of a name that stays within its budget on the residuals of a reference period.

    Examples
    --------
    >>> noise = np.random.default_rng(7).normal(size=672)
    >>> often = choose_detector("page-hinkley", noise, Budget(2.0, 3_600_000_000, 7), allowance=0.5, upward=False)
    >>> seldom = choose_detector("page-hinkley", noise, Budget(0.02, 3_600_000_000, 7), allowance=0.5, upward=False)
    >>> often.detector.threshold < seldom.detector.threshold
    True
    """
    if name == PAGE_HINKLEY:
        return _page_hinkley(residuals, budget, allowance, upward)
    months = resampled(residuals, RIVER_STEPS, budget)
    found = CalibratedDetector(River(name, _GRIDS[name][-1]), 0.0)
    for parameter in _GRIDS[name]:
        most = HELD_BACK * budget.rate * RIVER_STEPS / budget.per_month
        rate = _alarms(name, parameter, months, most) * budget.per_month / RIVER_STEPS
        found = CalibratedDetector(River(name, parameter), rate)
        if rate <= HELD_BACK * budget.rate:
            break
    return found


def _page_hinkley(residuals: Floats, budget: Budget, allowance: float, upward: bool) -> CalibratedDetector:
    months = resampled(residuals, STEPS, budget)
    found = [peaks(months - allowance), *([] if upward else [peaks(-months - allowance)])]
    highest = np.sort(np.concatenate(found))[::-1]
    lasted = months.size / budget.per_month
    # One window alone is never enough, however wild it is.
    threshold = max(beyond(highest, HELD_BACK * budget.rate * lasted), CLIP - allowance)
    rate = float((highest > threshold).sum()) / lasted
    return CalibratedDetector(PageHinkley(allowance, float(f"{threshold:.6g}"), upward), rate)


def resampled(residuals: Floats, steps: int, budget: Budget) -> Floats:
    """Runs of the reference period put together anew, one a row.

    Each run is shifted by as much as the level of a resampled reference period is off: the baseline is known only as
    well as its period tells it.

    >>> resampled(np.zeros(100), 1_000, Budget(1.0, 3_600_000_000, 7)).shape
    (20, 50)
    """
    chance = np.random.default_rng(budget.seed)
    block = max(2, min(len(residuals) // 4, 2 * DAY // budget.length))
    known = np.array([_put_together(residuals, len(residuals), block, chance).mean() for _ in range(REPLICATES)])
    runs = [_put_together(residuals, steps // REPLICATES, block, chance) for _ in range(REPLICATES)]
    shifted: Floats = np.array(runs) - (known - residuals.mean())[:, None]
    return shifted


def _put_together(residuals: Floats, steps: int, block: int, chance: np.random.Generator) -> Floats:
    starts = chance.integers(0, len(residuals), size=-(-steps // block))
    # The end of the period is followed by its beginning, so that each window is drawn as often as any other.
    places = (starts[:, None] + np.arange(block)[None, :]).ravel()[:steps] % len(residuals)
    drawn: Floats = residuals[places]
    return drawn


def peaks(steps: Floats) -> Floats:
    """How high the sums of a Page-Hinkley detector come, each time they rise from zero; all runs together.

    >>> peaks(np.array([[1.0, 1.0, -3.0, 2.0, -1.0]]))
    array([2., 2.])
    """
    sums = np.cumsum(steps, axis=1)
    above = sums - np.minimum(np.minimum.accumulate(sums, axis=1), 0.0)
    # A run begins at zero, so that a rise does not go on from one run into the next.
    flat = np.concatenate([np.zeros((len(above), 1)), above], axis=1).ravel()
    highest = np.maximum.reduceat(flat, np.flatnonzero(flat <= 0.0))
    risen: Floats = highest[highest > 0.0]
    return risen


def beyond(highest: Floats, allowed: float) -> float:
    """The threshold that so many peaks exceed. Where that is too few to count, the tail is taken to be exponential.

    >>> beyond(np.arange(1_000.0)[::-1], 200.0)
    799.0
    """
    if len(highest) == 0:
        return 0.0
    if allowed >= _TAIL:
        return float(highest[min(int(allowed), len(highest) - 1)])
    tail = min(_TAIL, len(highest) - 1)
    if tail == 0:
        return float(highest[0])
    falls = float((highest[:tail] - highest[tail]).mean())
    return float(highest[tail] + falls * np.log(max(tail / allowed, 1.0)))


def _alarms(name: str, parameter: float, months: Floats, most: float) -> int:
    """How often a detector of river is false over all runs, counted until it is too often; it starts anew with each."""
    found = 0
    for run in months:
        if found > most:
            break
        made = river_detector(name, parameter)
        for residual in run.tolist():
            made.update(scaled(residual))
            found += bool(made.drift_detected)
    return found
