"""Spark's tiles against the reference interpreter: the same verdicts, and through the tiles the same values."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from typing import Any

import msgspec
import pytest

import headrace as hr
from headrace.clock import HOUR, SECOND
from headrace.log.embedded import EmbeddedLog
from headrace.log.record import Message
from headrace.plan.build import build
from headrace.plan.value import value
from headrace.run.equality import differences
from headrace.run.reference import Outcome
from headrace.serve.partials import decoder
from headrace.testing import FakeClock
from tests.streams import BASE, LATENESS, every_aggregate, every_window, payments, seeded

pytestmark = pytest.mark.spark

RECORDS = seeded(seed=11, cases=60, size=60)
T = BASE + HOUR + LATENESS + SECOND  # everything that is not late has arrived


def on_time_only(view):
    """The view over a stream whose late events do not count: the late lane is written by another job."""
    return dataclasses.replace(view, stream=dataclasses.replace(view.stream, late="drop"))


VIEWS = [on_time_only(every_window), on_time_only(every_aggregate)]
PLAN = build(VIEWS)
(TILES,) = PLAN.tile_sets


@pytest.fixture(scope="module")
def records(spark):
    rows: list[Any] = [(r.topic, r.partition, r.offset, r.arrived_at, r.key, r.value, []) for r in RECORDS]
    made = spark.createDataFrame(
        rows,
        "topic STRING, partition INT, offset BIGINT, arrived BIGINT, key BINARY, value BINARY, "
        "headers ARRAY<STRUCT<key: STRING, value: BINARY>>",
    )
    return made.selectExpr(
        "topic", "partition", "offset", "timestamp_micros(arrived) AS arrived_at", "key", "value", "headers"
    )


def states(rows):
    """Changelog rows by key, each tile with its partial columns; of one identity the greatest version."""
    newest: dict[Any, Any] = {}
    for key, text in rows:
        told = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        if "partials" in told and newest.get(key, (0, b""))[0] <= int(bytes(told["version"])):
            newest[key] = (int(bytes(told["version"])), bytes(told["partials"]))
    decode = decoder((column.name, column.monoid) for column in TILES.partials)
    by_key = defaultdict(list)
    for key, (_, partials) in newest.items():
        identity = json.loads(key)
        by_key[tuple(identity["key"].values())].append((identity["tile"], decode(partials)))
    return by_key


def assert_equal_to_the_reference(by_key):
    outcome = Outcome(PLAN, RECORDS)
    compared = 0
    for view in VIEWS:
        for key in outcome.keys(view):
            found = {planned.feature.name: value(planned, by_key[key], T) for planned in PLAN.view(view.name)}
            assert differences(outcome, view, key, (T,), found) == []
            compared += len(found)
    assert compared > 1_000


def test_spark_gives_every_record_the_verdict_and_reason_of_the_reference(records):
    from headrace.run.admit import ARRIVED, OFFSET, PARTITION, REASON, VERDICT, judged

    rows = (
        judged(records, payments).select(*(f"`{c}`" for c in (PARTITION, OFFSET, ARRIVED, VERDICT, REASON))).collect()
    )
    found = {(row[0], row[1]): (row[2], row[3], row[4]) for row in rows}
    expected = {}
    for each in Outcome(PLAN, RECORDS).judged["payments"]:
        verdict = "admitted" if each.verdict == "duplicate" else each.verdict
        reason = each.reason if verdict in ("invalid", "future") or (verdict == "late" and not each.first) else None
        expected[(each.record.partition, each.record.offset)] = (each.place[0], verdict, reason)
    assert len(found) == len(RECORDS)
    for place, (arrived, verdict, reason) in expected.items():
        assert found[place][:2] == (arrived, verdict)
        if reason:
            assert found[place][2] == reason


def test_batch_tiles_merge_to_the_values_of_the_reference(records):
    from headrace.run.admit import judged
    from headrace.run.tiles import Target, admitted_once, changelog, tiles

    once = admitted_once(judged(records, payments), TILES)
    rows = changelog(tiles(once, TILES, 3), TILES, Target("1", "on_time", 3)).collect()
    assert len({row.key for row in rows}) == len(rows)
    assert_equal_to_the_reference(states((row.key, row.value) for row in rows))


def test_micro_batches_cut_anywhere_and_restarted_merge_to_the_values_of_the_reference(spark, tmp_path):
    from headrace.run.admit import judged
    from headrace.run.publish import Place, tiles_to_changelog
    from headrace.run.source import register
    from headrace.run.tiles import Target, admitted_once, changelog, tiles

    register(spark)
    log = logged(tmp_path / "log")
    log.create_topic("changelog", compacted=True)
    place = Place(log, FakeClock(BASE + 3 * HOUR), "payments", tmp_path / "checkpoint")
    target = Target("1", "on_time", 3)
    publish = tiles_to_changelog(place, TILES, target, "changelog")

    for most in (150, 400, 100_000):  # three runs over one checkpoint, each cutting the batches differently
        source = spark.readStream.format("headrace_log").options(
            path=str(log.folder), topic="payments", maxOffsetsPerTrigger=str(most)
        )
        rows = changelog(tiles(admitted_once(judged(source.load(), payments), TILES), TILES, 3), TILES, target)
        writer = rows.writeStream.outputMode("update").option("checkpointLocation", str(place.checkpoint))
        query = writer.foreachBatch(publish).trigger(availableNow=True).start()
        if most < 100_000:
            wait_for_batches(query, 2)
            query.stop()
        else:
            assert query.awaitTermination(120)
        assert all(
            state.numRowsDroppedByWatermark == 0 for each in query.recentProgress for state in each.stateOperators
        )

    written = log.read("changelog", 0, 0, limit=1_000_000, max_bytes=10**9)
    assert_equal_to_the_reference(states((record.key, record.value) for record in written))
    last = json.loads(written[-1].value)
    assert last["positions"] == {str(p): end for p, end in log.end_offsets("payments").items()}
    log.close()


def wait_for_batches(query, count):
    import time

    deadline = time.monotonic() + 120
    while query.isActive and (query.lastProgress is None or query.lastProgress.batchId < count - 1):
        assert time.monotonic() < deadline, "the query makes no progress"
        query.awaitTermination(0.05)


def logged(folder):
    """The records in a log of their own, each partition with its own arrival times."""
    clock = FakeClock(BASE - HOUR)
    log = EmbeddedLog(folder, clock=clock)
    log.create_topic("payments", partitions=3)
    for each in sorted(RECORDS, key=lambda r: (r.arrived_at, r.partition, r.offset)):
        ahead = each.arrived_at - clock.now()
        if ahead > 0:
            clock.advance(f"{ahead}us")
        log.append_batch("payments", [Message(each.value, each.key)], partition=each.partition)
    return log


def test_a_global_view_has_one_key_and_it_is_empty(records):
    from headrace.run.admit import judged
    from headrace.run.tiles import Target, admitted_once, changelog, tiles

    everything = hr.view("everything", payments, by=(), features={"n": hr.count(over="1h")})
    (tile_set,) = build([everything]).tile_sets
    once = admitted_once(judged(records, payments), tile_set)
    rows = changelog(tiles(once, tile_set, 3), tile_set, Target("1", "on_time", 3)).collect()
    assert {json.dumps(json.loads(row.key)["key"]) for row in rows} == {"{}"}
