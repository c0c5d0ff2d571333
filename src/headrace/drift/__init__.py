"""Drift: what moved in a model's inputs, scores and errors, since when and by how much; in alarms that people keep on.

    manifest ──► references ─┐
                             ├─► series ──► season ──► detector ──► alarms ──► incidents ──► plot
    windows (counted) ───────┘               └── calibrated on the reference period, to a budget of false alarms

Windows are counted elsewhere, in parts that merge. Everything here is a function of the windows in event-time order: no
clock, no files, no engine. Where incidents are kept, and who is told, is not said here.
"""

from headrace.drift.calibration import Calibration
from headrace.drift.distance import (
    jensen_shannon,
    ks,
    ks_error,
    mean_shift,
    new_share,
    null_rate,
    null_shift,
    psi,
    wasserstein,
    wasserstein_error,
)
from headrace.drift.incident import DriftAlarm, Incident, IncidentChange
from headrace.drift.plot import plot
from headrace.drift.reference import Reference, reference_of, references_of
from headrace.drift.settings import WatchSettings
from headrace.drift.statistics import Statistics, counted, reference_from
from headrace.drift.watcher import Watching
from headrace.drift.window import DriftWindow, series

__all__ = [
    "Calibration",
    "DriftAlarm",
    "DriftWindow",
    "Incident",
    "IncidentChange",
    "Reference",
    "Statistics",
    "WatchSettings",
    "Watching",
    "counted",
    "jensen_shannon",
    "ks",
    "ks_error",
    "mean_shift",
    "new_share",
    "null_rate",
    "null_shift",
    "plot",
    "psi",
    "reference_from",
    "reference_of",
    "references_of",
    "series",
    "wasserstein",
    "wasserstein_error",
]
