"""A local service, whatever it is: started, found, killed, stopped, and never mistaken for another process."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import time

import pytest

from headrace.errors import HeadraceError, MachineError
from headrace.processes import service
from headrace.processes.ports import free_ports
from headrace.processes.service import Service, claimed, expected, launch, port_for, running, stop

LISTENS = """
import socket, sys, time
held = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
time.sleep(600)
"""
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)" + LISTENS
FAILS = "print('ERROR out of luck'); print('goodbye'); raise SystemExit(3)"


@pytest.fixture
def made(tmp_path):
    found = Service(tmp_path / "toy", "Toy", "toy")
    yield found
    stop(found, grace=0.1)


def start(made, program=LISTENS, port=None):
    with claimed(made) as lock:
        listen = port_for(made, port)
        command = [sys.executable, "-S", "-c", program, str(listen)]
        return launch(made, lock, command, port=listen, ready=reachable)


def reachable(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def kill(found):
    os.kill(found.pid, signal.SIGKILL)
    os.waitpid(found.pid, 0)


def test_a_service_is_found_by_its_folder_until_it_is_stopped(made):
    assert running(made) is None
    assert stop(made) is False
    found = start(made)
    assert running(made) == found
    assert reachable(found.address)
    assert stop(made) is True
    assert running(made) is None
    assert not reachable(found.address)


def test_it_comes_back_where_it_was_and_elsewhere_when_that_is_taken(made):
    first = start(made)
    stop(made)
    assert start(made).address == first.address
    stop(made)
    host, _, port = first.address.rpartition(":")
    with socket.create_server((host, int(port))):
        assert start(made).address != first.address


def test_a_port_that_is_asked_for_is_taken_or_refused(made):
    (port,) = free_ports(1)
    assert start(made, port=port).address == f"127.0.0.1:{port}"
    with pytest.raises(MachineError) as refused:
        port_for(made, port)
    assert (refused.value.code, f"127.0.0.1:{port}" in str(refused.value.got)) == ("port-taken", True)


def test_one_that_does_not_go_when_asked_is_killed(made):
    found = start(made, STUBBORN)
    began = time.monotonic()
    assert stop(made, grace=0.3) is True
    assert time.monotonic() - began >= 0.3
    assert not reachable(found.address)


def test_one_that_was_killed_is_expected_back_and_one_that_was_stopped_is_not(made):
    assert expected(made) is None
    found = start(made)
    kill(found)
    assert (running(made), expected(made)) == (None, found.address)
    start(made)
    stop(made)
    assert expected(made) is None


def test_one_that_was_killed_and_is_then_stopped_is_not_expected_back(made):
    kill(start(made))
    assert stop(made) is False
    assert expected(made) is None


def test_two_that_look_at_once_do_not_take_each_other_for_the_service(made):
    kill(start(made))
    with made.lock.open("rb") as other:
        fcntl.flock(other.fileno(), fcntl.LOCK_SH)
        assert running(made) is None


def test_one_that_runs_is_not_started_twice(made):
    found = start(made)
    with pytest.raises(HeadraceError) as refused:
        start(made)
    assert (refused.value.code, refused.value.got) == ("already-running", f"{found.address}, pid {found.pid}")
    assert "headrace toy down" in str(refused.value.hint)
    assert running(made) == found


def test_while_it_is_being_started_nobody_else_starts_it_or_takes_the_old_pid_for_its_own(made, monkeypatch):
    monkeypatch.setattr(service, "SETTLED", 0.05)
    kill(start(made))
    with claimed(made):
        assert running(made) is None
        assert stop(made) is False
        with pytest.raises(HeadraceError) as refused, claimed(made):
            pass
        assert (refused.value.code, refused.value.got) == ("already-running", "being started")


def test_a_start_that_fails_says_why_and_leaves_all_as_it_was(made):
    with pytest.raises(MachineError) as failed:
        start(made, FAILS)
    assert failed.value.code == "start-failed"
    assert failed.value.got == "exit code 3: 'ERROR out of luck'"
    assert str(made.log) in str(failed.value.hint)
    assert (running(made), expected(made)) == (None, None)

    found = start(made)
    kill(found)
    with pytest.raises(MachineError):
        start(made, FAILS)
    assert (running(made), expected(made)) == (None, found.address)


def test_what_it_said_before_it_died_is_kept_beside_what_it_says_now(made):
    kill(start(made, LISTENS.replace("listening", "the first one")))
    start(made, LISTENS.replace("listening", "the second one"))
    assert (made.log_before.read_text(), made.log.read_text()) == ("the first one\n", "the second one\n")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"address": 7, "pid": 1, "stopped": false}', '{"address": "x"}'])
def test_a_file_that_cannot_be_read_is_no_service_and_no_obstacle(made, text):
    made.folder.mkdir()
    made.file.write_text(text)
    assert (running(made), expected(made)) == (None, None)
    found = start(made)
    assert running(made) == found
