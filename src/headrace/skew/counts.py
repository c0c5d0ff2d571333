"""What an audit has found, feature by feature: the counts add up, and a rate comes with its interval."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from headrace.clock import show_time
from headrace.drift.interval import wilson
from headrace.meaning.event import Event
from headrace.skew.cause import CAUSES, Mismatch
from headrace.skew.compare import Judged
from headrace.skew.freshness import Profile
from headrace.skew.prediction import Follows, Prediction
from headrace.skew.sample import Sample

SHOWN = 20
"""Defects that are told with their evidence; all are counted."""
FOLLOWS = "does not follow"
"""The kind of a defect in what is computed from other columns: on-demand features, dimensions, the score."""
KEPT = 10_000
"""The newest differences of which size and delay are known."""


@dataclass
class FeatureCounts:
    """One feature of a view: how often it was compared, and why it differed when it did."""

    compared: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    sizes: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    delays: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))

    @property
    def mismatched(self) -> int:
        """How often it differed."""
        return self.causes.total()

    def as_json(self) -> dict[str, Any]:
        """All of it, with the rate and its interval of 95 %."""
        low, high = wilson(self.mismatched, self.compared) if self.compared else (0.0, 1.0)
        return {
            "compared": self.compared,
            "equal": self.compared - self.mismatched,
            "mismatched": self.mismatched,
            "rate": self.mismatched / self.compared if self.compared else None,
            "rate_interval": [low, high],
            "causes": {cause: self.causes[cause] for cause in CAUSES},
            "size": _spread(self.sizes),
            "delay_s": _spread(self.delays),
        }


class AuditCounts:
    """Everything an audit has found."""

    def __init__(self) -> None:
        self.features: dict[tuple[str, str], FeatureCounts] = {}
        self.samples: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.profiles: dict[str, Profile] = {}
        self.defects: list[dict[str, Any]] = []

    def add(self, found: Iterable[Judged]) -> None:
        """Count samples that were judged."""
        for sample, known, _, wrong, age in found:
            if age is not None:
                self.profiles.setdefault(sample.view.name, Profile()).ages.append(age)
            self.samples[f"{sample.source} {sample.view.name}"] += 1
            differing = () if wrong is None else wrong.features
            for name, value in sample.values.items():
                counts = self.features.setdefault((sample.view.name, name), FeatureCounts())
                counts.compared += 1
                if wrong is not None and name in differing:
                    _count(counts, wrong, value, known[name])
            if wrong is not None and wrong.evidence is not None:
                self.kinds[wrong.evidence.kind] += 1
                if len(self.defects) < SHOWN:
                    self.defects.append(_defect_json(sample, known, wrong))

    def follow(self, prediction: Prediction, found: Iterable[Follows]) -> None:
        """Count the columns of a prediction that follow from others, and its score."""
        for each in found:
            counts = self.features.setdefault((prediction.model.name, each.name), FeatureCounts())
            counts.compared += 1
            if each.cause is not None:
                counts.causes[each.cause] += 1
            if each.cause == "defect":
                self.kinds[FOLLOWS] += 1
                if len(self.defects) < SHOWN:
                    self.defects.append(_unfollowed(prediction, each))

    @property
    def total(self) -> FeatureCounts:
        """Of all features together."""
        whole = FeatureCounts()
        for each in self.features.values():
            whole.compared += each.compared
            whole.causes += each.causes
        return whole

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        whole = self.total.as_json()
        return {
            "samples": dict(self.samples),
            **{name: whole[name] for name in ("compared", "equal", "mismatched", "rate", "rate_interval", "causes")},
            "features": {f"{view}.{name}": each.as_json() for (view, name), each in sorted(self.features.items())},
            "freshness": {view: profile.as_json() for view, profile in sorted(self.profiles.items())},
            "defects": dict(self.kinds),
            "evidence": self.defects,
        }


def _count(counts: FeatureCounts, wrong: Mismatch, served: Any, known: Any) -> None:
    counts.causes[wrong.cause] += 1
    if isinstance(served, int | float) and isinstance(known, int | float):
        counts.sizes.append(abs(served - known))
    if wrong.delay is not None:
        counts.delays.append(wrong.delay / 1e6)


def _spread(values: Collection[float]) -> dict[str, float] | None:
    if not values:
        return None
    ordered = sorted(values)
    return {"p50": ordered[len(ordered) // 2], "p99": ordered[int(0.99 * len(ordered))], "max": ordered[-1]}


def _defect_json(sample: Sample, known: Any, wrong: Mismatch) -> dict[str, Any]:
    """A defect with all that is known of it."""
    evidence = wrong.evidence
    assert evidence is not None  # noqa: S101
    return {
        "kind": evidence.kind,
        "says": evidence.text,
        "source": sample.source,
        "record": "/".join(map(str, sample.place)),
        "view": sample.view.name,
        "key": list(sample.key),
        "at": show_time(sample.t),
        "features": {name: {"served": sample.values[name], "known": known[name]} for name in wrong.features},
        "events": [_event(event) for event in evidence.events],
    }


def _unfollowed(prediction: Prediction, each: Follows) -> dict[str, Any]:
    """A column that does not follow from what it is computed from."""
    return {
        "kind": FOLLOWS,
        "says": f"{each.name} is not what the columns it is computed from give",
        "source": f"{prediction.model.name}@{prediction.version}",
        "record": "/".join(map(str, prediction.place)),
        "view": prediction.model.name,
        "key": list(prediction.key.values()),
        "at": show_time(prediction.t),
        "features": {each.name: {"served": each.served, "known": each.known}},
        "events": [],
    }


def _event(event: Event) -> dict[str, Any]:
    arrived, partition, offset = event.place
    return {
        "id": event.event_id,
        "event_time": show_time(event.event_time),
        "arrived_at": show_time(arrived),
        "partition": partition,
        "offset": offset,
    }
