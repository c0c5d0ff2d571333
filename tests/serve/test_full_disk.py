"""Serving on a full disk: reads are answered, events are refused with a time to come back, and an alarm tells."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from headrace import project
from headrace.client.answer import error_of
from headrace.client.retry import READ, SEND
from headrace.clock import SECOND, show_time
from headrace.config.config import names
from headrace.disk import LEAST
from headrace.errors import DiskFullError
from headrace.log import EmbeddedLog, MemoryLog
from headrace.serve import monitor
from headrace.serve.metrics import Metrics
from headrace.serve.metrics_folder import counts_folder
from headrace.store import LmdbStore
from headrace.testing import FakeClock
from headrace.tiles.fold import folds
from headrace.topics import create, topics
from tests.serve.conftest import NAMES, World
from tests.serve.process import be_the_pipeline, launched, until, write_project
from tests.serve.test_app import EVENT
from tests.small_disk import is_mountable, small_disk
from tests.streams import BASE

PATH = "/v1/events/clicks"
FULL = DiskFullError("log-full", "The log cannot grow.", got="SQLITE_FULL", where="a/secret/path")


class SmallLog(MemoryLog):
    """A log whose disk a test fills and frees."""

    full = False

    def append_batch(self, topic, messages, *, partition=None):
        if self.full:
            raise FULL
        return super().append_batch(topic, messages, partition=partition)


@pytest.fixture
def world() -> World:
    return World(log=SmallLog(clock=FakeClock(BASE)))


def test_events_that_a_full_disk_does_not_take_are_refused_with_507_and_a_time_to_come_back(world, caplog):
    world.log.full = True
    answers = [world.ask("POST", PATH, json=EVENT) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {507}
    assert answers[0].headers["retry-after"] == "5"
    said = answers[0].json()["error"]
    assert (said["code"], said["got"], said["where"]) == ("log-full", None, None)
    assert caplog.records == []
    world.log.full = False
    assert world.ask("POST", PATH, json=EVENT).status_code == 202
    assert sum(world.log.end_offsets(NAMES.topic("clicks")).values()) == 1


def test_a_client_sends_again_what_a_full_disk_refused_and_knows_the_error():
    assert 507 in SEND.statuses
    assert 507 not in READ.statuses
    error = error_of(507, {"code": "log-full", "message": "The log cannot grow."})
    assert isinstance(error, DiskFullError)


def test_a_full_disk_takes_no_readiness_and_no_reads_away(world):
    world.pipeline({"id": "a", "user": "ann", "at": world.clock.now()})
    assert world.get("/ready").status_code == 200
    world.log.full = True
    for _ in range(3):
        world.clock.advance("10s")
        world.serving.monitor.tick()
    assert world.get("/ready").status_code == 200
    assert world.get("/v1/features/users/ann").json()["features"]["clicks_1h"] == 1


def test_a_full_disk_is_told_once_and_is_an_alarm_on_the_page_until_there_is_room(tmp_path, monkeypatch, caplog):
    with EmbeddedLog(tmp_path) as log:
        world = World(log=log)
        world.serving.monitor.tick()
        assert world.get("/status.json").json()["alarms"] == []
        monkeypatch.setattr(monitor, "free_bytes", lambda _: LEAST - 1)
        monkeypatch.setattr(log, "append_batch", lambda *_, **__: (_ for _ in ()).throw(FULL))
        since = world.clock.now() + 10 * SECOND
        for _ in range(3):
            world.clock.advance("10s")
            world.serving.monitor.tick()
        (alarm,) = world.get("/status.json").json()["alarms"]
        assert (alarm["kind"], alarm["since"]) == ("disk_full", show_time(since))
        assert f"is full, {LEAST - 1:,} bytes are left: reads are answered" in world.get("/").text
        assert len([each for each in caplog.records if "reads go on" in each.message]) == 1
        monkeypatch.undo()
        for _ in range(2):
            world.clock.advance("10s")
            world.serving.monitor.tick()
        assert world.get("/status.json").json()["alarms"] == []


def test_the_disk_of_the_data_folder_is_watched_where_the_log_is_elsewhere(world, monkeypatch):
    monkeypatch.setattr(monitor, "free_bytes", lambda folder: LEAST - (folder == NAMES.path()))
    world.serving.monitor.tick()
    assert [alarm["kind"] for alarm in world.serving.monitor.status()["alarms"]] == ["disk_full"]
    assert world.serving.monitor.free_disk is None


def test_a_disk_below_the_bound_for_events_is_an_alarm_that_names_the_bound(tmp_path):
    with EmbeddedLog(tmp_path) as log:
        world = World(log=log)
        world.serving.monitor._least = 1 << 60
        world.serving.monitor.tick()
        (alarm,) = world.serving.monitor.status()["alarms"]
    assert f"below {1 << 60:,} bytes no events are taken over HTTP (serve.min_free_disk)" in alarm["says"]


def test_a_refusal_for_the_disk_counts_as_a_request_sent_away():
    counting = Metrics()
    counting.counted("/v1/events", "POST", 507, 0.1)
    assert "headrace_http_rejected_total 1.0" in counting.text({})


def test_counters_are_in_memory_and_what_a_killed_process_left_there_is_removed_by_the_next(tmp_path):
    data, memory = tmp_path / "data", tmp_path / "shm"
    with counts_folder(data, memory) as folder:
        assert folder == data / "run" / "metrics"
    memory.mkdir()
    left = memory / f"headrace-{os.getuid()}-left"
    left.mkdir()
    (left / "lock").touch()
    os.utime(left, (0, 0))
    with counts_folder(data, memory) as one:
        assert (one.parent, one.stat().st_mode & 0o777) == (memory, 0o700)
        os.utime(one, (0, 0))
        with counts_folder(data, memory) as other:
            assert sorted(memory.iterdir()) == sorted([one, other])
    assert list(memory.iterdir()) == []


@pytest.mark.skipif(not is_mountable(), reason="a disk can be mounted by root alone")
def test_a_serving_process_starts_and_answers_reads_on_a_full_disk_and_takes_events_when_it_is_freed(tmp_path):
    def posted() -> int:
        body = json.dumps({"user": "ann", "at": "2026-01-01T00:00:00Z", "more": "x" * 20_000}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{process.port}/v1/events/clicks", body, method="POST")
        try:
            return int(urllib.request.urlopen(request, timeout=30).status)
        except urllib.error.HTTPError as error:
            return error.code

    def kinds() -> list[str]:
        return [alarm["kind"] for alarm in process.ask("/status.json")[1]["alarms"]]

    def answers() -> set[int]:
        """Of a view and of what is not there: answers of a new kind take room for their counters."""
        return {process.ask(path)[0] for path in ("/v1/features/users/ann", "/v1/features/none/ann")}

    write_project(tmp_path, "min_free_disk = 0\nworkers = 1\n")
    data = tmp_path / ".headrace"
    with small_disk(data, 32) as disk:
        left_by_a_killed_one(tmp_path)
        disk.fill()
        with launched(tmp_path) as process:
            assert answers() == {200, 404}
            until(lambda: kinds() == ["disk_full"])
            disk.free()
            until(lambda: process.ask("/ready")[0] == 200)
            until(lambda: kinds() == [])
            assert posted() == 202
            disk.fill()
            until(lambda: posted() == 507)
            until(lambda: kinds() == ["disk_full"])
            assert answers() == {200, 404}
            assert process.ask("/ready")[0] == 200
            disk.free()
            until(lambda: posted() == 202)
            assert process.child.poll() is None


def left_by_a_killed_one(folder: Path) -> None:
    """A log, a store, and where an earlier process listened."""
    loaded = project.load(folder)
    with EmbeddedLog(folder / ".headrace" / "log") as log:
        create(log, topics(loaded.plan(), names(loaded.config), 1))
    be_the_pipeline(folder)
    with LmdbStore(folder / ".headrace" / "store") as store:
        store.fold_with(folds(loaded.plan()))
    (folder / ".headrace" / "run").mkdir()
    (folder / ".headrace" / "run" / "serve.json").write_text(json.dumps({"host": "127.0.0.1", "port": 0, "pid": 1}))
