"""The services of a project while it is up: started when the settings name none, kept up, left alone, told of."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest

from headrace.cli.init import create
from headrace.cli.main import main
from headrace.config import config
from headrace.errors import HeadraceError, MachineError
from headrace.log import MemoryLog
from headrace.processes import jars, redis, service, state_folder
from headrace.processes.ports import free_ports
from headrace.processes.service import Service
from headrace.supervisor import services, stack
from headrace.supervisor.child import ChildCommand
from headrace.supervisor.services import Local, Services

WITH_REDIS = '\n[store]\nkind = "redis"\n'


class Steady:
    """A steady clock that stands still."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def shop(tmp_path, monkeypatch):
    folder = tmp_path / "shop"
    create(folder)
    with (folder / "headrace.toml").open("a") as file:
        file.write(WITH_REDIS)
    monkeypatch.chdir(folder)
    # Whether this machine has a Redis of its own is of no account here.
    monkeypatch.setattr(redis, "USUAL", f"127.0.0.1:{free_ports(1)[0]}")
    yield config.load()
    services.stop(config.load())


@pytest.fixture
def kept(shop):
    """The started services of a project, what they said, and their clock."""
    said, now = list[str](), Steady()
    made = Services(shop, said.append, now)
    made.start()
    return made, said, now


def redis_of(loaded):
    return redis.running(redis.redis_folder(loaded))


def kill(loaded):
    pid = redis_of(loaded).pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_a_redis_is_started_when_none_is_named_and_none_answers(shop, kept):
    found = redis_of(shop)
    assert kept[1] == [f"redis: started at {found.address} (0.0 s)"]
    again: list[str] = []
    Services(shop, again.append).start()
    assert again == [f"redis: runs at {found.address}"]
    assert redis_of(shop) == found
    assert services.running(shop) == {"redis": found.address}


def test_a_redis_of_the_machines_own_is_used_and_not_started(shop, tmp_path, monkeypatch):
    theirs = redis.up(tmp_path / "theirs")
    try:
        monkeypatch.setattr(redis, "USUAL", theirs.address)
        said: list[str] = []
        Services(shop, said.append).start()
        assert said == [f"redis: the one at {theirs.address} is used"]
        assert redis_of(shop) is None
    finally:
        redis.down(tmp_path / "theirs")


@pytest.mark.parametrize(
    "settings",
    [
        {"HEADRACE_STORE_URL": "redis://127.0.0.1:1"},
        {"HEADRACE_STORE_KIND": "lmdb"},
        {"HEADRACE_STORE_KIND": "lmdb", "HEADRACE_LOG_KIND": "kafka", "HEADRACE_KAFKA_BROKERS": "127.0.0.1:1"},
    ],
)
@pytest.mark.usefixtures("shop")
def test_what_is_named_or_not_wanted_is_never_started(settings):
    said: list[str] = []
    Services(config.load(environ=settings), said.append).start()
    assert said == []
    assert services.running(config.load()) == {}


@pytest.mark.usefixtures("shop")
def test_kafka_without_brokers_is_wanted_before_redis():
    loaded = config.load(environ={"HEADRACE_LOG_KIND": "kafka"})
    assert [local.name for local in services.find_required(loaded, lambda _: None)] == ["kafka", "redis"]


def test_one_that_dies_is_started_again_at_once_at_its_address(shop, kept):
    made, said, _ = kept
    before = redis_of(shop)
    made.look()
    assert len(said) == 1
    kill(shop)
    made.look()
    found = redis_of(shop)
    assert (found.address, found.pid != before.pid) == (before.address, True)
    log = redis.redis_service(redis.redis_folder(shop)).log_before
    assert said[1:] == [f"redis: gone, starting it again (see {log})", f"redis: started at {found.address} (0.0 s)"]


def test_one_that_dies_again_and_again_is_started_after_a_while_and_then_left(shop, kept):
    made, said, now = kept
    kill(shop)
    made.look()
    for pause in (1.0, 2.0, 4.0, 8.0):
        kill(shop)
        made.look()
        assert redis_of(shop) is None
        now.at += pause
        made.look()
        assert redis_of(shop) is not None
    assert "for the 5th time in 2 minutes" in said[-1]
    kill(shop)
    now.at += 1_000
    made.look()
    assert redis_of(shop) is None


def test_one_that_is_stopped_stays_so(shop, kept):
    made, said, _ = kept
    redis.down(redis.redis_folder(shop))
    made.look()
    assert (redis_of(shop), len(said)) == (None, 1)


def test_one_that_cannot_be_started_again_is_told_of_and_tried_later(shop, kept, monkeypatch):
    made, said, now = kept
    kill(shop)
    with monkeypatch.context() as without:
        without.setenv("PATH", str(shop.root))
        made.look()
    assert said[-1] == "redis: A local Redis needs redis-server, and it was not found."
    made.look()
    assert redis_of(shop) is None
    now.at += 1
    made.look()
    assert redis_of(shop) is not None


def toy(folder, program):
    """A service that is there as soon as it has started."""
    made = Service(folder, "Toy", "toy")

    def start():
        with service.claimed(made) as lock:
            command = [sys.executable, "-S", "-c", program]
            return service.launch(made, lock, command, port=1, ready=lambda _: True).address

    return Local(made, lambda _: None, start)


def test_when_one_cannot_be_started_the_others_are_not_left_behind(shop, tmp_path, monkeypatch):
    first = toy(tmp_path / "first", "import time; time.sleep(600)")

    def refuse():
        assert service.running(first.service) is not None
        raise MachineError("start-failed", "The local Toy did not start.")

    second = Local(Service(tmp_path / "second", "Toy", "toy"), lambda _: None, refuse)
    monkeypatch.setattr(services, "find_required", lambda *_: [first, second])
    with pytest.raises(HeadraceError, match="did not start"):
        Services(shop, lambda _: None).start()
    assert service.running(first.service) is None


def test_nothing_is_started_when_the_machine_lacks_what_one_of_them_needs(shop, tmp_path, monkeypatch):
    first = toy(tmp_path / "first", "import time; time.sleep(600)")
    (shared,) = services.find_required(shop, lambda _: None)
    monkeypatch.setattr(services, "find_required", lambda *_: [first, shared])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="redis-server"):
        Services(shop, lambda _: None).start()
    assert not first.service.folder.exists()


def test_jars_that_are_missing_are_fetched_and_told_of(monkeypatch):
    fetched, said = list[str](), list[str]()

    def present(use):
        if use == jars.CONNECTOR:
            raise MachineError("no-jars", "The jars of the Kafka connector are not there.")

    monkeypatch.setattr(jars, "present", present)
    monkeypatch.setattr(jars, "fetch", fetched.append)
    services._fetch(said.append)
    assert (fetched, said) == ([jars.CONNECTOR], ["kafka: fetching the jars of the connector, once"])


def test_a_log_that_does_not_answer_makes_nothing_ready_and_ends_nothing():
    class Away(MemoryLog):
        def topics(self):
            raise MachineError("log-unreachable", "The Kafka brokers do not answer.")

    assert stack.told_ready(Away(), "headrace.status", "pipeline")(1, 0) is None


# `up` and `down`, with a small program in place of the pipeline and serving


def ended_when_ready(where):
    """Send this process a SIGTERM as soon as `up` says that it is ready."""

    def wait():
        deadline = time.monotonic() + 30
        while (state_folder.read_status(where) or {}).get("state") != "ready" and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.fixture
def small(monkeypatch):
    child = ChildCommand("serve", [sys.executable, "-S", "-c", "import time; time.sleep(600)"], lambda *_: {})
    monkeypatch.setattr(stack, "children", lambda *_, **__: [child])


@pytest.mark.usefixtures("small")
def test_up_starts_a_redis_that_goes_on_and_down_says_so_and_stops_it_when_asked(shop, monkeypatch, capsys):
    # What `--redis` chooses for once is taken back after the test.
    monkeypatch.setenv("HEADRACE_STORE_KIND", "lmdb")
    thread = ended_when_ready(state_folder.find_state_folder(shop))
    assert main(["up", "--redis", "--port", "0"]) == 0
    thread.join()
    said = capsys.readouterr().err.splitlines()
    address = redis_of(shop).address
    assert said[0].startswith(f"redis: started at {address} (")
    assert said[1].startswith("topics: ")

    assert main(["down"]) == 0
    still = f"Still up: redis at {address}. `headrace down --all` stops it too."
    assert capsys.readouterr().err == f"Nothing was running.\n{still}\n"
    assert main(["down", "--all"]) == 0
    assert capsys.readouterr().err == "Nothing was running.\nStopped redis.\n"
    assert services.running(shop) == {}


@pytest.mark.usefixtures("small")
def test_up_that_cannot_start_a_service_is_one_error_and_nothing_runs(shop, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(shop.root))
    assert main(["up", "--port", "0"]) == 3
    said = capsys.readouterr().err
    assert (said.count("error:"), "code: no-redis" in said, "starting" in said) == (1, True, False)
    assert state_folder.holder(state_folder.find_state_folder(shop)) is None
