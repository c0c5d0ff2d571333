"""The statuses of pipeline and archive, put together."""

from __future__ import annotations

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from headrace.alarms.alarm import AlarmStatus
from headrace.meaning.verdict_names import VERDICTS
from headrace.status.records import ArchiveProgress, ArchiveStatus, PipelineStatus, StreamProgress
from headrace.status.streams import StreamStatus, collect_alarms, merge_streams

TILES = StreamProgress(included={0: 3, 1: 2}, lag_events=0, lag_seconds=0.2, rate_per_s=7.0)
KEPT = ArchiveProgress(archived=5, verdicts={"admitted": 4, "late": 1}, positions={0: 3, 1: 2}, lag_events=0)


def merged(tiles: StreamProgress, kept: ArchiveProgress | None) -> StreamStatus:
    archive = ArchiveStatus() if kept is None else ArchiveStatus(streams={"clicks": kept})
    return merge_streams(PipelineStatus(streams={"clicks": tiles}), archive)["clicks"]


def test_a_stream_has_the_archives_counts_and_the_pipelines_pace():
    assert to_builtins(merged(TILES, KEPT)) == {
        "read": 5,
        "verdicts": dict.fromkeys(VERDICTS, 0) | {"admitted": 4, "late": 1},
        "settled": True,
        **to_builtins(TILES),
    }


@pytest.mark.parametrize(
    ("tiles", "kept"),
    [
        (replace(TILES, lag_events=1), KEPT),
        (TILES, replace(KEPT, lag_events=1)),
        (TILES, replace(KEPT, positions={0: 3, 1: 1})),
        (TILES, None),
        (StreamProgress(), None),
    ],
    ids=[
        "the tiles lag",
        "the archive lags",
        "they spoke of different ends",
        "the archive has not spoken",
        "the archive has not spoken of an empty stream",
    ],
)
def test_nothing_is_settled_before_both_have_come_to_the_same_end(tiles, kept):
    assert merged(tiles, kept).settled is False


def test_a_stream_without_tiles_is_as_far_as_the_archive():
    found = merge_streams(PipelineStatus(), ArchiveStatus(streams={"clicks": KEPT}))["clicks"]
    assert (found.included, found.lag_events, found.settled) == ({0: 3, 1: 2}, 0, True)


def test_what_nobody_has_published_is_not_there():
    assert merge_streams(None, None) == {}
    assert collect_alarms(None, PipelineStatus()) == []


def test_alarms_come_in_the_order_in_which_those_who_raise_them_are_named():
    late, hot = AlarmStatus(kind="late"), AlarmStatus(kind="hot_key")
    assert collect_alarms(ArchiveStatus(alarms=[late]), None, PipelineStatus(alarms=[hot])) == [late, hot]
