"""What a serving process publishes about its views, its store and the requests that it answered."""

from __future__ import annotations

from msgspec import Struct, field


class LatencyShares(Struct, kw_only=True):
    """The median and the 99th percentile of some times, in milliseconds; None of nothing."""

    p50_ms: float | None = None
    p99_ms: float | None = None


class StepLatency(Struct, kw_only=True):
    """Percentiles of one step of an event's way, in milliseconds; None of nothing."""

    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None


StepLatencies = dict[str, StepLatency]
"""By the name of the step."""


class ViewStatus(Struct, kw_only=True):
    """How fresh the values of a view are."""

    key: list[str] = []
    features: int = 0
    mode: str = ""
    tile_set: str = ""
    run: str | None = None
    as_of: str | None = None
    late_as_of: str | None = None
    freshness_ms: float | None = None
    freshness_p50_ms: float | None = None
    freshness_p99_ms: float | None = None
    max_staleness_ms: float | None = None
    warming: bool = False
    latency: StepLatencies = {}
    stale: bool = False


class StoreUpdates(Struct, kw_only=True):
    """What the store has taken from the changelog, by the kind of record, and what it has yet to take."""

    lag_records: int | None = None
    caught_up: bool = False
    tiles: int = 0
    progress: int = 0
    gone: int = 0
    malformed: int = 0
    gaps: int = 0
    applied_at: str | None = None


class StoreSize(Struct, kw_only=True):
    """How much the store holds."""

    keys: int = 0
    tiles: int = 0
    levels: int = 0
    bytes: int = 0


class RequestCounts(Struct, kw_only=True):
    """What was answered since the start, and how many microseconds the newest reads took."""

    features: int = 0
    events: int = 0
    errors: int = 0
    samples_kept: int = 0
    samples_dropped: int = 0
    p50_read_us: float | None = None
    p99_read_us: float | None = None


class DimensionStatus(Struct, kw_only=True):
    """The table of a dimension in memory; None as long as it was not read."""

    key: list[str]
    features: int
    table: str
    rows: int | None
    keys: int | None
    bytes: int | None
    loaded_at: str | None
    as_of: str | None
    age_ms: float | None
    failing: str | None


class FallbackStatus(Struct, kw_only=True):
    """One fallback of a model: from the version that failed to the one that answers now."""

    at: str
    failed: int | None = field(name="from")
    version: int | None = field(name="to")
    why: str | None


class ScoreCounts(Struct, kw_only=True):
    """What was counted of a model's answers, shadows left out, and how long they took."""

    scored: int = 0
    failures: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None


class ServedModelStatus(ScoreCounts, kw_only=True):
    """Who answers for a model, its processes by version, and what all workers have counted of it."""

    features: str
    champion: int | None
    challenger: int | None
    share: float | None
    shadows: list[int]
    processes: dict[str, int | None]
    in_flight: int
    fallback_from: int | None
    fallbacks: list[FallbackStatus]
    failing: str | None


class ModelAlarm(Struct, kw_only=True):
    """What is wrong with a model that serves: "fallback" or "failing"."""

    model: str
    kind: str
    says: str
