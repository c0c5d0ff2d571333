"""The late lane beside history: imported events count once, also those of which the stream has a copy."""

from __future__ import annotations

import json

import pytest

import headrace as hr
from headrace.clock import SECOND
from headrace.lake.table import LakeTable
from headrace.log.embedded.log import EmbeddedLog
from headrace.log.record import Message
from headrace.meaning.verdict import ARRIVED_AT
from headrace.plan.build import build
from headrace.testing import FakeClock
from headrace.tiles.changelog import TileRow
from headrace.tiles.changelog_format import decode
from tests.spark.test_history import LONG_AGO, bring, line, opened, payments, wish

pytestmark = pytest.mark.spark

(TILES,) = build([hr.view("cards", payments, by="card", features={"n": hr.count(over="1h")})]).tile_sets


def test_imported_history_is_in_the_late_lane_except_what_the_stream_has_itself(spark, tmp_path):
    from headrace.spark.archive.archive import StreamArchive
    from headrace.spark.late.late_lane import LateLane, LateLaneRun, publish_lanes

    lake = opened(tmp_path / "lake")
    clock = FakeClock(LONG_AGO + 10 * SECOND)
    with EmbeddedLog(tmp_path / "log", clock=clock) as log:
        log.create_topic("payments", partitions=1)
        log.create_topic("changelog", compacted=True)
        lane = LateLane(TILES, LateLaneRun("1", None, 1), "changelog", tmp_path / "late.json")
        (nothing,) = publish_lanes([lane], lake, log, spark)
        assert nothing.tiles == 0, "a lake with nothing in it has nothing to publish"
        bring(spark, lake, wish(tmp_path / "old.jsonl", [line(n) for n in range(6)]), tmp_path)
        for number in (4, 5, 6):  # two of which were imported, and one is new
            log.append("payments", line(number).encode(), key=b"c")
        clock.advance("10s")
        lake = opened(tmp_path / "lake")
        archived = StreamArchive(payments, "payments", log, lake, spark, clock).step()
        assert archived is not None
        assert archived.counts.verdicts[0, "duplicate"] == 2

        (done,) = publish_lanes([lane], lake, log, spark)
        assert (done.events, done.tiles) == (4, 3)
        (nothing,) = publish_lanes([lane], lake, log, spark)
        assert nothing.tiles == 0
        assert counts(log) == {"c0": 2, "c1": 1, "c2": 1}

        again = LateLane(TILES, LateLaneRun("1", None, 1), "changelog", tmp_path / "lost.json")
        (done,) = publish_lanes([again], lake, log, spark)
        assert (done.events, counts(log)) == (4, {"c0": 2, "c1": 1, "c2": 1})


def test_a_copy_that_was_appended_again_at_the_very_bound_of_lateness_is_still_the_streams(spark, tmp_path):
    from headrace.spark.archive.archive import StreamArchive
    from headrace.spark.late.late_lane import LateLane, LateLaneRun, publish_lanes

    lake, clock = opened(tmp_path / "lake"), FakeClock(LONG_AGO + payments.allowed_lateness)
    bring(spark, lake, wish(tmp_path / "old.jsonl", [line(0), line(1)]), tmp_path)
    with EmbeddedLog(tmp_path / "log", clock=clock) as log:
        log.create_topic("payments", partitions=1)
        log.create_topic("changelog", compacted=True)
        headers = ((ARRIVED_AT, str(LONG_AGO + SECOND).encode()),)
        log.append_batch("payments", [Message(line(0).encode(), b"c", headers)])
        clock.advance(f"{SECOND + 1}us")  # what happened a second later is past its bound by then
        log.append_batch("payments", [Message(line(1).encode(), b"c", headers)])
        clock.advance("10s")
        archived = StreamArchive(payments, "payments", log, opened(tmp_path / "lake"), spark, clock).step()
        assert archived is not None
        assert archived.counts.verdicts[0, "duplicate"] == 2
        lane = LateLane(TILES, LateLaneRun("1", None, 1), "changelog", tmp_path / "late.json")
        (done,) = publish_lanes([lane], opened(tmp_path / "lake"), log, spark)
        assert (done.events, counts(log)) == (1, {"c1": 1})


def test_the_lanes_of_several_tile_sets_share_one_pass_over_the_lake(spark, tmp_path, monkeypatch):
    from headrace.spark.late import late_lane
    from headrace.spark.late.late_lane import LateLane, LateLaneRun, publish_lanes

    daily = hr.view(
        "daily", payments, by=["id"], features={"n": hr.count(over="30d"), "sum": hr.sum("amount", over="1d")}
    )
    sets = (TILES, *build([daily]).tile_sets)
    lake, clock, reads = opened(tmp_path / "lake"), FakeClock(LONG_AGO), list[str]()
    bring(spark, lake, wish(tmp_path / "old.jsonl", [line(n) for n in range(0, 6_000, 1_000)]), tmp_path)
    real = LakeTable.files

    def files(table, *given):
        if table is lake.silver:
            reads.append("silver")
        return real(table, *given)

    monkeypatch.setattr(LakeTable, "files", files)
    with EmbeddedLog(tmp_path / "log", clock=clock) as log:
        for each in sets:
            log.create_topic(each.id, compacted=True)
        lanes = [LateLane(each, LateLaneRun("1", None, 1), each.id, tmp_path / each.id) for each in sets]
        done = publish_lanes(lanes, lake, log, spark)
        assert reads == ["silver", "silver"], "once for what is new, once for the tiles that it is in"
        assert [(each.events, each.tiles) for each in done] == [(6, 6), (6, 6)]
        assert counts(log, TILES.id) == {"c0": 2, "c1": 2, "c2": 2}
        assert counts(log, sets[1].id) == {f"p{n}": 1 for n in range(0, 6_000, 1_000)}

        monkeypatch.setattr(late_lane, "FEW", 0)  # as if there were too many events to take all lanes at once
        again = [LateLane(each, LateLaneRun("2", None, 1), each.id, tmp_path / f"{each.id}.2") for each in sets]
        assert publish_lanes(again, lake, log, spark) == done


def counts(log, topic="changelog"):
    """Events by key in the newest late tiles."""
    newest: dict[bytes | None, TileRow] = {}
    for record in log.read(topic, 0, 0, limit=1_000):
        row = decode(record.key, record.value)
        assert isinstance(row, TileRow)
        assert row.lane == "late"
        if record.key not in newest or newest[record.key].version <= row.version:
            newest[record.key] = row
    found: dict[str, int] = {}
    for row in newest.values():
        states = json.loads(row.partials)
        n = next(value["n"] if isinstance(value, dict) else value for value in states.values())
        found[str(row.key[0])] = found.get(str(row.key[0]), 0) + n
    return found
