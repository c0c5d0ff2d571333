"""The records of the status topic, one struct for each component that publishes one.

The names of the fields are the names in the JSON. A field that is UNSET is left out of the JSON: nobody has published
it yet. The components write these records with `status.topic`, which also reads them.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import UNSET, Struct, UnsetType, field

from headrace.alarms.alarm import AlarmStatus
from headrace.plan.outline import DefinitionChange
from headrace.status.serving import LatencyShares, RequestCounts, StepLatencies, StoreSize, StoreUpdates, ViewStatus

Figure = int | float | dict[str, int] | None
"""One figure of a label's evaluation; the states of its predictions are counts by name."""


class StatusRecord(Struct, kw_only=True):
    """A record of the status topic; KEY is its key there."""

    KEY: ClassVar[str]


class ComponentRecord(StatusRecord, kw_only=True):
    """What all components publish; `component` and `at` are stamped by the publisher."""

    component: str = ""
    at: int = 0
    alarms: list[AlarmStatus] = []


class StreamProgress(Struct, kw_only=True):
    """How far the tiles of a stream have come: the next offset of each partition, and what is left."""

    included: dict[int, int] = {}
    lag_events: int = 0
    lag_seconds: float = 0.0
    rate_per_s: float = 0.0


class OperatorState(Struct, kw_only=True):
    """What a stateful operator of Spark keeps: rows, and bytes in memory and in RocksDB's own files."""

    rows: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0


class HotKeyShare(Struct, kw_only=True):
    """A key that many of the last events have, and its share of them."""

    key: dict[str, str | int | float | bool | None]
    share: float


class TileSetStatus(Struct, kw_only=True):
    """How one tile query is doing; what only a batch shows is UNSET before the first."""

    batch: int | None = None
    dropped_by_watermark: int = 0
    run: str | None = None
    mode: str | None = None
    warming: bool = False
    checkpoint: str | None = None
    hot_keys: list[HotKeyShare] = []
    hot_keys_of: int = 0
    batch_ms: int | UnsetType = UNSET
    state_rows: int | UnsetType = UNSET
    state_bytes: int | UnsetType = UNSET
    operators: dict[str, OperatorState] | UnsetType = UNSET
    watermark: str | UnsetType | None = UNSET
    newest: str | UnsetType | None = UNSET


class PipelineStatus(ComponentRecord, kw_only=True):
    """The tiles of every stream and tile set; `following` names the runs that are about to serve."""

    KEY = "pipeline"
    streams: dict[str, StreamProgress] = {}
    tile_sets: dict[str, TileSetStatus] = {}
    following: dict[str, str] = {}


class ArchiveProgress(Struct, kw_only=True):
    """What the archive did with a stream: exact counts from the lake, and the last batch of this process."""

    archived: int = 0
    verdicts: dict[str, int] = {}
    conflict: int = 0
    late_copy: int = 0
    earlier_copy: int = 0
    lost: int = 0
    positions: dict[int, int] = {}
    lag_events: int = 0
    batches: int = 0
    batch_records: int = 0
    batch_seconds: float = 0.0


class ArchiveStatus(ComponentRecord, kw_only=True):
    """The archive of every stream."""

    KEY = "archive"
    streams: dict[str, ArchiveProgress] = {}


class LaneStatus(Struct, kw_only=True):
    """What was published of one late lane since the component started.

    `delay_seconds` passed from the arrival of the last late event to its publication; what arrived before `as_of` is
    published; `error` says why the lane waits, if it does.
    """

    run: str = ""
    passes: int = 0
    events: int = 0
    tiles: int = 0
    delay_seconds: float | None = None
    positions: dict[int, int] = {}
    as_of: str | None = None
    error: str | None = None


class LateStatus(ComponentRecord, kw_only=True):
    """The late lanes by tile set and run."""

    KEY = "late"
    lanes: dict[str, dict[str, LaneStatus]] = {}


class LabelStatus(Struct, kw_only=True):
    """The newest figures of a label, by the version of its model."""

    model: str = ""
    known_until: str | None = None
    versions: dict[str, dict[str, Figure]] = {}


class EvaluationStatus(ComponentRecord, kw_only=True):
    """How good predictions were; `looks` counts the passes since the start."""

    KEY = "evaluate"
    looks: int = 0
    labels: dict[str, LabelStatus] = {}


class ModelScoring(Struct, kw_only=True):
    """How a model scores its stream; a process that has not reported yet leaves all but `failing` out."""

    champion: int | UnsetType | None = UNSET
    failing: str | UnsetType | None = UNSET
    counts: dict[str, int] | UnsetType = UNSET
    positions: dict[int, int] | UnsetType = UNSET
    lag_events: int | UnsetType = UNSET
    latency: LatencyShares | UnsetType = UNSET
    tail_events: int | UnsetType = UNSET
    tail_dropped: int | UnsetType = UNSET


class ScoringStatus(ComponentRecord, kw_only=True):
    """The models that score a stream."""

    KEY = "score"
    models: dict[str, ModelScoring] = {}


class FeatureSkew(Struct, kw_only=True):
    """How often a feature was compared and differed, and why."""

    compared: int = 0
    mismatched: int = 0
    causes: dict[str, int] = {}


class SkewStatus(Struct, kw_only=True):
    """What the audit has found since it started; all UNSET where no audit runs."""

    compared: int | UnsetType = UNSET
    mismatched: int | UnsetType = UNSET
    causes: dict[str, int] | UnsetType = UNSET
    defects: dict[str, int] | UnsetType = UNSET
    audits: int | UnsetType = UNSET
    upto: str | UnsetType = UNSET
    features: dict[str, FeatureSkew] | UnsetType = UNSET


class AuditStatus(ComponentRecord, kw_only=True):
    """What was served beside what was known."""

    KEY = "audit"
    skew: SkewStatus = field(default_factory=SkewStatus)


class ComponentStatus(Struct, kw_only=True):
    """One component of a Spark process."""

    state: str = ""
    ready: bool = False
    since: str = ""
    restarts: int = 0
    error: str = ""


class ProcessStatus(ComponentRecord, kw_only=True):
    """The components of one Spark process; a process of one component has a key of its own."""

    KEY = "process.spark"
    components: dict[str, ComponentStatus] = {}


class DefinitionStatus(StatusRecord, kw_only=True):
    """What differs between the definitions that run and those that are written.

    `older` names the processes that run something else, `error` says why the files cannot be loaded, and `says` is all
    of it in a sentence. All is UNSET where nobody has compared.
    """

    KEY = "definitions"
    older: list[str] | UnsetType = UNSET
    changes: list[DefinitionChange] | UnsetType = UNSET
    error: str | UnsetType | None = UNSET
    says: str | UnsetType = UNSET


class ServeStatus(StatusRecord, kw_only=True):
    """What a serving process knows itself."""

    KEY = "serve"
    component: str = "serve"
    at: int = 0
    views: dict[str, ViewStatus] = {}
    materialiser: StoreUpdates = field(default_factory=StoreUpdates)
    latency: StepLatencies = {}
    store: StoreSize = field(default_factory=StoreSize)
    requests: RequestCounts = field(default_factory=RequestCounts)
