"""The pipeline's words and the archive's, heard as one."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.meaning.verdict_names import VERDICTS
from headrace.standing import alarms, streams

TILES = {"included": {"0": 3, "1": 2}, "lag_events": 0, "lag_seconds": 0.2, "rate_per_s": 7.0}
KEPT = {"archived": 5, "verdicts": {"admitted": 4, "late": 1}, "positions": {"0": 3, "1": 2}, "lag_events": 0}


def heard(tiles: Any, kept: Any) -> dict[str, Any]:
    return streams({"streams": {"clicks": tiles}}, {"streams": {"clicks": kept}})["clicks"]


def test_a_stream_has_the_archives_counts_and_the_pipelines_pace():
    assert heard(TILES, KEPT) == {
        "read": 5,
        "verdicts": dict.fromkeys(VERDICTS, 0) | {"admitted": 4, "late": 1},
        "settled": True,
        **TILES,
    }


@pytest.mark.parametrize(
    ("tiles", "kept"),
    [
        (TILES | {"lag_events": 1}, KEPT),
        (TILES, KEPT | {"lag_events": 1}),
        (TILES, KEPT | {"positions": {"0": 3, "1": 1}}),
        (TILES, {}),
    ],
    ids=["the tiles lag", "the archive lags", "they spoke of different ends", "the archive has not spoken"],
)
def test_nothing_is_settled_before_both_have_come_to_the_same_end(tiles, kept):
    assert heard(tiles, kept)["settled"] is False


def test_a_stream_without_tiles_is_as_far_as_the_archive():
    told = streams({"streams": {}}, {"streams": {"clicks": KEPT}})["clicks"]
    assert (told["included"], told["lag_events"], told["settled"]) == ({"0": 3, "1": 2}, 0, True)


def test_what_nobody_has_said_is_not_there():
    assert streams(None, None) == {}
    assert alarms(None, {"streams": {}}) == []


def test_alarms_come_in_the_order_in_which_those_who_raise_them_are_named():
    told = alarms({"alarms": [{"kind": "late"}]}, None, {"alarms": [{"kind": "hot_key"}]})
    assert told == [{"kind": "late"}, {"kind": "hot_key"}]
