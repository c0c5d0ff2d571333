"""State and hot keys of real queries: what is kept is what the plan says, what is dropped is told of."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager

import pytest

import headrace as hr
from headrace import project
from headrace.cli.init import create
from headrace.clock import MINUTE, SECOND, micros, show_time
from headrace.log.embedded.log import EmbeddedLog
from headrace.log.record import Message
from headrace.plan.build import build
from headrace.plan.model import TileSet
from headrace.spark.progress import last_batch, last_batch_end
from headrace.testing import FakeClock
from headrace.tiles.changelog import ProgressRow, TileRow
from headrace.tiles.changelog_format import decode

pytestmark = pytest.mark.spark

NOW = "2026-01-01T12:00:00Z"
fields = {"id": str, "card": str, "amount": float, "at": hr.Timestamp}
payments = hr.stream("payments", fields=fields, event_id="id", event_time="at", allowed_lateness="2m")


def tile_set(by="card"):
    features = {"n": hr.count(over="10m"), "median": hr.quantile("amount", q=0.5, over="10m")}
    (found,) = build([hr.view("v", payments, by=by, features=features)]).tile_sets
    return found


def payment(id, at, card="42"):
    moment = at if isinstance(at, str) else show_time(at)
    return f'{{"id":"{id}","card":"{card}","amount":1.0,"country":"DE","at":"{moment}"}}'.encode()


def tiled(spark, log, tiles, most=1_000):
    from headrace.spark.admission import judged
    from headrace.spark.pipeline.hot_keys import watched
    from headrace.spark.records import stream_of
    from headrace.spark.source import register
    from headrace.spark.tiles import Target, admitted_once, changelog
    from headrace.spark.tiles import tiles as tiles_of

    register(spark)
    once = watched(admitted_once(judged(stream_of(spark, log, "payments", most), payments), tiles), tiles)
    return changelog(tiles_of(once, tiles, 1), tiles, Target("1", "on_time", 1))


def run_to_its_end(rows, checkpoint):
    writer = rows.writeStream.outputMode("update").option("checkpointLocation", str(checkpoint))
    query = writer.foreachBatch(lambda batch, _: batch.toArrow()).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return query.recentProgress


def test_spark_keeps_what_the_plan_says_and_no_longer(spark, tmp_path):
    from headrace.spark.pipeline.query_state import inspect, told

    tiles, clock = tile_set(), FakeClock(NOW)
    first, log = clock.now(), EmbeddedLog(tmp_path / "log", clock=clock)
    log.create_topic("payments", partitions=1)
    for number in range(61):
        log.append("payments", payment(f"p{number}", clock.now()), key=b"42")
        clock.advance("30s")
    newest = first + 30 * MINUTE
    # What a batch evicts is decided by the batches before it: one more, with nothing that is newer.
    log.append("payments", payment("again", newest), key=b"42")
    progress = run_to_its_end(tiled(spark, log, tiles, most=61), tmp_path / "checkpoint")
    assert [each.batchId for each in progress if "addBatch" in each.durationMs] == [0, 1]

    held, kept = inspect(spark, tmp_path / "checkpoint"), tiles.state_retention
    happened = [first + number * 30 * SECOND for number in range(61)]
    identities = [at for at in happened if at > newest - kept["deduplication"]]
    starts = sorted({at - at % tiles.grain for at in happened if at - at % tiles.grain > newest - kept["tiles"]})
    assert (held["deduplication"].rows, held["tiles"].rows) == (len(identities) + 1, len(starts))
    assert (held["deduplication"].oldest, held["deduplication"].newest) == (identities[0], newest)
    assert (held["tiles"].oldest, held["tiles"].newest) == (starts[0], starts[-1])
    assert 0 < len(identities) < len(happened)
    said = told(progress[-1])
    assert {name: each["rows"] for name, each in said.items()} == {name: each.rows for name, each in held.items()}
    assert all(each["memory_bytes"] > 0 for each in said.values())


@pytest.mark.parametrize("by", ["card", ()])
def test_a_hot_key_is_summed_up_before_its_rows_are_moved(spark, tmp_path, capsys, by):
    log = EmbeddedLog(tmp_path / "log", clock=FakeClock(NOW))
    log.create_topic("payments", partitions=1)
    tiled(spark, log, tile_set(by)).explain()
    steps = [line.strip(" +-") for line in capsys.readouterr().out.splitlines()]
    move = next(at for at, step in enumerate(steps) if step.startswith("Exchange hashpartitioning(window"))
    assert "functions=[partial_count(1)" in steps[move + 1]
    assert "functions=[merge_count(1)" in steps[move - 1]


def test_inspecting_a_checkpoint_that_has_no_batch_finds_nothing(spark, tmp_path):
    from headrace.spark.pipeline.query_state import checkpoint_bytes, inspect

    assert inspect(spark, tmp_path / "none") == {}
    assert checkpoint_bytes(tmp_path / "none") == {}


@pytest.fixture
def shop(tmp_path):
    create(tmp_path / "shop")
    return project.load(tmp_path / "shop")


@contextmanager
def started(spark, shop, clock):
    from headrace.spark.pipeline.pipeline import Pipeline
    from headrace.spark.source import register

    register(spark)
    pipeline = Pipeline(shop.plan(), shop.config, spark, clock)
    try:
        yield pipeline
    finally:
        pipeline.stop()


def told_when_read(pipeline):
    """What the status says once the tile query has read and told of everything."""
    deadline = time.monotonic() + 120
    (tile,) = pipeline.runs.serving
    while time.monotonic() < deadline:
        pipeline.clock.advance("1s")
        pipeline.step()
        read = last_batch_end(tile.place.checkpoint) == pipeline.log.end_offsets("payments")
        said = status(pipeline)
        if read and said["tile_sets"][tile.tile_set.id]["batch"] == last_batch(tile.place.checkpoint):
            return said
        tile.query.awaitTermination(0.5)
    raise AssertionError(status(pipeline))


def status(pipeline):
    (start,) = pipeline.log.start_offsets("headrace.status").values()
    return json.loads(pipeline.log.read("headrace.status", 0, start, limit=10_000)[-1].value)


def test_rows_that_the_watermark_drops_and_keys_that_are_hot_are_alarms(spark, shop, monkeypatch):
    # Far too small: an event on time can be behind it.
    monkeypatch.setattr(TileSet, "watermark_delay", SECOND)
    clock = FakeClock(NOW)
    with started(spark, shop, clock) as pipeline:
        half_of_the_events_are_of_one_key(pipeline)
        alarm = three_rows_are_dropped(pipeline)
    with started(spark, shop, clock) as again:
        again.clock.advance("1m")
        again.step()
        told = status(again)
        assert [(each["kind"], each["since"]) for each in told["alarms"]] == [(alarm["kind"], alarm["since"])]
        assert told["tile_sets"]["payments.by_card"]["dropped_by_watermark"] == 3
        what_was_dropped_is_recovered_from_the_lake(again)


def what_was_dropped_is_recovered_from_the_lake(pipeline):
    from headrace.spark.archive.component import Archiving
    from headrace.spark.late.component import LateLanes

    pipeline.clock.advance("2m")
    archiving = Archiving(pipeline.plan, pipeline.config, pipeline.session, pipeline.clock)
    while archiving.step():
        pass
    archiving.stop()
    lanes = LateLanes(pipeline.plan, pipeline.config, pipeline.session, pipeline.clock)
    deadline = time.monotonic() + 120
    while pipeline.runs.serving[0].target.run == "1":
        assert time.monotonic() < deadline, status(pipeline)
        pipeline.step()
        lanes.step()
        pipeline.clock.advance("2s")
    lanes.stop()
    pipeline.clock.advance("2s")
    pipeline.step()
    told = status(pipeline)
    assert (told["tile_sets"]["payments.by_card"]["run"], told["alarms"]) == ("2", [])
    assert events_in_tiles(pipeline.log, "1") == 202
    said = newest_progress(pipeline.log, "2")
    assert micros(NOW) < said.late_as_of <= said.as_of, "it says how far the late lane is"
    assert events_in_tiles(pipeline.log, "2") == 205


def newest_progress(log, run):
    """What was last said of how far a run is."""
    topic = "changelog.payments.by_card"
    records = log.read(topic, 0, log.start_offsets(topic)[0], limit=100_000)
    rows = (decode(record.key, record.value) for record in records)
    return [row for row in rows if isinstance(row, ProgressRow) and row.run == run][-1]


def events_in_tiles(log, run):
    """How many events a run's newest tiles hold."""
    newest: dict[bytes, TileRow] = {}
    topic = "changelog.payments.by_card"
    for record in log.read(topic, 0, log.start_offsets(topic)[0], limit=100_000):
        row = decode(record.key, record.value)
        if isinstance(row, TileRow) and row.run == run:
            newest[record.key] = row
    counted = (json.loads(row.partials) for row in newest.values())
    return sum(next(value for name, value in each.items() if name.startswith("count_")) for each in counted)


def half_of_the_events_are_of_one_key(pipeline):
    from headrace.spark.pipeline.query_state import inspect

    now = pipeline.clock.now()
    sent = [payment(f"p{at}", now - SECOND, card="hot" if at % 2 else f"c{at}") for at in range(200)]
    sent += [payment("none", now - SECOND, card="c0").replace(b"1.0", b"0.0")]
    pipeline.log.append_batch("payments", [Message(value) for value in sent])
    told = told_when_read(pipeline)
    (tiles,) = told["tile_sets"].values()
    assert tiles["dropped_by_watermark"] == 0
    assert tiles["hot_keys"][0] == {"key": {"card": "hot"}, "share": 0.5}
    assert (tiles["hot_keys_of"], len(tiles["hot_keys"])) == (200, 10)
    assert {name: each["rows"] for name, each in tiles["operators"].items()} == {"deduplication": 201, "tiles": 101}
    assert (tiles["state_rows"], tiles["newest"]) == (302, show_time(now - SECOND))
    # The state can be looked at while the query runs.
    held = inspect(pipeline.session, pipeline.runs.serving[0].place.checkpoint)
    assert {name: each.rows for name, each in held.items()} == {"deduplication": 201, "tiles": 101}
    assert [(each["kind"], each["rate"]) for each in told["alarms"]] == [("hot_key", 0.5)]
    assert told["alarms"][0]["says"].endswith("50.0 % of the events are of one key, card=hot.")


def three_rows_are_dropped(pipeline):
    pipeline.clock.advance("3m")
    newest = pipeline.clock.now()
    # Spark drops by the watermark that the batch before had, so it takes two.
    for name in ("new", "as new"):
        pipeline.log.append("payments", payment(name, newest))
        told_when_read(pipeline)
    behind = [payment(f"behind{number}", newest - 5 * SECOND) for number in range(3)]
    pipeline.log.append_batch("payments", [Message(value) for value in behind])
    told = told_when_read(pipeline)
    (tiles,) = told["tile_sets"].values()
    assert (tiles["dropped_by_watermark"], tiles["hot_keys"]) == (3, [])
    assert tiles["watermark"] == show_time(newest - SECOND)
    (alarm,) = told["alarms"]
    assert (alarm["kind"], alarm["stream"]) == ("dropped_by_watermark", "payments")
    assert alarm["says"].startswith("Tiles payments.by_card: 3 rows were dropped by the watermark; `headrace backfill`")
    return alarm
