"""How good a row of alarms is: which changes it found and how soon, and how often it was wrong.

An alarm within the patience of a change has found it; the first one counts, and those after it are repeats. An alarm
at any other time is false. Nothing counts in the first weeks, in which Headrace learns and the others may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean, median

from bench.drift.streams import MONTH, WARM, Stream


@dataclass
class Score:
    """Of one competitor on streams of one name.

    Examples
    --------
    >>> Score(delays=[5, 7], required=4, false=3, months=6.0).as_json()["missed"]
    0.5
    """

    delays: list[int] = field(default_factory=list)
    required: int = 0
    repeats: int = 0
    false: int = 0
    months: float = 0.0

    def add(self, stream: Stream, alarms: Sequence[int]) -> None:
        """Count the alarms of a stream, each by the hour in which it was raised."""
        hours = len(stream.values)
        counted = [at for at in alarms if at >= WARM]
        taken: set[int] = set()
        for change in stream.changes:
            inside = range(change.at, min(hours, change.at + change.patience + stream.late))
            taken.update(inside)
            found = [at for at in counted if at in inside]
            if change.required:
                self.required += 1
                self.delays += [found[0] - change.at] if found else []
                self.repeats += max(0, len(found) - 1)
        self.false += sum(at not in taken for at in counted)
        self.months += sum(at not in taken for at in range(WARM, hours)) / MONTH

    def as_json(self) -> dict[str, float | None]:
        """The share of changes missed, hours until they were found, repeats for each, false alarms a month."""
        return {
            "missed": 1 - len(self.delays) / self.required if self.required else None,
            "delay_median_h": float(median(self.delays)) if self.delays else None,
            "delay_mean_h": mean(self.delays) if self.delays else None,
            "repeats": self.repeats / self.required if self.required else None,
            "false_per_month": self.false / self.months if self.months else None,
        }
