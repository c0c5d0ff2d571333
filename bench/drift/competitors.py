"""Who competes: Headrace, two dummies, and the detectors of river as they come.

Each takes a stream and gives the hours in which it raised an alarm. River's detectors have their defaults and are
fed the values as they are, one an hour. Those for single errors are also fed ten predictions of each hour, drawn at
random, and an hour with an alarm counts once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from river import drift
from river.drift import binary

from bench.drift.streams import LATE, WARM, Stream
from headrace.clock import HOUR
from headrace.drift import Watching, WatchSettings

CLOSES = 72
"""Hours after which somebody closes an incident: from then on it is watched for the next one."""

Competitor = Callable[[Stream], list[int]]


def headrace(detector: str = "page-hinkley", budget: float = 1.0) -> Competitor:
    """Headrace; its alarms are the incidents it opens."""

    def alarms(stream: Stream) -> list[int]:
        settings = WatchSettings(
            reference=WARM,
            false_alarms_per_month=budget,
            detector=detector,
            labels_after=LATE * HOUR if stream.late else 0,
        )
        watching = Watching("bench", 1, stream.references, settings)
        found: list[int] = []
        closing: dict[str, int] = {}
        for hour, window in stream.fed:
            for name in [name for name, due in closing.items() if due <= hour]:
                watching.close(name, who="bench", why="seen", when=window.end)
                del closing[name]
            for alarm in watching.feed([window]):
                if alarm.incident not in closing:
                    found.append(hour)
                    closing[alarm.incident] = hour + CLOSES
        return found

    return alarms


def always(stream: Stream) -> list[int]:
    """An alarm in every hour."""
    return list(range(len(stream.values)))


def never(_: Stream) -> list[int]:
    """No alarm."""
    return []


def by_hour(make: Callable[[], Any]) -> Competitor:
    """A detector that is fed the value of each hour."""

    def alarms(stream: Stream) -> list[int]:
        detector, found = make(), []
        for at, value in enumerate(stream.values):
            detector.update(value)
            if detector.drift_detected:
                found.append(at + stream.late)
        return found

    return alarms


def by_prediction(make: Callable[[], Any]) -> Competitor:
    """A detector that is fed single predictions; where a stream has none, it has nothing to say."""

    def alarms(stream: Stream) -> list[int]:
        detector, found = make(), []
        for at, draws in enumerate(stream.draws):
            drifted = False
            for wrong in draws:
                detector.update(wrong)
                drifted = drifted or detector.drift_detected
            if drifted:
                found.append(at + stream.late)
        return found

    return alarms


BUDGETS = (1.0, 0.1, 0.01)
OURS: dict[str, Competitor] = {f"headrace, {budget:g} a month": headrace(budget=budget) for budget in BUDGETS}
DUMMIES: dict[str, Competitor] = {"always": always, "never": never}
RAW: dict[str, Competitor] = {
    "ADWIN": by_hour(drift.ADWIN),
    "PageHinkley": by_hour(drift.PageHinkley),
    "KSWIN": by_hour(lambda: drift.KSWIN(seed=7)),
    "HDDM_A": by_hour(binary.HDDMA),
    "HDDM_W": by_hour(binary.HDDMW),
    "DDM, single errors": by_prediction(binary.DDM),
    "HDDM_A, single errors": by_prediction(binary.HDDMA),
    "HDDM_W, single errors": by_prediction(binary.HDDMW),
    "ADWIN, single errors": by_prediction(drift.ADWIN),
}
COMPETITORS: dict[str, Competitor] = OURS | DUMMIES | RAW
