"""Latencies from what was sent and what was received."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

AROUND = (2.0, 4.0)
"""Seconds before and after the end of a batch that belong to it."""
SHARES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}


@dataclass(frozen=True)
class Latencies:
    """When events were sent, in seconds since the first that counts, and how many milliseconds each took."""

    at: npt.NDArray[np.float64]
    ms: npt.NDArray[np.float64]
    ends: tuple[float, ...] = ()

    def percentiles(self, *, without_ends: bool = False) -> dict[str, float]:
        """Milliseconds by name; without what was sent around the ends of batches, if wanted."""
        kept = np.ones(len(self.at), dtype=bool)
        if without_ends:
            for end in self.ends:
                kept &= (self.at < end - AROUND[0]) | (self.at > end + AROUND[1])
        return {name: float(np.percentile(self.ms[kept], share)) for name, share in SHARES.items()}


def latencies(sent: Path, received: Path, warm: float, ends: Sequence[float] = ()) -> Latencies:
    """The latencies of what was sent after the warm-up.

    Parameters
    ----------
    sent, received
        What `load.send` and `load.receive` wrote.
    warm
        Seconds from the first record that are not counted.
    ends
        When batches ended, in seconds since the epoch.
    """
    with np.load(sent) as held:
        first, moment = int(held["first"]), held["moments"]
    rows = np.load(received)
    number = rows[:, 0] - 1 - first
    within = (number >= 0) & (number < len(moment))
    number, came = number[within], rows[within, 1]
    # A record that is read again, after a restart, may be in a row again: the first one counts.
    number, places = np.unique(number, return_index=True)
    came = came[places]
    begin = moment[0] + warm * 1e9
    counts = moment[number] >= begin
    at, took = (moment[number][counts] - begin) / 1e9, (came[counts] - moment[number][counts]) / 1e6
    return Latencies(at, took, tuple(end - begin / 1e9 for end in ends))
