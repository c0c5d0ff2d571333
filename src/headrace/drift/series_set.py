"""The series of one kind, in step: those of features and scores, or those of the model's error.

The two kinds come at different times, as labels come late, so each has its own place in event time. Within a lane all
series share one budget of false alarms, and see a window together.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

import msgspec

from headrace.clock import show_time
from headrace.drift.calibration import Calibration
from headrace.drift.incident import DriftAlarm, alarm_of, is_error
from headrace.drift.ledger import Ledger
from headrace.drift.season import Slot, slot_of
from headrace.drift.series_watch import Moved, Track, calibrate, cannot
from headrace.drift.settings import WatchSettings
from headrace.drift.window import DriftWindow, is_segment
from headrace.errors import DataError

SEGMENTS = 3
"""Segments that an alarm names."""
_NEVER_SEEN = "it was not there in the reference period"


class Lane(msgspec.Struct):
    """Where a lane is.

    Parameters
    ----------
    errors
        Whether it is the lane of the model's error.
    position, seen
        The end of its newest window in microseconds, and how many there were.
    calibrated
        Whether its reference period is over.
    tracks
        Its series by name.
    """

    errors: bool = False
    position: int | None = None
    seen: int = 0
    calibrated: bool = False
    tracks: dict[str, Track] = {}

    def is_new(self, window: DriftWindow) -> bool:
        """Whether a window comes after all that were seen; one that overlaps them is refused."""
        if self.position is None or window.start >= self.position:
            return True
        if window.end <= self.position:
            return False
        message = "A window overlaps one that was fed before."
        got = f"{show_time(window.start)}, and the one before ends at {show_time(self.position)}"
        raise DataError("bad-window", message, got=got, hint="Feed windows of one length, in order.")

    def step(
        self,
        window: DriftWindow,
        values: Mapping[str, float | None],
        settings: WatchSettings,
        ledger: Ledger,
        *,
        alone: bool = False,
    ) -> list[DriftAlarm]:
        """Take a window in; the alarms it raises are in the ledger already."""
        slot = slot_of(window.start, settings.zone, settings.holidays)
        self.position, self.seen = window.end, self.seen + 1
        if not self.calibrated and self._in_reference(window, settings):
            self._collect(window, slot, values)
            if self._reference_ends(window, settings):
                self._calibrate(settings, alone)
            return []
        if not self.calibrated:
            if isinstance(settings.reference, tuple) and window.start < settings.reference[0]:
                return []
            self._calibrate(settings, alone)
        moves = self._watch_window(window, slot, values, settings)
        self._look_for_returns(window, settings, ledger)
        found = [self._alarm(moved, window, settings, ledger) for moved in moves]
        if self.errors and any(track.watched and is_error(name) for name, track in self.tracks.items()):
            ledger.labels_through(window.end, settings)
        return found

    def settle(self, incident: str) -> None:
        """An incident was closed: its series are watched from where they are now."""
        for track in self.tracks.values():
            if track.incident == incident:
                track.take_new_level()

    def _in_reference(self, window: DriftWindow, settings: WatchSettings) -> bool:
        if isinstance(settings.reference, int):
            return self.seen <= settings.reference
        return settings.reference[0] <= window.start and window.end <= settings.reference[1]

    def _reference_ends(self, window: DriftWindow, settings: WatchSettings) -> bool:
        if isinstance(settings.reference, int):
            return self.seen == settings.reference
        return window.end == settings.reference[1]

    def _collect(self, window: DriftWindow, slot: Slot, values: Mapping[str, float | None]) -> None:
        for name, value in values.items():
            track = self.tracks.setdefault(name, Track(name))
            if not is_segment(name):
                track.collect(slot, value)
            elif value is not None:
                track.remember(window.start, value)

    def _calibrate(self, settings: WatchSettings, alone: bool) -> None:
        """Share the budget among all series that can be watched."""
        self.calibrated = True
        share = settings.error_share if self.errors else 1.0 - settings.error_share
        budget = settings.false_alarms_per_month * (1.0 if alone else share)
        able: list[Track] = []
        for track in self.tracks.values():
            reason = cannot(track, settings) if budget > 0 else "no part of the budget is for it"
            if is_segment(track.name):
                continue
            if reason is None:
                able.append(track)
            else:
                track.calibration, track.collected = Calibration(len(track.collected), reason), []
        for track in able:
            calibrate(track, settings, rate=budget / len(able))

    def _watch_window(
        self, window: DriftWindow, slot: Slot, values: Mapping[str, float | None], settings: WatchSettings
    ) -> list[Moved]:
        """What has moved in a window, furthest first."""
        moves: list[Moved] = []
        for name, value in values.items():
            track = self.tracks.get(name)
            if track is None:
                reason = None if is_segment(name) else Calibration(0, _NEVER_SEEN)
                track = self.tracks[name] = Track(name, calibration=reason)
            if is_segment(name):
                if value is not None:
                    track.remember(window.start, value)
            elif (moved := track.step(window.start, slot, value, settings)) is not None:
                moves.append(moved)
        return sorted(moves, key=lambda moved: (-moved.times_least, moved.name))

    def _look_for_returns(self, window: DriftWindow, settings: WatchSettings, ledger: Ledger) -> None:
        for track in self.tracks.values():
            if track.incident is not None and track.is_back(settings):
                ledger.returned(track.incident, track.name, window.end)
                track.return_to_level()

    def _alarm(self, moved: Moved, window: DriftWindow, settings: WatchSettings, ledger: Ledger) -> DriftAlarm:
        track = self.tracks[moved.name]
        alarm = ledger.add(alarm_of(moved, window.end, track.recent, self._segments(moved)), settings.near)
        track.leave(alarm.incident, window.start)
        return alarm

    def _segments(self, moved: Moved) -> list[tuple[str, float]]:
        """The segments in which the series moved furthest, with how far."""
        found: list[tuple[str, float]] = []
        for name, track in self.tracks.items():
            if name.startswith(f"{moved.name}["):
                before = [point.value for point in track.recent if point.start < moved.since]
                since = [point.value for point in track.recent if point.start >= moved.since]
                if before and since:
                    found.append((name[len(moved.name) + 1 : -1], float(f"{median(since) - median(before):.6g}")))
        return sorted(found, key=lambda each: (-abs(each[1]), each[0]))[:SEGMENTS]
