"""A model, watched: closed windows in event-time order go in, alarms and incidents come out.

Nothing here reads a clock or keeps a file. The same windows give the same incidents, in whatever batches they come,
and a `Watching` that is written to JSON and read again goes on as if nothing had been. What people do (`acknowledge`,
`close`) is part of that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from headrace.clock import show_time
from headrace.drift.calibration import Calibration
from headrace.drift.incident import ACKNOWLEDGED, CLOSED, DriftAlarm, Incident, IncidentChange
from headrace.drift.ledger import Ledger
from headrace.drift.reference import Reference
from headrace.drift.series_set import Lane
from headrace.drift.settings import WatchSettings
from headrace.drift.window import DriftWindow, Measuring
from headrace.errors import DataError, shown


class WatcherState(msgspec.Struct):
    """All that a `Watching` remembers."""

    model: str
    version: int
    settings: WatchSettings
    references: dict[str, Reference]
    inputs: Lane
    errors: Lane
    ledger: Ledger
    held: list[DriftWindow] = []


class Watching:
    """The watch over one version of a model.

    Parameters
    ----------
    model, version
        Whose windows these are.
    references
        How its columns were spread when it was trained (`references_of` its manifest).
    settings
        The budget, the calendar, the reference period.

    Examples
    --------
    >>> from headrace.clock import HOUR
    >>> def hours(first, last, error):
    ...     measures = {"mae": (error, 0.01)}
    ...     return [DriftWindow(at * HOUR, (at + 1) * HOUR, measures=measures) for at in range(first, last)]
    >>> watching = Watching("prices", 1, {}, WatchSettings(reference=7 * 24))
    >>> watching.feed(hours(0, 200, error=0.5))
    []
    >>> [alarm.says for alarm in watching.feed(hours(200, 210, error=0.7))]
    ['mae went from 0.5 to 0.7 (+0.2) since 1970-01-09T08:00:00Z']
    """

    def __init__(
        self, model: str, version: int, references: Mapping[str, Reference], settings: WatchSettings | None = None
    ) -> None:
        given = settings or WatchSettings()
        lanes = Lane(), Lane(errors=True)
        self._use(WatcherState(model, version, given, dict(references), *lanes, Ledger(model, version)))

    def _use(self, state: WatcherState) -> None:
        self._state = state
        self._measuring = Measuring(state.references, state.settings.min_rows)

    @classmethod
    def read(cls, text: bytes | str) -> Watching:
        """Go on from what `written` gave."""
        try:
            state = msgspec.json.decode(text, type=WatcherState)
        except msgspec.MsgspecError as error:
            message = "What is known of a watched model cannot be read."
            hint = "Feed the windows again, from the reference period on: the incidents will be the same."
            raise DataError("wrong-reference", message, got=str(error), hint=hint) from None
        made = cls.__new__(cls)
        made._use(state)  # noqa: SLF001
        return made

    def written(self) -> bytes:
        """All of it as JSON."""
        return msgspec.json.encode(self._state)

    @property
    def settings(self) -> WatchSettings:
        """How it is watched."""
        return self._state.settings

    @property
    def incidents(self) -> list[Incident]:
        """Those under way and those that were over not too long ago (`WatchSettings.kept`), in the order of opening."""
        return list(self._state.ledger.incidents.values())

    @property
    def calibrations(self) -> dict[str, Calibration]:
        """How each series is watched, or why it is not; empty before the reference period is over."""
        lanes = self._state.inputs, self._state.errors
        tracks = [track for lane in lanes for track in lane.tracks.values()]
        return {track.name: track.calibration for track in tracks if track.calibration is not None}

    def feed(self, windows: Iterable[DriftWindow]) -> list[DriftAlarm]:
        """Take closed windows in, in event-time order; the alarms they raise.

        A window's columns and its measures may come apart, the measures later. Windows that were fed before are passed
        over, so that whoever is not sure may feed them again.
        """
        found: list[DriftAlarm] = []
        for window in windows:
            if window.start >= window.end:
                got = f"{show_time(window.start)} to {show_time(window.end)}"
                raise DataError("bad-window", "A window ends before it begins.", got=got)
            found += self._take(window)
        return found

    def _take(self, window: DriftWindow) -> list[DriftAlarm]:
        """The columns now; the measures when the labels of a window are there."""
        state = self._state
        found: list[DriftAlarm] = []
        if window.columns or not window.measures:
            found += self._release(window.end - 1)
            if state.inputs.is_new(window):
                values = self._measuring.inputs(window)
                found += state.inputs.step(window, values, state.settings, state.ledger)
        if window.measures and state.errors.is_new(window) and self._is_after_held(window):
            # Read now, so that a window that cannot be used is refused by whoever feeds it.
            self._measuring.errors(window)
            state.held.append(DriftWindow(window.start, window.end, measures=window.measures))
        state.ledger.forget(window.end - state.settings.kept)
        # Errors wait for the inputs, so that it does not matter which of the two was fed first.
        return found + self._release(window.end if state.inputs.position is None else state.inputs.position)

    def _is_after_held(self, window: DriftWindow) -> bool:
        return not self._state.held or window.start >= self._state.held[-1].end

    def _release(self, now: int) -> list[DriftAlarm]:
        """Judge the errors of windows whose labels are there by now."""
        state = self._state
        found: list[DriftAlarm] = []
        while state.held and state.held[0].end + state.settings.labels_after <= now:
            window = state.held.pop(0)
            values = self._measuring.errors(window)
            alone = not state.inputs.tracks
            found += state.errors.step(window, values, state.settings, state.ledger, alone=alone)
        return found

    def acknowledge(self, incident: str, *, who: str, why: str, when: int) -> Incident:
        """Somebody looks at it."""
        return self._state.ledger.change(incident, IncidentChange(ACKNOWLEDGED, who, why, when))

    def close(self, incident: str, *, who: str, why: str, when: int) -> Incident:
        """It is over, or it is how things are now: its series are watched from their new level on."""
        closed = self._state.ledger.change(incident, IncidentChange(CLOSED, who, why, when))
        for lane in (self._state.inputs, self._state.errors):
            lane.settle(incident)
        return closed

    def incident(self, name: str) -> Incident:
        """An incident by its id."""
        found = self._state.ledger.incidents.get(name)
        if found is None:
            raise DataError("not-found", "There is no incident of that id.", got=shown(name))
        return found
