"""A child process: what it started goes with it, in whatever session, and nobody else is signalled."""

from __future__ import annotations

import subprocess
import sys

from headrace.processes import process_identity
from headrace.processes.child import ChildProcess

SLEEPS = "import time; time.sleep(600)"
STARTS = (
    "import subprocess, sys\n"
    f"command = [sys.executable, '-S', '-c', {SLEEPS!r}]\n"
    "p = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)\n"
    "print(p.pid, flush=True)\n"
)


def python(text: str) -> list[str]:
    return [sys.executable, "-S", "-c", text]


def test_a_killed_child_takes_what_it_started_in_another_session_with_it():
    with ChildProcess(python(STARTS + SLEEPS), output=subprocess.PIPE) as child:
        inner = process_identity.identify(int(child.stdout.readline()))
        assert inner is not None
        child.kill()
        assert child.wait(20) == -9
        assert process_identity.gone([inner], within=10)


def test_a_block_leaves_no_process_behind():
    with ChildProcess(python(SLEEPS)) as child:
        identity = child.identity
        assert child.wait(0) is None
    assert not process_identity.alive(identity)
    assert child.code() == -9


def test_a_child_that_was_collected_is_signalled_no_more(monkeypatch):
    with ChildProcess(python("pass")) as child:
        assert child.wait(20) == 0
        monkeypatch.setattr("os.kill", lambda *_: 1 / 0)
        monkeypatch.setattr("os.killpg", lambda *_: 1 / 0)
        child.ask_to_end()
        child.kill()


def test_a_child_that_does_not_end_in_its_time_is_killed():
    ignores = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\n"
    with ChildProcess(python(ignores + SLEEPS), output=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"up\n"
        child.end(0.05)
        assert child.code() == -9
