"""Runs as a log tells of them, and what is left of one that has ended."""

from __future__ import annotations

import headrace as hr
from headrace.log import MemoryLog
from headrace.log.record import Message
from headrace.plan.build import build
from headrace.spark.pipeline.retire import retire
from headrace.spark.pipeline.runs import Runs, checkpoint_of
from headrace.store import MemoryStore
from headrace.tiles.changelog import FILLED, SERVING, HandOver, ProgressRow, TileRow
from headrace.tiles.changelog_format import decode, encode

clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
(TILES,) = build([hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})]).tile_sets


def begun(run, stage="filling", tile_set=TILES.fingerprint):
    return HandOver(tile_set, run, 60, {0: 5, -1: 2}, {0: 3}, 7, stage)


def told():
    log = MemoryLog()
    log.create_topic("runs", compacted=True)
    return log, Runs(log, "runs")


def test_what_one_process_says_another_sees_at_its_next_look():
    log, runs = told()
    other = Runs(log, "runs")
    runs.say(begun("2"))
    assert other.of(TILES) == {}
    other.look()
    assert other.of(TILES) == {"2": begun("2")}
    assert decode(*encode(begun("2"))) == begun("2")


def test_runs_are_numbered_on_and_those_of_other_tiles_do_not_count():
    _, runs = told()
    assert runs.next(TILES) == "2"
    for run in ("9", "10"):
        runs.say(begun(run))
    runs.say(begun("50", tile_set="other"))
    assert list(runs.of(TILES)) == ["9", "10"]
    assert runs.next(TILES) == "11"


def test_the_newest_run_that_serves_is_the_one_and_without_any_it_is_the_first():
    _, runs = told()
    runs.say(begun("2", FILLED))
    assert runs.serving(TILES) is None
    for run in ("2", "3"):
        runs.say(begun(run, SERVING))
    runs.say(begun("4", FILLED))
    assert runs.serving(TILES) == begun("3", SERVING)


def test_a_forgotten_run_is_forgotten_by_everybody():
    log, runs = told()
    runs.say(begun("2", SERVING))
    runs.forget(TILES, "2")
    runs.forget(TILES, "1")  # the first run has no hand-over to forget
    late = Runs(log, "runs")
    late.look()
    assert runs.of(TILES) == late.of(TILES) == {}


def test_a_record_that_cannot_be_read_does_no_harm():
    log, runs = told()
    log.append_batch("runs", [Message(b"{", b"{"), Message(None, b"x")])
    runs.say(begun("2"))
    late = Runs(log, "runs")
    late.look()
    assert list(late.of(TILES)) == ["2"]


def test_a_retired_run_leaves_neither_rows_nor_progress_nor_checkpoint_and_others_stay(tmp_path):
    log, store = MemoryLog(), MemoryStore()
    log.create_topic("changelog", compacted=True)
    rows = [TileRow(TILES.fingerprint, run, (user,), 0, "on_time", 1) for run in ("1", "10") for user in "ab"]
    said = [ProgressRow(TILES.fingerprint, run, {0: 1}, 5) for run in ("1", "10")]
    pairs = [encode(row, ("user",)) for row in rows] + [encode(row) for row in said]
    log.append_batch("changelog", [Message(value, key) for key, value in pairs])
    checkpoint = tmp_path / checkpoint_of(TILES, "1")
    checkpoint.mkdir()

    assert retire(log, "changelog", TILES, "1", checkpoint) == 3
    assert retire(log, "changelog", TILES, "1", checkpoint) == 0
    assert not checkpoint.exists()
    records = log.read("changelog", 0, 0, limit=100)
    store.apply([decode(record.key, record.value) for record in records], "changelog", {0: 1})
    assert [bool(store.tiles(TILES.fingerprint, run, ("a",))) for run in ("1", "10")] == [False, True]
    assert list(store.progress(TILES.fingerprint)) == ["10"]


def test_each_run_has_a_checkpoint_of_its_own():
    assert len({checkpoint_of(TILES, run) for run in ("1", "2", "3")}) == 3
