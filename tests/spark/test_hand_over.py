"""Runs that begin from history: wherever the lake was cut, batch, stream and late lane together are the reference."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from typing import Any

import pytest

from headrace.clock import DAY, HOUR, MINUTE
from headrace.lake.layout import bronze_shape, silver_shape
from headrace.lake.location import Lake
from headrace.lake.table import LakeTable
from headrace.log.embedded.log import EmbeddedLog
from headrace.log.record import Message
from headrace.meaning.equality import differences
from headrace.meaning.reference import ReferenceResult
from headrace.meaning.value import value
from headrace.plan.build import build
from headrace.testing import FakeClock
from headrace.tiles.changelog import FILLED, FILLING, HandOver, TileRow
from headrace.tiles.changelog_format import decode
from tests.serve.shape import decoder
from tests.streams import BASE, every_window, payments, seeded

pytestmark = pytest.mark.spark

VIEWS = [every_window]  # aggregates are the conformance suite's business
PLAN = build(VIEWS)
(TILES,) = PLAN.tile_sets
RECORDS = seeded(seed=23, cases=40, size=40)
T = BASE + 2 * DAY
CLOCK = FakeClock(T)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hand-over")
    clock = FakeClock(BASE - HOUR)
    log = EmbeddedLog(folder / "log", clock=clock)
    log.create_topic("payments", partitions=3)
    for topic in ("changelog", "runs"):
        log.create_topic(topic, compacted=True)
    for each in sorted(RECORDS, key=lambda r: (r.arrived_at, r.partition, r.offset)):
        if each.arrived_at > clock.now():
            clock.advance(f"{each.arrived_at - clock.now()}us")
        log.append_batch("payments", [Message(each.value, each.key)], partition=each.partition)
    lake = Lake(
        LakeTable(str(folder / "bronze"), bronze_shape()),
        LakeTable(str(folder / "silver"), silver_shape(payments)),
        str(folder / "staging"),
    )
    yield folder, log, lake
    log.close()


def streamed(spark, log, hand_over, run, checkpoint, most):
    """The run's stream to the end of the log, as the pipeline runs it."""
    from headrace.spark.admission import judged
    from headrace.spark.pipeline.publish import QueryPaths
    from headrace.spark.pipeline.tile_query import TileQuery
    from headrace.spark.records import stream_of
    from headrace.spark.source import register
    from headrace.spark.tiles import Target

    register(spark)
    place, begin = QueryPaths(log, CLOCK, "payments", checkpoint), hand_over and hand_over.begin
    records = judged(stream_of(spark, log, "payments", most, begin), payments)
    tile = TileQuery(TILES, Target(run, "on_time", 3), place, "changelog", hand_over, judged=lambda *_: records)
    tile.in_micro_batches(to_the_end=True)
    assert tile.query.awaitTermination(120)
    told = [state for each in tile.query.recentProgress for state in each.stateOperators]
    assert all(state.numRowsDroppedByWatermark == 0 for state in told)


def test_a_run_from_any_cut_is_the_reference_tile_by_tile_and_value_by_value(spark, place):
    from headrace.spark.archive.archive import StreamArchive
    from headrace.spark.backfill.backfill import Ground, complete, fill, hand_over
    from headrace.spark.late.late_lane import LateLane, LateLaneRun, publish_lanes
    from headrace.spark.pipeline.runs import Runs

    folder, log, lake = place
    chance = random.Random(5)
    archive, runs = StreamArchive(payments, "payments", log, lake, spark, CLOCK), Runs(log, "runs")
    ground = Ground(TILES, log, "payments", "changelog", lake.silver, runs, 3)
    made: dict[str, HandOver | None] = {"1": None}
    lanes = {"1": LateLane(TILES, LateLaneRun("1", None, 3), "changelog", folder / "late1")}
    for _ in range(2):
        for _ in range(2):
            archive.step(chance.randrange(150, 400))
        publish_lanes([lanes["1"]], lake, log, spark)
        wanted = hand_over(ground, spark, CLOCK)
        runs.say(wanted)
        done = complete(ground, fill(ground, spark, wanted))
        assert (done.hand_over.stage, done.hand_over.filled) == (FILLED, wanted.point)
        made[wanted.run] = wanted
        lane = LateLaneRun(wanted.run, wanted, 3)
        lanes[wanted.run] = LateLane(TILES, lane, "changelog", folder / f"late{wanted.run}")
        publish_lanes([lanes[wanted.run]], lake, log, spark)
    assert set(made) == {"1", "2", "3"}
    second, third = (held for held in made.values() if held is not None)
    assert second.point < third.point
    assert sum(third.begin.values()) > sum(second.begin.values()) > 0
    while archive.step(500):
        pass
    for run, begun in made.items():
        streamed(spark, log, begun, run, folder / f"checkpoint{run}", 400)
    publish_lanes(list(lanes.values()), lake, log, spark)
    again = publish_lanes(list(lanes.values()), lake, log, spark)
    assert {done.tiles for done in again} == {0}, "a pass over nothing new publishes nothing"

    outcome = ReferenceResult(PLAN, RECORDS)
    expected = outcome.tiles(TILES)
    assert {lane for _, _, lane in expected} == {"on_time", "late"}
    for run in made:
        found = states(log, run)
        assert found.keys() == expected.keys(), (run, list(found.keys() ^ expected.keys())[:3])
        by_key = defaultdict(list)
        for (key, tile, _), partials in sorted(found.items(), key=repr):
            by_key[key].append((tile, partials))
        for view in VIEWS:
            for key in outcome.keys(view):
                values = {planned.feature.name: value(planned, by_key[key], T) for planned in PLAN.view(view.name)}
                assert differences(outcome, view, key, (T,), values) == [], run


def states(log, run):
    """What the changelog holds of a run: the partial columns of every (key, tile, lane)."""
    newest: dict[tuple[Any, int, str], tuple[int, bytes]] = {}
    read = decoder((column.name, column.monoid) for column in TILES.partials)
    for record in log.read("changelog", 0, 0, limit=1_000_000, max_bytes=10**9):
        if json.loads(record.key)["run"] == run and "progress" not in json.loads(record.key):
            row = decode(record.key, record.value)
            assert isinstance(row, TileRow)
            place = (row.key, row.tile, row.lane)
            if place not in newest or newest[place][0] <= row.version:
                newest[place] = (row.version, row.partials)
    return {place: read(partials) for place, (_, partials) in newest.items()}


def test_a_fill_that_was_cut_off_goes_on_where_it_was(spark, place):
    from headrace.spark.archive.archive import StreamArchive
    from headrace.spark.backfill.backfill import Ground, complete, fill, hand_over
    from headrace.spark.pipeline.runs import Runs

    _, log, lake = place
    while StreamArchive(payments, "payments", log, lake, spark, CLOCK).step(2_000):
        pass
    runs = Runs(log, "runs")
    runs.look()
    ground = Ground(TILES, log, "payments", "changelog", lake.silver, runs, 3)
    wanted = hand_over(ground, spark, CLOCK)
    runs.say(wanted)
    before = log.end_offsets("changelog")[0]

    class CutError(Exception):
        """What stands for a kill."""

    def cut(done):
        raise CutError

    with pytest.raises(CutError):
        fill(ground, spark, wanted, at_once=10 * MINUTE, worth=1, progress=cut)
    again = Runs(log, "runs")
    again.look()
    held = again.of(TILES)[wanted.run]
    assert held.stage == FILLING
    assert held.filled is not None
    first = log.end_offsets("changelog")[0] - before
    assert first > 0
    ground = Ground(TILES, log, "payments", "changelog", lake.silver, again, 3)
    done = complete(ground, fill(ground, spark, held))
    keys = [r.key for r in log.read("changelog", 0, before, limit=1_000_000, max_bytes=10**9)]
    assert len(keys) == len(set(keys)) == first + done.rows
    assert again.of(TILES)[wanted.run].stage == FILLED
