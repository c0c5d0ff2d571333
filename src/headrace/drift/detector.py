"""Sequential detectors: fed one residual after the other, each says when too much has come together.

The state of a detector is plain data, so that one which is read from JSON goes on as if nothing had been. Which
threshold is right is worked out by `drift.calibration`; what an alarm means is said by `drift.series_watch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.drift.season import CLIP
from headrace.models.libraries import library

HELD = 2_000
"""Residuals a detector of river is made of again after a restart."""
FIRING = 24
"""Updates for which a detector of river goes on saying that something has changed."""
RIVER: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "adwin": ("river.drift", "ADWIN", "delta", {"clock": 1}),
    "ddm": ("river.drift.binary", "DDM", "drift_threshold", {}),
    "hddm-a": ("river.drift.binary", "HDDMA", "drift_confidence", {"two_sided_test": True}),
    "hddm-w": ("river.drift.binary", "HDDMW", "drift_confidence", {"two_sided_test": True}),
}
"""Detectors of river by name: module, class, the parameter that is calibrated, and what else they are told."""


class PageHinkley(msgspec.Struct, tag="page-hinkley"):
    """Page's sums in both directions, around a level that is known.

    River's `PageHinkley` measures from the running mean of what it has seen. Here the baseline is known from the
    reference period, and residuals are measured from it: a running mean would follow a slow drift, and hide it.

    Parameters
    ----------
    allowance
        What a residual may be off by without counting.
    threshold
        The sum that is too much.
    upward
        Whether only a rise counts.

    Examples
    --------
    >>> detector = PageHinkley(allowance=0.5, threshold=6.0)
    >>> [detector.update(residual, at) for at, residual in enumerate([0.0, 0.3, 4.0, 4.0])]
    [False, False, False, True]
    >>> detector.since
    2
    """

    allowance: float
    threshold: float
    upward: bool = False
    high: float = 0.0
    low: float = 0.0
    high_since: int = 0
    low_since: int = 0

    def update(self, residual: float, start: int) -> bool:
        """Take a residual in; whether it is too much now."""
        if self.high <= 0.0:
            self.high_since = start
        if self.low <= 0.0:
            self.low_since = start
        self.high = max(0.0, self.high + residual - self.allowance)
        self.low = 0.0 if self.upward else max(0.0, self.low - residual - self.allowance)
        return max(self.high, self.low) > self.threshold

    @property
    def since(self) -> int:
        """Where the larger sum began to rise."""
        return self.high_since if self.high >= self.low else self.low_since

    def anew(self) -> PageHinkley:
        """The same detector before it has seen anything."""
        return PageHinkley(self.allowance, self.threshold, self.upward)


class River(msgspec.Struct, tag="river", dict=True):
    """A detector of river, with its parameter calibrated.

    River's detectors cannot be written down, so the newest residuals are, and the detector is made of them again. So
    that this is the same detector, it is also made anew from the newest `HELD` while it runs, when it has twice as
    many. Residuals are handed over as numbers between 0 and 1.

    Parameters
    ----------
    name, parameter
        Which one, and its calibrated parameter.
    residuals, starts
        What it has seen of late.
    firing
        For how many updates it still says so.

    Examples
    --------
    >>> detector = River("adwin", 0.002)
    >>> seen = [detector.update(0.0 if at < 100 else 4.0, at) for at in range(200)]
    >>> any(seen[:100]), any(seen[100:]), detector.since
    (False, True, 100)
    """

    name: str
    parameter: float
    residuals: list[float] = []
    starts: list[int] = []
    firing: int = 0

    def update(self, residual: float, start: int) -> bool:
        """Take a residual in; whether it is too much now."""
        made = self.__dict__.get("made")
        if made is None or len(self.residuals) >= 2 * HELD:
            if len(self.residuals) >= 2 * HELD:
                self.residuals, self.starts = self.residuals[-HELD:], self.starts[-HELD:]
            made = self.__dict__["made"] = river_detector(self.name, self.parameter)
            for seen in self.residuals:
                made.update(scaled(seen))
        self.residuals.append(residual)
        self.starts.append(start)
        made.update(scaled(residual))
        # River tells of a change once, and what follows from it may take some windows to be seen.
        self.firing = FIRING if made.drift_detected else max(0, self.firing - 1)
        return self.firing > 0

    @property
    def since(self) -> int:
        """Where what it has seen is best cut in two."""
        return self.starts[cut(self.residuals)]

    def anew(self) -> River:
        """The same detector before it has seen anything."""
        return River(self.name, self.parameter)


Detector = PageHinkley | River


def river_detector(name: str, parameter: float) -> Any:
    """A detector of river with one parameter set; river is loaded now."""
    module, kind, calibrated, others = RIVER[name]
    return getattr(library(module), kind)(**{calibrated: parameter}, **others)


def scaled(residual: float) -> float:
    """A residual as a number from 0 to 1, as river's detectors take them.

    >>> scaled(0.0), scaled(99.0)
    (0.5, 1.0)
    """
    return (max(-CLIP, min(CLIP, residual)) + CLIP) / (2 * CLIP)


def cut(values: Sequence[float]) -> int:
    """The place at which values are best cut into two levels: where their sum is furthest from an even rise.

    >>> cut([0.0, 0.1, 0.0, 5.0, 5.1])
    3
    """
    mean, total, furthest, place = sum(values) / len(values), 0.0, -1.0, 0
    for at, value in enumerate(values[:-1]):
        total += value - mean
        if abs(total) > furthest:
            furthest, place = abs(total), at + 1
    return place
