"""What a tile query has told, from progress as Spark tells it: counted once, kept over restarts, handed on to a run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import headrace as hr
from headrace.plan.build import build
from headrace.spark.pipeline.tile_status import TileStatus
from headrace.status.records import HotKeyShare, OperatorState

clicks = hr.stream("clicks", fields={"id": str, "user": str, "at": hr.Timestamp}, event_time="at", event_id="id")
users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
(TILES,) = build([users]).tile_sets


def operator(name, rows, *, dropped=0):
    custom = {"rocksdbSstFileSize": 7}
    known = {"operatorName": name, "numRowsTotal": rows, "memoryUsedBytes": 100}
    return SimpleNamespace(**known, numRowsDroppedByWatermark=dropped, customMetrics=custom)


def batch(number, *, dropped=0, ran=True, newest="2026-01-01T12:00:00.000Z"):
    return SimpleNamespace(
        batchId=number,
        batchDuration=50,
        durationMs={"addBatch": 40} if ran else {"latestOffset": 1},
        eventTime={"watermark": "1970-01-01T00:00:00.000Z", "max": newest},
        stateOperators=[
            operator("stateStoreSave", 3),
            operator("dedupe", 5, dropped=dropped),
        ],
        observedMetrics={"hot_keys": {"events": 100, "top": [{"item": '{"user":"a"}', "count": 60}]}},
    )


@pytest.fixture
def query(tmp_path):
    """Makes a tile query of a run, whose progress is what it is given."""

    def made(*progress, run="1"):
        place, target = SimpleNamespace(checkpoint=tmp_path / run), SimpleNamespace(run=run)
        told = SimpleNamespace(recentProgress=list(progress))
        about = {"mode": "micro-batch", "warming": False}
        return SimpleNamespace(tile_set=TILES, place=place, target=target, query=told, **about)

    return made


def looked(tile, now=10):
    found = TileStatus(tile)
    found.look(now)
    return found


def test_the_state_of_the_last_batch_is_told_by_operator(query):
    told = looked(query(batch(0), batch(1))).status(10)
    tiles, deduplication = (OperatorState(rows=rows, memory_bytes=100, disk_bytes=7) for rows in (3, 5))
    assert told.operators == {"tiles": tiles, "deduplication": deduplication}
    assert (told.batch, told.state_rows, told.state_bytes) == (1, 8, 200)
    assert (told.watermark, told.newest) == (None, "2026-01-01T12:00:00Z")
    assert (told.run, told.checkpoint) == ("1", "1")


def test_the_newest_event_does_not_go_back(query):
    tile = query(batch(0), batch(1, newest="2026-01-01T11:00:00.000Z"))
    assert looked(tile).status(10).newest == "2026-01-01T12:00:00Z"


def test_what_an_idle_query_tells_is_not_a_batch(query):
    told = looked(query(batch(0, ran=False))).status(10)
    assert (told.batch, told.hot_keys) == (None, [])


def test_a_batch_that_is_told_of_again_counts_once(query):
    tile = query(batch(0, dropped=2))
    found = looked(tile)
    tile.query.recentProgress.append(batch(1, dropped=1))
    found.look(20)
    assert found.status(20).dropped_by_watermark == 3
    assert found.status(20).hot_keys == [HotKeyShare(key={"user": "a"}, share=0.6)]


def test_dropped_rows_stay_an_alarm_over_a_restart_and_a_batch_that_is_run_again(query):
    before = looked(query(batch(0), batch(1, dropped=2)), now=10)
    again = looked(query(batch(1, dropped=2), batch(2)), now=99)
    for found in (before, again):
        (alarm,) = found.alarms(99)
        assert (alarm.kind, alarm.stream, alarm.since) == ("dropped_by_watermark", "clicks", 10)
        assert "2 rows were dropped" in alarm.says
    assert looked(query(batch(0)), now=1).alarms(1) != []
