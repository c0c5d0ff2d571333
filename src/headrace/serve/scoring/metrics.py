"""What is counted of models: scores by version, role and outcome, how long they took, fallbacks, and shadows.

It is a part of `metrics`, and counts where that counts: where several processes answer, they are added up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric

from headrace.status.serving import ScoreCounts

BOUNDS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of time, in seconds."""
APART = (0.0, 1e-9, 1e-6, 1e-4, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Upper bounds of the buckets of how far two scores are apart."""

OK, REFUSED, FAILED, SLOW, DOWN, DROPPED = "ok", "refused", "failed", "slow", "down", "dropped"
"""Outcomes: a score; a row that the model does not take, such as one with a null; the model raised or gave no score; no
score in time; no process; and, of shadows alone, too much under way."""
FAULTS = frozenset({FAILED, SLOW, DOWN})

HELP = {
    "headrace_scored_total": ("counter", "Rows by model, version, role and outcome; shadows included."),
    "headrace_score_seconds": ("histogram", "Seconds that scoring took, without the reading of features, by model."),
    "headrace_score_in_flight": ("gauge", "Rows that are being scored, by model."),
    "headrace_model_fallbacks_total": ("counter", "Champions that failed and gave way to the version before."),
    "headrace_shadow_difference": ("histogram", "How far a shadow's score is from the champion's, by version."),
}


class ScoreMetrics:
    """Counts what models do.

    Examples
    --------
    >>> scores = ScoreMetrics(CollectorRegistry())
    >>> scores.scored("fraud", 3, "champion", OK, 2)
    >>> scores.took("fraud", 0.002)
    >>> scores.standing(scores.registry.collect())["fraud"]
    ScoreCounts(scored=2, failures=0, p50_ms=1.75, p99_ms=2.485)
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._scored = Counter(*_named("headrace_scored_total", "model", "version", "role", "outcome"), **self._in)
        self._seconds = Histogram(*_named("headrace_score_seconds", "model"), buckets=BOUNDS, **self._in)
        self._in_flight = Gauge(*_named("headrace_score_in_flight", "model"), multiprocess_mode="livesum", **self._in)
        self._fallbacks = Counter(*_named("headrace_model_fallbacks_total", "model"), **self._in)
        self._apart = Histogram(*_named("headrace_shadow_difference", "model", "version"), buckets=APART, **self._in)
        self._children: dict[tuple[Any, ...], Any] = {}

    @property
    def _in(self) -> dict[str, Any]:
        return {"registry": self.registry}

    def _child(self, of: Counter | Histogram, *labels: str) -> Any:
        found = self._children.get((of, *labels))
        if found is None:
            found = self._children[(of, *labels)] = of.labels(*labels)
        return found

    def scored(self, model: str, version: int, role: str, outcome: str, count: int = 1) -> None:
        """Count rows that a version was given."""
        self._child(self._scored, model, str(version), role, outcome).inc(count)

    def took(self, model: str, seconds: float) -> None:
        """Count how long some rows took that were scored together."""
        self._child(self._seconds, model).observe(seconds)

    def apart(self, model: str, version: int, difference: float) -> None:
        """Count how far a shadow's score is from the champion's."""
        self._child(self._apart, model, str(version)).observe(difference)

    def under_way(self, model: str, rows: int) -> None:
        """Say how many rows are being scored now."""
        self._in_flight.labels(model).set(rows)

    def fell_back(self, model: str) -> None:
        """Count a fallback."""
        self._fallbacks.labels(model).inc()

    def standing(self, families: Iterable[Metric]) -> dict[str, ScoreCounts]:
        """What was counted of each model's answers."""
        found: dict[str, ScoreCounts] = defaultdict(ScoreCounts)
        buckets: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
        for sample in (each for family in families for each in family.samples):
            labels = sample.labels
            if sample.name == "headrace_scored_total" and labels["role"] != "shadow":
                counts = found[labels["model"]]
                if labels["outcome"] in FAULTS:
                    counts.failures += int(sample.value)
                elif labels["outcome"] == OK:
                    counts.scored += int(sample.value)
            elif sample.name == "headrace_score_seconds_bucket":
                buckets[labels["model"]][float(labels["le"])] += sample.value
        for model, held in buckets.items():
            found[model].p50_ms, found[model].p99_ms = quantile(held, 0.5), quantile(held, 0.99)
        return dict(found)


def quantile(buckets: Mapping[float, float], share: float) -> float | None:
    """Milliseconds within which a share lies, as far as buckets tell, as Prometheus would say.

    >>> quantile({0.001: 50, 0.002: 100, float("inf"): 100}, 0.75)
    1.5
    """
    bounds = sorted(buckets)
    wanted, low, before = share * buckets[bounds[-1]], 0.0, 0.0
    if not wanted:
        return None
    for bound in bounds:
        inside = buckets[bound] - before
        if buckets[bound] >= wanted and inside:
            within = low if bound == float("inf") else low + (bound - low) * (wanted - before) / inside
            return round(1_000 * within, 3)
        low, before = bound, buckets[bound]
    return None


def _named(name: str, *labels: str) -> tuple[str, str, tuple[str, ...]]:
    return name, HELP[name][1], labels
