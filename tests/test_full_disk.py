"""A full disk under the processes of a project: children wait, none is given up, all come back when there is room."""

from __future__ import annotations

import errno
import json
import logging
from types import SimpleNamespace

import pytest

from headrace import disk
from headrace.cli.init import create
from headrace.cli.main import main
from headrace.clock import show_time
from headrace.config import config as configs
from headrace.driver.application import SparkApplication
from headrace.driver.component_thread import RESTARTING, RUNNING, ComponentThread
from headrace.errors import DiskFullError
from headrace.log import MemoryLog
from headrace.plan.build import build
from headrace.processes import service, state_folder
from headrace.processes.backoff import LOOP_EXITS
from headrace.processes.state_folder import StateFolder
from headrace.skew.process import Auditing
from headrace.status.topic import StatusPublisher
from headrace.supervisor import services
from headrace.supervisor import supervisor as supervise
from headrace.supervisor.child import ChildCommand
from headrace.supervisor.services import Local, Services
from headrace.supervisor.status_report import report
from headrace.supervisor.supervisor import NO_ROOM
from headrace.testing import FakeClock
from headrace.topics import STATUS
from tests.driver.test_component_thread import Sequence, short_delays, wait_until
from tests.test_supervisor import SLEEPS, Stage, at_once, never, python, stage, where

__all__ = ["stage", "where"]

FULL = OSError(errno.ENOSPC, "No space left on device")
LOG_FULL = DiskFullError("log-full", "The log cannot grow.", got="SQLITE_FULL")


def refuse(*_: object, **__: object) -> None:
    raise FULL


class Disk:
    """A disk that a test fills and frees."""

    def __init__(self) -> None:
        self.room = True

    def __call__(self, *_: object) -> bool:
        return self.room


@pytest.fixture
def small(monkeypatch) -> Disk:
    """The disk of every supervisor that is made from now on."""
    found = Disk()
    monkeypatch.setattr(supervise, "has_room", found)
    return found


def step_until(tried: Stage, state: str) -> None:
    def reached() -> bool:
        tried.now.at += 31
        tried.supervisor.step()
        return tried.state() == state

    wait_until(reached)


# the supervisor


def test_a_status_that_cannot_be_written_ends_nothing_and_is_written_later(stage, monkeypatch):
    tried = stage(ChildCommand("serve", python(SLEEPS), at_once))
    monkeypatch.setattr(supervise, "write_status", refuse)
    tried.supervisor.start()
    for _ in range(3):
        tried.supervisor.step()
    assert tried.state() == "ready"
    assert [line for line in tried.said if "cannot be written" in line] == [
        f"the status file cannot be written: {FULL}"
    ]
    assert tried.stored == {}
    monkeypatch.undo()
    tried.supervisor.step()
    assert tried.stored["processes"]["serve"]["state"] == "ready"


def test_the_status_goes_on_being_written_over_the_old_one_while_the_disk_is_full(stage, monkeypatch):
    tried = stage(ChildCommand("serve", python(SLEEPS), at_once))
    tried.supervisor.start()
    monkeypatch.setattr("headrace.files.write_atomically", refuse)
    tried.until("ready")
    assert tried.stored["processes"]["serve"]["state"] == "ready"


@pytest.mark.parametrize("code", [1, DiskFullError.exit_code, 3])
def test_a_child_that_exits_for_want_of_space_is_never_given_up_and_starts_when_there_is_room(stage, small, code):
    tried = stage(ChildCommand("spark", python(f"raise SystemExit({code})"), never))
    small.room = False
    tried.supervisor.start()
    step_until(tried, NO_ROOM)
    watched = tried.supervisor.watched[0]
    for _ in range(LOOP_EXITS + 1):
        tried.supervisor._exited(watched, code, "exited")
    assert (tried.state(), tried.supervisor.state) == (NO_ROOM, "starting")
    tried.supervisor.check_start()
    for _ in range(3):
        tried.now.at += 60
        tried.supervisor.step()
    assert watched.restarts == 0
    assert "spark: exited, waiting for space on the disk" in tried.said[-1]
    small.room = True
    tried.supervisor.step()
    assert (watched.restarts, tried.state()) == (1, "starting")


def test_an_exit_that_says_the_disk_is_full_is_believed_when_there_is_room_again_by_now(stage, small):
    tried = stage(ChildCommand("spark", python(f"raise SystemExit({DiskFullError.exit_code})"), never))
    tried.supervisor.start()
    step_until(tried, NO_ROOM)
    for _ in range(LOOP_EXITS + 1):
        tried.supervisor._exited(tried.supervisor.watched[0], DiskFullError.exit_code, "exited")
    assert (tried.state(), tried.supervisor.state) == (NO_ROOM, "starting")
    step_until(tried, "starting")


def test_serving_is_started_on_a_full_disk_too(stage, small):
    tried = stage(ChildCommand("serve", python(SLEEPS), at_once, needs_room=False))
    tried.supervisor.start()
    tried.until("ready")
    small.room = False
    tried.supervisor.watched[0].process.kill()
    step_until(tried, NO_ROOM)
    step_until(tried, "ready")
    assert tried.supervisor.watched[0].restarts == 1


def test_a_full_disk_is_told_once_makes_the_whole_degraded_and_is_over_by_itself(stage, small):
    tried = stage(ChildCommand("serve", python(SLEEPS), at_once))
    tried.supervisor.start()
    tried.until("ready")
    small.room = False
    for _ in range(3):
        tried.supervisor.step()
    assert (tried.supervisor.state, tried.stored["state"], tried.stored["full_since"]) == (
        "degraded",
        "degraded",
        show_time(1_000_000),
    )
    small.room = True
    tried.supervisor.step()
    assert (tried.supervisor.state, tried.stored["full_since"]) == ("ready", None)
    data = tried.where.data
    assert [line for line in tried.said if "disk" in line] == [
        f"the disk of {data} is full: reads are answered, everything else waits for space",
        f"there is space again on the disk of {data}",
    ]


def test_on_a_full_disk_no_child_is_killed_for_its_silence_or_for_not_being_ready(stage, small, tmp_path):
    sign = tmp_path / "spark.json"
    sign.touch()
    silent = ChildCommand("spark", python(SLEEPS), at_once, sign=sign, silence=60.0)
    tried = stage(silent, ChildCommand("audit", python(SLEEPS), never, deadline=60.0))
    tried.supervisor.start()
    small.room = False
    for _ in range(3):
        tried.now.at += 100
        tried.supervisor.step()
    assert [tried.state(number) for number in range(2)] == ["ready", "starting"]
    assert all(watched.why is None for watched in tried.supervisor.watched)


def test_a_child_whose_log_cannot_be_opened_waits_for_space(stage, monkeypatch):
    tried = stage(ChildCommand("audit", python(SLEEPS), never))
    monkeypatch.setattr(supervise, "start_child", refuse)
    tried.supervisor.start()
    assert tried.state() == NO_ROOM


# status and down


class Shut(MemoryLog):
    """A log that cannot even be read: there is no room for the files that reading takes."""

    def start_offsets(self, topic):
        raise LOG_FULL


@pytest.fixture
def shop(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return configs.load()


def test_the_status_says_that_the_disk_is_full_though_nobody_can_write_it_down(shop, monkeypatch):
    monkeypatch.setattr(disk, "LEAST", 1 << 62)
    found = report(shop, state_folder.find_state_folder(shop), Shut(), now=7, load=lambda: build([]))
    (alarm,) = found.alarms
    assert (found.state, alarm.kind, alarm.since) == ("stopped", "disk_full", show_time(7))
    assert "is full" in alarm.says
    monkeypatch.undo()
    assert report(shop, state_folder.find_state_folder(shop), MemoryLog(), now=7, load=lambda: build([])).alarms == []


def test_down_needs_no_room(shop, monkeypatch, capsys):
    monkeypatch.setattr(disk, "LEAST", 1 << 62)
    monkeypatch.setattr("headrace.files.write_atomically", refuse)
    assert main(["down"]) == 0
    assert "Nothing was running." in capsys.readouterr().err


def test_the_lock_names_its_holder_without_taking_more_room_than_before(tmp_path):
    where = StateFolder(tmp_path)
    with state_folder.locked(where):
        held = state_folder.holder(where)
        where.lock.write_text("x" * 4_000)
    with state_folder.locked(where):
        assert state_folder.holder(where) == held


# services of the project's own


def test_a_service_that_died_of_a_full_disk_is_started_when_there_is_room_and_never_given_up(shop, monkeypatch):
    started, said, room = list[int](), list[str](), Disk()
    monkeypatch.setattr(services, "has_room", room)
    monkeypatch.setattr(service, "running", lambda _: None)
    monkeypatch.setattr(service, "expected", lambda _: "127.0.0.1:1")

    def start() -> str:
        started.append(1)
        if len(started) <= LOOP_EXITS + 1:
            raise FULL
        return "127.0.0.1:1"

    now = SimpleNamespace(at=0.0)
    kept = Services(shop, said.append, lambda: now.at)
    kept._kept = [Local(services.list_services(shop)[1].service, lambda _: None, start)]
    room.room = False
    kept.look()
    assert started == []
    room.room = True
    for _ in range(LOOP_EXITS + 2):
        kept.look()
        now.at += 31
    assert len(started) == LOOP_EXITS + 2
    assert not [line for line in said if "left to you" in line]
    assert said[-1].startswith("redis: started at 127.0.0.1:1")


# components


def fails(error: Exception):
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize("error", [LOG_FULL, RuntimeError("java.io.IOException: No space left on device")])
def test_a_component_without_space_says_so_refuses_nothing_and_goes_on_when_there_is_room(monkeypatch, error):
    short_delays(monkeypatch)
    room, parts = Disk(), [Sequence(fails(error)), Sequence()]
    thread = ComponentThread("pipeline", lambda: parts.pop(0), room=room)
    room.room = False
    thread.start()
    wait_until(lambda: thread.state == RESTARTING)
    assert thread.refusal is None
    assert thread.error.startswith("It waits for space. ")
    assert thread.silence() < 60
    assert len(parts) == 1
    room.room = True
    wait_until(lambda: thread.state == RUNNING)
    assert (thread.restarts, thread.error) == (1, "")
    thread.stop()
    assert thread.join(20)


def test_the_spark_process_shows_that_it_lives_when_its_state_cannot_be_written(tmp_path, monkeypatch, caplog):
    application = SparkApplication.__new__(SparkApplication)
    application._file, application._written, log = tmp_path / "spark.json", "", MemoryLog()
    log.create_topic(STATUS, compacted=True)
    application._publisher = StatusPublisher(log, STATUS, FakeClock(1), process="spark")
    application.threads = []
    application._file.write_text("{}")
    before = application._file.stat().st_mtime_ns
    monkeypatch.setattr("headrace.driver.application.write_or_overwrite", refuse)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            application._publish_status()
    assert application._file.stat().st_mtime_ns > before
    assert len(caplog.records) == 1
    monkeypatch.undo()
    application._publish_status()
    assert json.loads(application._file.read_text())["components"] == {}


def test_the_audit_goes_on_when_nobody_can_be_told(shop, monkeypatch):
    from headrace import project

    loaded, log = project.load(), MemoryLog()
    auditing = Auditing(loaded.plan(), loaded.config, log, FakeClock(1))
    monkeypatch.setattr(log, "append", lambda *_, **__: fails(LOG_FULL)())
    auditing.publish_status()
    auditing.publish_status()
    monkeypatch.undo()
    auditing.publish_status()
    assert log.end_offsets("headrace.status") == {0: 1}
