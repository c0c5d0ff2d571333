"""What the components of a project publish, put together for the page and for `headrace status`.

The pipeline publishes how far the tiles of a stream are, the archive what became of every record. Both do so at their
own pace; both views show one status for each stream.
"""

from __future__ import annotations

from msgspec import Struct, field

from headrace.alarms.alarm import AlarmStatus, StreamAlarm
from headrace.meaning.verdict_names import VERDICTS
from headrace.status.records import (
    ArchiveProgress,
    ArchiveStatus,
    AuditStatus,
    ComponentRecord,
    DefinitionStatus,
    EvaluationStatus,
    LabelStatus,
    LateStatus,
    PipelineStatus,
    ProcessStatus,
    SkewStatus,
    StreamProgress,
    TileSetStatus,
)
from headrace.status.topic import StatusRecords


class StreamStatus(Struct, kw_only=True):
    """Counts, lag and pace of a stream.

    `settled` says that tiles and archive have both come to the end of what there was, and to the same one.
    """

    read: int
    verdicts: dict[str, int]
    settled: bool
    included: dict[int, int]
    lag_events: int
    lag_seconds: float
    rate_per_s: float


class PublishedStatus(Struct, kw_only=True):
    """What all components published; a component that did not leaves its part empty."""

    definitions: DefinitionStatus = field(default_factory=DefinitionStatus)
    streams: dict[str, StreamStatus] = {}
    lake: dict[str, ArchiveProgress] = {}
    tile_sets: dict[str, TileSetStatus] = {}
    skew: SkewStatus = field(default_factory=SkewStatus)
    labels: dict[str, LabelStatus] = {}


def merge_status(flow: StatusRecords, others: StatusRecords) -> PublishedStatus:
    """Put together the records of pipeline and archive, and those of the other components."""
    pipeline, archive = flow.get(PipelineStatus) or PipelineStatus(), flow.get(ArchiveStatus) or ArchiveStatus()
    return PublishedStatus(
        definitions=others.get(DefinitionStatus) or DefinitionStatus(),
        streams=merge_streams(pipeline, archive),
        lake=archive.streams,
        tile_sets=pipeline.tile_sets,
        skew=(others.get(AuditStatus) or AuditStatus()).skew,
        labels=(others.get(EvaluationStatus) or EvaluationStatus()).labels,
    )


def merge_alarms(flow: StatusRecords, others: StatusRecords, disk: StreamAlarm | None) -> list[AlarmStatus]:
    """The alarm of the disk, and those of all components."""
    first = [] if disk is None else [disk.status()]
    late, audit, evaluation = others.get(LateStatus), others.get(AuditStatus), others.get(EvaluationStatus)
    spark = others.get(ProcessStatus)
    return first + collect_alarms(flow.get(ArchiveStatus), flow.get(PipelineStatus), late, audit, evaluation, spark)


def merge_streams(pipeline: PipelineStatus | None, archive: ArchiveStatus | None) -> dict[str, StreamStatus]:
    """The status of every stream. A stream that no tiles are made of is as far as the archive is.

    Examples
    --------
    >>> kept = ArchiveProgress(archived=3, verdicts={"admitted": 3}, positions={0: 3})
    >>> tiles = StreamProgress(included={0: 3}, rate_per_s=1.0)
    >>> merged = merge_streams(PipelineStatus(streams={"clicks": tiles}), ArchiveStatus(streams={"clicks": kept}))
    >>> merged["clicks"].settled
    True
    """
    tiles = {} if pipeline is None else pipeline.streams
    lake = {} if archive is None else archive.streams
    return {name: _merge(tiles.get(name), lake.get(name)) for name in sorted({*tiles, *lake})}


def collect_alarms(*records: ComponentRecord | None) -> list[AlarmStatus]:
    """The alarms of some components, in their order."""
    return [alarm for record in records if record is not None for alarm in record.alarms]


def _merge(tiles: StreamProgress | None, archived: ArchiveProgress | None) -> StreamStatus:
    kept = archived or ArchiveProgress()
    pace = tiles or StreamProgress(included=kept.positions, lag_events=kept.lag_events)
    ended = archived is not None and kept.lag_events == 0 and pace.lag_events == 0
    return StreamStatus(
        read=kept.archived,
        verdicts={verdict: kept.verdicts.get(verdict, 0) for verdict in VERDICTS},
        settled=ended and kept.positions == pace.included,
        included=pace.included,
        lag_events=pace.lag_events,
        lag_seconds=pace.lag_seconds,
        rate_per_s=pace.rate_per_s,
    )
