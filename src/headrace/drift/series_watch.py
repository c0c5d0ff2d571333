"""One series, watched: its reference period, its baseline, its detector, and whether it is away from where it belongs.

A series that is away raises no second alarm. It is watched again when it has come back, or when somebody closes the
incident: then from its new level on. Alarms of all series go to `drift.incident`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from statistics import median

import msgspec
import numpy as np

from headrace.clock import HOUR
from headrace.drift.calibration import Budget, Calibration, choose_detector, too_short
from headrace.drift.detector import Detector
from headrace.drift.season import CLIP, Baseline, Slot, fitted
from headrace.drift.settings import WatchSettings
from headrace.drift.window import MEAN, UPWARD, parts

KEPT = 14 * 24
"""The newest windows of a series that are kept, for evidence."""
FEWEST_AWAY = 3
"""Windows that must be off before a series has moved; of three, one wild window is not the middle one."""
FORGOTTEN = 24
"""Windows after which a change that is too small is no longer waited for."""
SETTLED = 7 * 24
"""The newest windows that a new level is taken from."""
LEARNT = 28 * 24
"""Windows that are enough to learn anew from, after an incident was closed."""
WIDER = 1.5
"""How much wider a scale is while a series is learnt anew: days have told of it, and not weeks."""
LEAST_ALLOWANCE, MOST_ALLOWANCE = 0.25, 1.5


class Point(msgspec.Struct, frozen=True, array_like=True):
    """A series in a window: when it begins, the value, what was expected, and how far off is usual."""

    start: int
    value: float
    expected: float
    scale: float


class Moved(msgspec.Struct, frozen=True):
    """A series has moved: since when, by how much, from where to where; effects are in the series' own units."""

    name: str
    since: int
    effect: float
    before: float
    now: float
    times_least: float


class Track(msgspec.Struct):
    """All that is known of a series.

    Parameters
    ----------
    name
        Of the series.
    collected
        Its reference period as (slot, value), until it is calibrated.
    calibration, baseline, detector
        How it is watched; a series that is not says why in its calibration.
    recent
        Its newest windows.
    incident, away_from
        The incident it is in, and since which window, while it is away.
    offset, stretch
        By how much its level was moved and its scale widened when an incident was closed. They hold until enough
        windows are `collected` to learn all anew.
    """

    name: str
    collected: list[tuple[Slot, float]] = []
    calibration: Calibration | None = None
    baseline: Baseline | None = None
    detector: Detector | None = None
    recent: list[Point] = []
    incident: str | None = None
    away_from: int = 0
    offset: float = 0.0
    stretch: float = 1.0
    learning: bool = False

    @property
    def watched(self) -> bool:
        """Whether it has a detector."""
        return self.detector is not None

    def collect(self, slot: Slot, value: float | None) -> None:
        """Take a window of the reference period in."""
        if value is not None:
            self.collected.append((slot, value))

    def remember(self, start: int, value: float) -> None:
        """Keep a value among the newest ones, without a baseline."""
        self.recent.append(Point(start, value, value, 0.0))
        del self.recent[:-KEPT]

    def step(self, start: int, slot: Slot, value: float | None, settings: WatchSettings) -> Moved | None:
        """Take a window in; what has moved, if it has now."""
        if value is None or self.baseline is None or self.detector is None or self.calibration is None:
            return None
        level, scale = self.baseline.at(slot)
        scale *= self.stretch
        self.recent.append(Point(start, value, level + self.offset, scale))
        del self.recent[:-KEPT]
        if self.incident is not None:
            return None
        residual = max(-CLIP, min(CLIP, (value - level - self.offset) / scale)) - self.calibration.center
        if not self.detector.update(residual, start):
            self._learn(slot, value, settings)
            return None
        since = self.detector.since
        points = [point for point in self.recent if point.start >= since]
        moved = _moved(self.name, since, points, self.calibration.least) if len(points) >= FEWEST_AWAY else None
        if moved is not None and moved.times_least < 1.0:
            # Certain, and too small to matter. To go on from here would date a later change back to this one.
            self.detector = self.detector.anew() if len(points) >= FORGOTTEN else self.detector
            return None
        return moved

    def _learn(self, slot: Slot, value: float, settings: WatchSettings) -> None:
        """After an incident was closed, how things are now becomes what is usual."""
        if self.learning and self.calibration is not None:
            self.collect(slot, value)
            wanted = min(LEARNT, self.calibration.windows)
            if len(self.collected) >= wanted and cannot(self, settings) is None:
                calibrate(self, settings, rate=self.calibration.allowed)
                self.offset, self.stretch, self.learning = 0.0, 1.0, False

    def leave(self, incident: str, start: int) -> None:
        """It is away, and its alarm is part of an incident."""
        self.incident, self.away_from = incident, start
        self.learning, self.collected = False, []

    def is_back(self, settings: WatchSettings) -> bool:
        """Whether its newest windows are where they belong again."""
        newest = self.recent[-settings.back_after :]
        if len(newest) < settings.back_after or newest[0].start <= self.away_from or self.calibration is None:
            return False
        off = abs(median(point.value - point.expected for point in newest))
        return off < 0.5 * max(self.calibration.least, median(point.scale for point in newest))

    def return_to_level(self) -> None:
        """Watch it from its old level on."""
        self.incident, self.learning = None, self.stretch != 1.0
        self.detector = None if self.detector is None else self.detector.anew()

    def take_new_level(self) -> None:
        """Watch it from the level on that its newest windows have."""
        newest = [point for point in self.recent[-SETTLED:] if point.start >= self.away_from]
        if newest:
            off = [point.value - point.expected for point in newest]
            middle = median(off)
            spread = 1.4826 * median(abs(each - middle) for each in off) / median(point.scale for point in newest)
            self.offset, self.stretch = _short(self.offset + middle), _short(WIDER * max(1.0, spread * self.stretch))
        self.return_to_level()


def _moved(name: str, since: int, points: Sequence[Point], least: float) -> Moved:
    effect = median(point.value - point.expected for point in points)
    before, now = median(point.expected for point in points), median(point.value for point in points)
    return Moved(name, since, _short(effect), _short(before), _short(now), _short(abs(effect) / least))


def calibrate(track: Track, settings: WatchSettings, *, rate: float) -> None:
    """Learn the baseline of a series from its reference period, and set its detector to a budget."""
    slots, values = [slot for slot, _ in track.collected], [value for _, value in track.collected]
    level = median(values)
    least = settings.least(track.name, level)
    baseline, left = fitted(slots, values, floor=least / 10)
    residuals = np.clip(left, -CLIP, CLIP)
    center = float(residuals.mean())
    usual = float(np.median([scale for row in baseline.scales for scale in row]))
    allowance = min(MOST_ALLOWANCE, max(LEAST_ALLOWANCE, least / usual / 2))
    measure, _ = parts(track.name)
    found = choose_detector(
        settings.detector,
        residuals - center,
        Budget(rate, settings.length, _seed(settings.seed, track.name)),
        allowance=float(f"{allowance:.6g}"),
        upward=measure in UPWARD,
    )
    track.baseline, track.detector, track.collected = baseline, found.detector, []
    track.calibration = Calibration(
        windows=len(values),
        level=_short(level),
        center=_short(center),
        least=_short(least),
        allowed=_short(rate),
        expected=_short(found.expected),
        apart=measure in (MEAN, *UPWARD) and abs(level) >= least,
    )


def cannot(track: Track, settings: WatchSettings) -> str | None:
    """Why a series cannot be calibrated; None if it can."""
    if not track.collected:
        return "no window of the reference period says anything of it"
    first, last = track.collected[0][0], track.collected[-1][0]
    hours = (last.date - first.date) * 24 + last.hour - first.hour
    return too_short(len(track.collected), hours * HOUR + settings.length)


def _seed(seed: int, name: str) -> int:
    """A seed for each series, the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "big")


def _short(value: float) -> float:
    return float(f"{value:.6g}")
