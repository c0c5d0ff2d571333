"""How a model is watched: the budget of false alarms, the least that matters, the calendar, the reference period."""

from __future__ import annotations

from datetime import date
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from headrace.clock import DAY, HOUR
from headrace.drift.window import MEAN, NEW, NULLS, PSI, parts
from headrace.errors import DataError, did_you_mean, shown

MONTH = 30 * DAY
ERROR = "error"
MINIMUM = {MEAN: 0.2, PSI: 0.1, NULLS: 0.01, NEW: 0.01, ERROR: 0.1}
"""The least that matters: standard deviations, PSI, shares; of the model's error, a share of what it usually is."""
PAGE_HINKLEY = "page-hinkley"
DETECTORS = (PAGE_HINKLEY, "adwin", "ddm", "hddm-a", "hddm-w")


class WatchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be chosen.

    Parameters
    ----------
    length
        How long a window is, in microseconds.
    reference
        The period in which all was well: so many windows from the first on, or two moments in microseconds.
    false_alarms_per_month
        How many alarms a month of 30 days may have without a cause, over all series of the model.
    error_share
        The part of that budget that is for the model's error; the rest is for features and scores. 0 for a model
        that never gets labels.
    detector
        "page-hinkley", or a detector of river: "adwin", "ddm", "hddm-a", "hddm-w".
    minimum
        The least effect that is told, by measure ("mean", "psi", "null rate", "new share", "error", or the name of one
        error measure). What is left out is as in `MINIMUM`.
    zone, holidays
        The IANA time zone of hours and days, and the dates there that are like no other day.
    min_rows
        A column with fewer rows in a window says nothing.
    back_after
        So many windows within the baseline, and a series has recovered.
    near
        How far apart two changes may begin and still be of one cause, in microseconds.
    labels_after
        How long after its end the labels of a window are there, in microseconds. Errors are judged then and not
        before, so that a replay judges them in the same order.
    kept
        How long an incident that is over is kept, in microseconds of event time.
    seed
        Of the resampling that calibrates.

    Examples
    --------
    >>> WatchSettings(false_alarms_per_month=0.5, zone="Europe/Berlin").least("mean of amount", usual=3.0)
    0.2
    """

    length: int = HOUR
    reference: int | tuple[int, int] = 28 * 24
    false_alarms_per_month: float = 1.0
    error_share: float = 0.5
    detector: str = PAGE_HINKLEY
    minimum: dict[str, float] = {}
    zone: str = "UTC"
    holidays: tuple[date, ...] = ()
    min_rows: int = 30
    back_after: int = 24
    near: int = DAY
    labels_after: int = 0
    kept: int = 400 * DAY
    seed: int = 7

    def __post_init__(self) -> None:
        if self.detector not in DETECTORS:
            hint = did_you_mean(self.detector, DETECTORS)
            raise DataError("bad-argument", "There is no such detector.", got=shown(self.detector), hint=hint)
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError):
            raise DataError("bad-timezone", "The time zone is not known.", got=shown(self.zone)) from None
        if not self.false_alarms_per_month > 0 or not 0 <= self.error_share <= 1:
            message = "The budget must be more than nothing, and the share of it between 0 and 1."
            got = f"{self.false_alarms_per_month} a month, share {self.error_share}"
            raise DataError("bad-argument", message, got=got, hint="Allow one alarm in ten months with 0.1.")
        for name, least in self.minimum.items():
            if not least > 0:
                raise DataError("bad-argument", f"The least effect of {name!r} must be above zero.", got=shown(least))
        self._refuse_no_time()

    def _refuse_no_time(self) -> None:
        if self.length <= 0 or self.back_after < 1 or min(self.near, self.labels_after, self.min_rows, self.kept) < 0:
            raise DataError("bad-argument", "A length or a number of windows is too small.", got=shown(self, 300))
        if isinstance(self.reference, tuple) and self.reference[0] >= self.reference[1]:
            raise DataError("bad-argument", "The reference period ends before it begins.", got=shown(self.reference))

    @property
    def per_month(self) -> float:
        """The windows of a month."""
        return MONTH / self.length

    def least(self, name: str, usual: float) -> float:
        """The least effect of a series that is told, in its own units; of an error it depends on what is usual.

        >>> WatchSettings().least("log_loss", usual=0.5)
        0.05
        """
        measure, column = parts(name)
        if column is not None:
            return self.minimum.get(measure, MINIMUM[measure])
        share = self.minimum.get(measure, self.minimum.get(ERROR, MINIMUM[ERROR]))
        return max(share * abs(usual), 1e-9)
