"""The supervisor over tiny children: start, readiness, restarts, crash loops, and an end that leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.clock import show_time
from headrace.errors import ConfigError, HeadraceError, ProjectError
from headrace.log import MemoryLog
from headrace.processes import log_file, process_identity, state_folder
from headrace.processes.backoff import Backoff
from headrace.processes.child import ChildProcess
from headrace.processes.process_identity import Identity
from headrace.processes.signals import Signals
from headrace.processes.state_folder import StateFolder
from headrace.supervisor import stack, up
from headrace.supervisor.child import ChildCommand, start_child
from headrace.supervisor.supervisor import Supervisor
from headrace.testing import FakeClock

SLEEPS = "import time; time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)


def python(text: str) -> list[str]:
    return [sys.executable, "-S", "-c", text]


def at_once(_pid: int, _started: int) -> dict[str, object]:
    return {}


def never(_pid: int, _started: int) -> None:
    return None


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def collected(running: ChildProcess) -> None:
    until(lambda: running.code() is not None)


class Steady:
    """A steady clock that stands still."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


class Stage:
    """A supervisor under test, what it said, and its clock."""

    def __init__(self, where: StateFolder, *children: ChildCommand) -> None:
        self.where, self.said, self.now = where, list[str](), Steady()
        self.supervisor = Supervisor(children, where, say=self.said.append, now=self.now, clock=FakeClock(1_000_000))

    def state(self, number: int = 0) -> str:
        return self.supervisor.watched[number].state

    def until(self, state: str, number: int = 0) -> None:
        """Step until a child is in a state."""

        def reached() -> bool:
            self.supervisor.step()
            return self.state(number) == state

        until(reached)

    @property
    def stored(self) -> dict[str, object]:
        return state_folder.read_status(self.where) or {}


@pytest.fixture
def where(tmp_path) -> StateFolder:
    return StateFolder(tmp_path / "data")


@pytest.fixture
def stage(where) -> Iterator[Callable[..., Stage]]:
    made: list[Stage] = []

    def build(*children: ChildCommand) -> Stage:
        made.append(Stage(where, *children))
        return made[-1]

    yield build
    for built in made:
        for watched in built.supervisor.watched:
            if watched.process is not None:
                watched.process.kill()
                collected(watched.process)


def test_children_start_in_order_and_are_ready_when_they_say_so(stage):
    asked: list[int] = []

    def second_time(pid: int, started: int) -> dict[str, object] | None:
        asked.append(started)
        return {"url": f"http://here/{pid}"} if len(asked) > 1 else None

    tried = stage(ChildCommand("one", python(SLEEPS), second_time), ChildCommand("two", python(SLEEPS), at_once))
    tried.supervisor.start()
    assert [line.split(" (")[0] for line in tried.said] == ["one: starting", "two: starting"]
    tried.supervisor.step()
    assert (tried.state(0), tried.state(1), tried.supervisor.state) == ("starting", "ready", "starting")
    tried.now.at = 2.5
    tried.supervisor.step()
    assert tried.said[-1] == "one: ready (2.5 s)"
    assert tried.supervisor.state == "ready"
    assert asked == [1_000_000, 1_000_000]


def test_the_whole_is_not_ready_while_a_child_that_nothing_waits_for_is_starting(stage):
    later = ChildCommand("audit", python(SLEEPS), never, after="serve")
    tried = stage(ChildCommand("spark", python(SLEEPS), never), ChildCommand("serve", python(SLEEPS), at_once), later)
    tried.supervisor.start()
    for _ in range(3):
        tried.supervisor.step()
    assert [tried.state(number) for number in range(3)] == ["starting", "ready", "starting"]
    assert tried.supervisor.state == "starting"
    assert tried.supervisor.missing() == ["spark (starting)", "audit (starting)"]


class Parts:
    """The components of a child, as a test sets them."""

    def __init__(self, **states: str) -> None:
        self.states = states

    def __call__(self, _pid: int, _started: int) -> dict[str, object]:
        return {"components": {name: {"state": s, "ready": s == "running"} for name, s in self.states.items()}}


def test_a_component_that_fails_makes_the_whole_degraded_and_is_named(stage):
    parts = Parts(pipeline="running", archive="starting")
    tried = stage(ChildCommand("spark", python(SLEEPS), parts, health=parts))
    tried.supervisor.start()
    tried.until("ready")
    assert tried.supervisor.state == "ready"
    assert tried.supervisor.missing() == ["spark (archive starting)"]
    parts.states["archive"] = "hung"
    tried.supervisor.step()
    assert (tried.state(), tried.supervisor.state) == ("ready", "degraded")
    assert tried.supervisor.missing() == ["spark (archive hung)"]
    assert tried.stored["processes"]["spark"]["components"]["archive"]["state"] == "hung"
    parts.states["archive"] = "running"
    tried.supervisor.step()
    assert (tried.supervisor.state, tried.supervisor.missing()) == ("ready", [])


def test_a_child_that_no_longer_touches_its_file_is_killed_and_started_again(stage, tmp_path):
    file = tmp_path / "spark.json"
    file.touch()
    tried = stage(ChildCommand("spark", python(SLEEPS), at_once, sign=file, silence=60.0))
    tried.supervisor.start()
    tried.until("ready")
    for seconds in (50.0, 100.0):
        tried.now.at = seconds
        os.utime(file, ns=(int(seconds), int(seconds)))
        tried.supervisor.step()
    tried.now.at = 159.0
    tried.supervisor.step()
    assert tried.state() == "ready"
    tried.now.at = 161.0
    tried.until("restarting")
    assert "spark: gave no sign of life for 61 s, restarting" in tried.said[-1]


def test_the_status_file_tells_pid_state_and_what_the_ready_child_told(stage):
    tried = stage(ChildCommand("serve", python(SLEEPS), lambda pid, _: {"url": "http://here", "port": 80}))
    tried.supervisor.start()
    tried.supervisor.step()
    told = tried.stored["processes"]["serve"]
    assert (told["state"], told["url"], told["port"], told["restarts"]) == ("ready", "http://here", 80, 0)
    assert process_identity.read(told) == process_identity.identify(tried.supervisor.watched[0].process.pid)
    assert process_identity.read(tried.stored["supervisor"]) == process_identity.identify(os.getpid())


def test_a_child_that_exits_is_restarted_after_its_delay_and_not_before(stage):
    tried = stage(ChildCommand("one", python("raise SystemExit(1)"), never))
    tried.supervisor.start()
    tried.until("restarting")
    assert "one: exited with code 1, restarting in 1 s" in tried.said[-1]
    tried.now.at = 0.99
    tried.supervisor.step()
    assert tried.state() == "restarting"
    tried.now.at = 1.0
    tried.supervisor.step()
    assert (tried.state(), tried.supervisor.watched[0].restarts) == ("starting", 1)
    tried.until("restarting")
    assert "restarting in 2 s" in tried.said[-1]


def test_a_ready_child_that_is_killed_makes_the_whole_degraded_until_it_is_back(stage):
    tried = stage(ChildCommand("one", python(SLEEPS), at_once))
    tried.supervisor.start()
    tried.supervisor.step()
    assert tried.supervisor.state == "ready"
    os.kill(tried.supervisor.watched[0].process.pid, signal.SIGKILL)
    tried.until("restarting")
    assert tried.supervisor.state == "degraded"
    assert "was ended by SIGKILL" in tried.said[-1]
    tried.now.at += 1
    tried.until("ready")
    assert tried.supervisor.state == "ready"


def test_the_last_exit_of_a_child_is_still_known_when_it_runs_again(stage):
    tried = stage(ChildCommand("one", python(SLEEPS), at_once))
    tried.supervisor.start()
    tried.until("ready")
    tried.supervisor.watched[0].process.kill()
    tried.until("restarting")
    tried.now.at += 1
    tried.until("ready")
    record = tried.stored["processes"]["one"]
    assert (record["state"], record["restarts"]) == ("ready", 1)
    assert (record["exit"], record["exit_reason"]) == (-signal.SIGKILL, "was ended by SIGKILL")
    assert record["exited_at"] == show_time(1_000_000)


def test_a_child_that_keeps_exiting_is_given_up_with_the_end_of_its_log(stage):
    tried = stage(ChildCommand("one", python("print('out of luck', flush=True); raise SystemExit(1)"), never))
    tried.supervisor.start()
    for _ in range(4):
        tried.until("restarting")
        tried.now.at = tried.supervisor.watched[0].due_at
        tried.supervisor.step()
    tried.until("failed")
    assert "for the 5th time in 2 minutes" in tried.said[-1]
    assert "  out of luck" in tried.said[-1]
    assert tried.stored["processes"]["one"]["state"] == "failed"
    tried.now.at += 1_000
    tried.supervisor.step()
    assert tried.state() == "failed"


@pytest.mark.parametrize("code", [2, 3])
def test_a_child_that_refuses_to_run_is_not_asked_again(stage, code):
    tried = stage(ChildCommand("one", python(f"raise SystemExit({code})"), never))
    tried.supervisor.start()
    tried.until("failed")
    assert tried.said[-1].startswith(f"one: exited with code {code}, not restarting it")
    with pytest.raises(HeadraceError, match="The one process could not be started"):
        tried.supervisor.check_start()


@pytest.mark.parametrize("code", [2, 3])
def test_a_child_that_lacks_something_after_all_were_ready_is_started_again(stage, code):
    tried = stage(ChildCommand("one", python(f"import time; time.sleep(0.3); raise SystemExit({code})"), at_once))
    tried.supervisor.start()
    tried.supervisor.step()
    tried.until("restarting")
    assert tried.said[-1].startswith(f"one: exited with code {code}, restarting in 1 s")
    tried.supervisor.check_start()


def test_a_child_that_fails_after_all_were_ready_takes_nothing_else_with_it(stage):
    tried = stage(ChildCommand("one", python("import time; time.sleep(0.2); raise SystemExit(1)"), at_once))
    tried.supervisor.start()
    tried.supervisor.step()
    for _ in range(4):
        tried.until("restarting")
        tried.now.at = tried.supervisor.watched[0].due_at
        tried.supervisor.step()
    tried.until("failed")
    tried.supervisor.check_start()
    assert tried.supervisor.state == "degraded"


def test_a_command_that_is_not_there_is_an_exit_like_any_other(stage):
    tried = stage(ChildCommand("one", ["/no/such/program"], never))
    tried.supervisor.start()
    assert tried.state() == "restarting"
    assert "cannot be started" in tried.said[-1]


def test_a_child_that_is_not_ready_in_time_is_killed_and_started_again(stage):
    tried = stage(ChildCommand("one", python(SLEEPS), never, deadline=5))
    tried.supervisor.start()
    identity = tried.supervisor.watched[0].process.identity
    tried.now.at = 4.9
    tried.supervisor.step()
    assert tried.state() == "starting"
    tried.now.at = 5.0
    tried.until("restarting")
    assert "was not ready within 5 s" in tried.said[-1]
    assert process_identity.gone([identity], within=10)


def test_what_a_dead_child_started_dies_with_it(stage, tmp_path):
    grandchild = f"import os, time\nwith open({str(tmp_path / 'pid')!r}, 'w') as f: f.write(str(os.getpid()))\n{SLEEPS}"
    starts = f"import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c', {grandchild!r}]).wait()"
    tried = stage(ChildCommand("one", python(starts), at_once))
    tried.supervisor.start()
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    identity = process_identity.identify(int((tmp_path / "pid").read_text()))
    assert identity is not None
    os.kill(tried.supervisor.watched[0].process.pid, signal.SIGKILL)
    tried.until("restarting")
    assert process_identity.gone([identity], within=10)


def real(where: StateFolder, *children: ChildCommand, grace: float) -> tuple[Supervisor, list[str]]:
    said: list[str] = []
    return Supervisor(children, where, say=said.append, grace=grace), said


def test_stopping_asks_and_waits(where):
    polite = (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\nprint('up', flush=True)\n"
    )
    supervisor, said = real(where, ChildCommand("one", python(polite + SLEEPS), at_once), grace=30)
    supervisor.start()
    until(lambda: log_file.last_lines(where.log("one"), 1) == ["up"])
    supervisor.stop()
    assert supervisor.watched[0].last_exit.code == 0
    assert not any("killing" in line for line in said)
    assert (state_folder.read_status(where) or {})["state"] == "stopped"
    assert "one exited with code 0" in log_file.last_lines(where.log("one"), 1)[0]


def test_a_child_may_give_way_to_the_others(where):
    nice = "import os\nprint(os.nice(0), flush=True)\n"
    kind, usual = (
        ChildCommand(name, python(nice + SLEEPS), at_once, niceness=n) for name, n in (("kind", 10), ("usual", 0))
    )
    supervisor, _ = real(where, kind, usual, grace=1)
    supervisor.start()
    try:
        until(lambda: log_file.last_lines(where.log("kind"), 1) == [str(os.nice(0) + 10)])
        until(lambda: log_file.last_lines(where.log("usual"), 1) == [str(os.nice(0))])
    finally:
        supervisor.stop()


@pytest.mark.parametrize(("grace", "hurry"), [(0.2, False), (60, True)])
def test_a_child_that_ignores_sigterm_is_killed_after_the_grace_or_on_a_second_signal(where, grace, hurry):
    supervisor, said = real(where, ChildCommand("one", python(STUBBORN), at_once), grace=grace)
    supervisor.start()
    until(lambda: log_file.last_lines(where.log("one"), 1) == ["up"])
    began = time.monotonic()
    supervisor.stop(hurry=lambda: hurry)
    assert time.monotonic() - began < 10
    assert supervisor.watched[0].last_exit.code == -signal.SIGKILL
    assert said[-1] == "one: does not end by itself, killing it"
    assert state_folder.recorded(where) == []


def test_logs_are_added_to_with_a_mark_at_each_start_and_exit(stage):
    tried = stage(ChildCommand("one", python("print('hello')"), never))
    tried.supervisor.start()
    tried.until("restarting")
    tried.now.at = 1.0
    tried.supervisor.step()
    tried.until("restarting")
    text = tried.where.log("one").read_text()
    assert (text.count("one starts ---"), text.count("hello"), text.count("exited with code 0")) == (2, 2, 2)


def test_nobody_but_the_user_may_read_the_logs(stage):
    tried = stage(ChildCommand("one", python("print('hello')"), never))
    before = os.umask(0o022)
    try:
        tried.supervisor.start()
        tried.until("restarting")
        log = tried.where.log("one")
        assert log_file.rotate(log, largest=1) is True
    finally:
        os.umask(before)
    logs = list(log.parent.iterdir())
    assert {file.name for file in logs} >= {"one.log", "one.log.1"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in logs} == {0o600}


# The process that supervises, alone and against others.

SUPERVISES = """
import sys, time
from pathlib import Path
from headrace.processes import state_folder
from headrace.supervisor import up
from headrace.supervisor.child import ChildCommand
from headrace.processes.signals import Signals
from headrace.supervisor.supervisor import Supervisor

where = state_folder.StateFolder(Path(sys.argv[1]))
is_ready = {} if sys.argv[3] == "ready" else None
child = ChildCommand("one", [sys.executable, "-S", "-c", sys.argv[2]], lambda *_: is_ready)
say = lambda line: print(line, flush=True)
with state_folder.locked(where), Signals() as signals:
    up.keep(Supervisor([child], where, say=say), signals, say=say, watch=lambda _: None, began=time.monotonic())
sys.exit(130 if signals.interrupted else 0)
"""


@pytest.fixture
def supervising(where) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(child: str, state: str = "ready") -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", SUPERVISES, str(where.data), child, state]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        until(lambda: (state_folder.read_status(where) or {}).get("state") == state)
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.wait()
    process_identity.end(state_folder.recorded(where), grace=0.1)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 0)])
def test_a_signal_ends_everything_in_order(supervising, where, number, code):
    supervisor = supervising(SLEEPS)
    children = state_folder.recorded(where)
    assert len(children) == 1
    supervisor.send_signal(number)
    assert supervisor.wait(10) == code
    assert not any(process_identity.alive(identity) for identity in children)
    assert state_folder.holder(where) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_killed_supervisor_takes_its_children_with_it(supervising, where):
    supervisor = supervising(SLEEPS)
    children = state_folder.recorded(where)
    supervisor.kill()
    assert process_identity.gone(children, within=10)


def test_a_child_that_outlives_a_killed_supervisor_is_ended_by_down(supervising, where):
    supervisor = supervising(STUBBORN)
    until(lambda: log_file.last_lines(where.log("one"), 1) == ["up"])
    supervisor.kill()
    supervisor.wait()
    assert len(state_folder.recorded(where)) == 1
    assert process_identity.end(state_folder.recorded(where), grace=0.1) == 1
    assert state_folder.recorded(where) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment of a process")
def test_sigterm_while_a_child_is_starting_ends_everything(supervising, where):
    supervisor = supervising(SLEEPS, "starting")
    (child,) = state_folder.recorded(where)
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(20) == 0
    assert not process_identity.alive(child)
    assert (state_folder.read_status(where) or {})["state"] == "stopped"


def test_a_child_whose_pid_was_not_written_before_the_supervisor_was_killed_is_ended_by_the_next(where):
    running = start_child(ChildCommand("one", python(SLEEPS), at_once), where)
    try:
        state_folder.write_status(where, {"state": "starting", "processes": {"one": {"state": "waiting", "pid": None}}})
        assert state_folder.recorded(where) == []
        assert state_folder.end_left(where, grace=5) == 1
        collected(running)
    finally:
        running.kill()


def test_what_the_child_of_a_killed_supervisor_started_is_ended_by_down(supervising, where):
    inner = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPS}"
    starts = (
        f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-S', '-c', {inner!r}], start_new_session=True)"
    )
    supervisor = supervising(f"{starts}; print(p.pid, flush=True); {SLEEPS}")
    until(lambda: [line for line in log_file.last_lines(where.log("one"), 1) if line.isdigit()])
    identity = process_identity.identify(int(log_file.last_lines(where.log("one"), 1)[0]))
    assert identity is not None
    supervisor.kill()
    supervisor.wait()
    assert process_identity.gone(state_folder.recorded(where), within=10)
    assert process_identity.alive(identity)
    assert up.down(where) == 1
    assert not process_identity.alive(identity)


def test_processes_of_another_project_are_left_alone(where, tmp_path):
    other = subprocess.Popen(python(SLEEPS), env={state_folder.MARK: str(tmp_path / "other")})
    try:
        until(lambda: process_identity.marked(state_folder.MARK, str(tmp_path / "other")))
        assert up.down(where) == 0
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_down_ends_a_running_supervisor_and_then_finds_nothing(supervising, where):
    supervisor = supervising(SLEEPS)
    assert up.down(where) == 2
    assert supervisor.wait(10) == 0
    assert up.down(where) == 0


def test_a_second_supervisor_is_refused_with_the_pid_of_the_first(supervising, where):
    supervisor = supervising(SLEEPS)
    with pytest.raises(ProjectError) as caught, state_folder.locked(where):
        pass
    assert (caught.value.code, caught.value.got) == ("already-running", f"pid {supervisor.pid}")
    assert state_folder.holder(where) == process_identity.identify(supervisor.pid)


def test_the_lock_of_a_killed_supervisor_is_free(supervising, where):
    supervisor = supervising(SLEEPS)
    supervisor.kill()
    supervisor.wait()
    assert state_folder.holder(where) is None
    with state_folder.locked(where):
        assert state_folder.holder(where) == process_identity.identify(os.getpid())


def test_the_next_supervisor_after_a_killed_one_says_that_its_children_are_starting(supervising, where):
    supervising(SLEEPS).kill()
    (left,) = (state_folder.read_status(where) or {})["processes"].values()
    assert left["state"] == "ready", "the killed one wrote nothing more"
    supervising(SLEEPS, "starting")
    (now,) = (state_folder.read_status(where) or {})["processes"].values()
    assert (now["state"], now["pid"] != left["pid"]) == ("starting", True)


def test_a_signal_is_sent_to_no_process_but_the_one_recorded(where):
    me = process_identity.identify(os.getpid())
    assert me is not None
    later = Identity(me.pid, "another start", me.command)
    other = Identity(me.pid, me.start, "another command")
    assert (process_identity.send(later, signal.SIGKILL), process_identity.send(other, signal.SIGKILL)) == (
        False,
        False,
    )
    state_folder.write_status(where, {"processes": {"a": later._asdict(), "b": other._asdict(), "c": {"pid": me.pid}}})
    assert state_folder.recorded(where) == []
    state_folder.write_status(where, {"processes": {"a": me._asdict()}})
    assert state_folder.recorded(where) == [me]


def test_an_exited_child_that_nobody_collected_is_not_alive():
    child = subprocess.Popen(python("pass"))
    until(lambda: process_identity.identify(child.pid) is None)
    child.wait()


@pytest.mark.parametrize(
    ("state", "command", "known"), [("S", b"a\0b\0", True), ("S", b"", False), ("Z", b"a\0", False)]
)
def test_a_process_that_is_not_yet_or_no_longer_its_command_has_no_identity(
    tmp_path, monkeypatch, state, command, known
):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(f"7 (odd ) name) {state} " + " ".join(map(str, range(4, 50))))
    (tmp_path / "7" / "status").write_text("")
    (tmp_path / "7" / "cmdline").write_bytes(command)
    (tmp_path / "stat").write_text("btime 1000\n")
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    start = f"{22 / os.sysconf('SC_CLK_TCK'):.2f}"
    assert process_identity.identify(7) == (Identity(7, start, "a b") if known else None)


def test_an_identity_stays_when_the_clock_is_set_and_a_pid_that_nobody_has_has_none(monkeypatch):
    me, machine = process_identity.identify(os.getpid()), psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: machine + 3600)
    assert me is not None
    assert process_identity.identify(os.getpid()) == me
    assert process_identity.identify(2**22 + 1) is None


def test_a_torn_status_file_is_no_status(where):
    state_folder.write_status(where, {"state": "ready"})
    assert (state_folder.read_status(where) or {})["state"] == "ready"
    where.status.write_text(where.status.read_text()[:10])
    assert state_folder.read_status(where) is None
    assert state_folder.recorded(where) == []


def test_a_signal_ends_a_wait_at_once_and_the_handlers_come_back():
    before = signal.getsignal(signal.SIGTERM)
    with Signals() as signals:
        assert signals.wait(0) is False
        os.kill(os.getpid(), signal.SIGINT)
        began = time.monotonic()
        assert signals.wait(60) is True
        assert (time.monotonic() - began < 30, signals.interrupted) == (True, True)
    assert signal.getsignal(signal.SIGTERM) is before


# When to restart, as numbers.


@given(st.lists(st.floats(0.1, 25), min_size=5, max_size=20))
def test_five_exits_within_two_minutes_are_given_up(lives):
    backoff, at, delays = Backoff(), 0.0, []
    for life in lives:
        at += life
        delays.append(backoff.exited(at=at, healthy=0))
        if delays[-1] is None:
            break
        at += delays[-1]
    assert delays[:4] == [1, 2, 4, 8]
    assert delays[4:] == [None]


def test_delays_double_to_half_a_minute():
    backoff = Backoff()
    assert [backoff.exited(at=1_000.0 * n, healthy=0) for n in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_minute_of_health_starts_the_delays_again():
    backoff = Backoff()
    assert [backoff.exited(at=at, healthy=healthy) for at, healthy in ((0, 0), (50, 0), (200, 60))] == [1, 2, 1]
    assert backoff.exited(at=400, healthy=59.9) == 2


# Log files.


def test_a_large_log_is_put_aside_and_writing_goes_on(tmp_path):
    log = tmp_path / "a.log"
    with log.open("a") as writer:
        for number in range(4):
            writer.write(f"{number}" * 100)
            writer.flush()
            assert log_file.rotate(log, largest=50) is True
        writer.write("end")
    assert log.read_text() == "end"
    assert [(tmp_path / f"a.log.{number}").read_text()[:1] for number in (1, 2)] == ["3", "2"]
    assert not (tmp_path / "a.log.3").exists()
    assert log_file.rotate(log, largest=50) is False
    assert log_file.rotate(tmp_path / "none.log") is False


def test_following_gives_whole_lines_of_several_files_and_survives_an_emptied_one(tmp_path):
    files = {"a": tmp_path / "a", "b": tmp_path / "b"}
    files["a"].write_text("old\n")
    steps: Iterator[Callable[[], object]] = iter(
        [
            lambda: files["a"].write_text("old\nha"),
            lambda: (files["a"].write_text("old\nhalf\n"), files["b"].write_text("first\n")),
            lambda: files["a"].write_text("new\n"),
        ]
    )

    def pause() -> bool:
        step = next(steps, None)
        if step is not None:
            step()
        return step is None

    assert list(log_file.follow(files, pause)) == [("a", "half"), ("b", "first"), ("a", "new")]


def test_the_last_lines_of_a_file_are_those_at_its_end(tmp_path):
    (tmp_path / "a").write_text("".join(f"{number}\n" for number in range(100_000)))
    assert log_file.last_lines(tmp_path / "a", 2) == ["99998", "99999"]
    assert log_file.last_lines(tmp_path / "a", 0) == []
    assert log_file.last_lines(tmp_path / "none", 2) == []


# What the children of a project are.


def test_a_port_that_is_taken_is_refused_before_anything_starts():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            stack.refuse_taken("127.0.0.1", port)
        assert (caught.value.code, caught.value.got) == ("port-taken", f"127.0.0.1:{port}")
    stack.refuse_taken("127.0.0.1", port)


def test_a_host_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="not known"):
        stack.refuse_taken("no-such-host.invalid", 80)


def test_the_pipeline_is_ready_when_it_has_spoken_since_its_start():
    log = MemoryLog(clock=FakeClock(5_000))
    log.create_topic("status", compacted=True)
    ready = stack.told_ready(log, "status", "pipeline")
    assert ready(7, 0) is None
    log.append("status", b"{}", key=b"serve")
    assert ready(7, 0) is None
    log.append("status", b"{}", key=b"pipeline")
    assert ready(7, 5_000) is None
    assert ready(7, 4_999) == {}


def test_a_spark_process_is_ready_when_its_first_component_takes_input(tmp_path):
    file = tmp_path / "spark.json"
    ready, components = stack.components_ready(file), stack.components(file)

    def write(pid, *, pipeline):
        states = {"pipeline": {"state": "running", "ready": pipeline}, "archive": {"state": "hung", "ready": False}}
        file.write_text(json.dumps({"pid": pid, "components": states}))

    assert ready(7, 0) is None
    write(7, pipeline=False)
    assert ready(7, 0) is None
    assert (components(7, 0) or {})["components"]["archive"]["state"] == "hung"
    write(8, pipeline=True)
    assert ready(7, 0) is None, "that is another process"
    write(7, pipeline=True)
    assert ready(7, 0) == components(7, 0)


def test_serving_is_ready_when_its_own_process_answers_so(tmp_path):
    server = "import http.server as h\n" + (
        "class Answer(h.BaseHTTPRequestHandler):\n"
        "    def do_GET(self): self.send_response(200 if self.path == '/ready' else 404); self.end_headers()\n"
        "listener = h.HTTPServer(('127.0.0.1', 0), Answer)\nprint(listener.server_port, flush=True)\n"
        "listener.serve_forever()"
    )
    child = subprocess.Popen(python(server), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert child.stdout is not None
        port, file = int(child.stdout.readline()), tmp_path / "serve.json"
        ready = stack.serve_ready(file)
        assert ready(7, 0) is None
        file.write_text(json.dumps({"pid": 8, "host": "0.0.0.0", "port": port}))
        assert ready(7, 0) is None
        file.write_text(json.dumps({"pid": 7, "host": "0.0.0.0", "port": port}))
        assert ready(7, 0) == {"url": f"http://127.0.0.1:{port}", "port": port}
        assert stack.answers(f"http://127.0.0.1:{port}/health") is False
    finally:
        child.kill()
        child.communicate()
    assert ready(7, 0) is None
