"""`headrace get --watch` over a real server: what changed, and what happens when the server goes and comes back."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.cli.get import Asking
from headrace.cli.get_watch import follow
from headrace.cli.main import main
from headrace.config import config as configuration
from headrace.errors import HeadraceError, ProjectError
from headrace.processes import process_identity, state_folder
from tests.client.conftest import PATIENCE, port_of, running
from tests.serve.conftest import World

PROJECT = """
import headrace as hr

clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
"""
ENDED = "ended by the test"


def told(clicks, at="2026-01-01T00:00:00Z", stale="false"):
    body = f'{{"features": {{"clicks_1h": {clicks}}}, "at": "{at}", "missing": false, "stale": {stale}}}'
    return body.encode()


def watched(*steps, as_json=False):
    """Follow answers and errors one after the other; the last one ends it."""
    rest = iter([*steps, ProjectError("not-found", ENDED)])

    def read():
        step = next(rest)
        if isinstance(step, HeadraceError):
            raise step
        return step

    with pytest.raises(ProjectError, match=ENDED):
        follow(read, lambda: None, as_json=as_json)


def test_a_line_says_when_what_changed_and_from_what(capsys):
    watched(told(1), told(1), told(2, "2026-01-01T00:00:02Z"), told("2.50"), told("2.50", stale="true"))
    assert capsys.readouterr().out.splitlines() == [
        "2026-01-01T00:00:00Z  clicks_1h 1",
        "2026-01-01T00:00:02Z  clicks_1h 1 -> 2",
        "2026-01-01T00:00:00Z  clicks_1h 2 -> 2.50",
        "2026-01-01T00:00:00Z  stale false -> true",
    ]


def test_features_that_come_and_go_are_said(capsys):
    watched(told(1), told(1).replace(b"clicks_1h", b"clicks_2h"))
    assert capsys.readouterr().out.splitlines()[1] == "2026-01-01T00:00:00Z  clicks_2h (new) 1  clicks_1h (gone)"


def test_a_value_cannot_break_its_line(capsys):
    watched(told(r'"a\nb\u001b[2J"'))
    assert capsys.readouterr().out == "2026-01-01T00:00:00Z  clicks_1h a\\nb\\x1b[2J\n"


def test_as_json_each_change_is_one_object_with_all_digits(capsys):
    watched(told(1), told(1), told("2.50000000000000000001"), as_json=True)
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["changed"] for line in lines] == [["clicks_1h", "missing", "stale"], ["clicks_1h"]]
    assert "2.50000000000000000001" in lines[1]


def test_a_server_that_goes_and_comes_back_is_said_once_each(capsys):
    gone = HeadraceError("no-answer", "Serving did not answer.")
    watched(told(1), gone, gone, HeadraceError("not-running", "Serving does not run."), told(2))
    said = capsys.readouterr()
    assert said.err.splitlines() == ["Serving did not answer. Waiting for it.", "Serving answers again."]
    assert said.out.splitlines()[1:] == ["2026-01-01T00:00:00Z  clicks_1h 1 -> 2"]


def test_the_first_look_must_be_answered():
    with pytest.raises(HeadraceError, match="does not run"):
        follow(_raise, lambda: None, as_json=False)


def _raise() -> bytes:
    raise HeadraceError("not-running", "Serving does not run.")


def test_it_asks_where_the_server_is_now(filled):
    other = World(log=filled.log)
    other.serving.filler.step()
    with running(filled) as first, running(other) as second:
        assert first != second
        addresses = iter([first, first, second])
        with contextlib.closing(Asking(lambda: next(addresses))) as asking:
            clients = [asking.client() for _ in range(3)]
            assert clients[0] is clients[1]
            assert (clients[0].closed, clients[2].url) == (True, second)
            assert json.loads(clients[2].features_json("users", ["ann"]))["features"]["clicks_1h"] == 2


@pytest.mark.parametrize("options", [["--every", "1s"], ["--watch", "--every", "soon"], ["--watch", "--every", "0s"]])
def test_an_interval_that_cannot_be_meant_is_refused(options, capsys):
    assert main(["get", "users", "user=ann", *options]) == 2
    assert "code: bad-usage" in capsys.readouterr().err


# The whole of it: the command in a process of its own, over a real server that is ended and started again.


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "headrace.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "features.py").write_text(PROJECT)
    return tmp_path


@contextlib.contextmanager
def watching(project: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    command = [
        sys.executable,
        "-m",
        "headrace.cli.main",
        "get",
        "users",
        "user=ann",
        "--watch",
        "--every",
        "20ms",
        *more,
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=project, text=True, **pipes) as watch:  # type: ignore[call-overload]
        late = threading.Timer(PATIENCE, watch.kill)  # A line that never comes is an empty one, not a hang.
        late.start()
        try:
            yield watch
        finally:
            late.cancel()
            watch.kill()


def record(project: Path, url: str) -> None:
    """What the supervisor would have written."""
    me = process_identity.identify(os.getpid())
    assert me is not None
    where = state_folder.find_state_folder(configuration.load(project))
    state_folder.write_status(where, {"processes": {"serve": {**me._asdict(), "state": "ready", "url": url}}})


@pytest.mark.xdist_group("live")
def test_a_watch_shows_a_change_survives_a_restart_and_ends_on_ctrl_c(project, filled):
    with contextlib.ExitStack() as servers:
        url = servers.enter_context(running(filled))
        record(project, url)
        with watching(project) as watch:
            first = watch.stdout.readline()
            assert first.startswith("2026-01-01T00:00:00Z  clicks_1h 2  ")
            filled.clock.advance("52m")
            assert "  clicks_1h 2 -> 1  " in watch.stdout.readline()
            servers.close()
            assert watch.stderr.readline() == "Serving did not answer. Waiting for it.\n"
            back = World(log=filled.log)
            back.serving.filler.step()
            back.clock.advance("2h")
            servers.enter_context(running(back, port_of(url)))
            assert watch.stderr.readline() == "Serving answers again.\n"
            assert "  clicks_1h 1 -> 0  " in watch.stdout.readline()
            watch.send_signal(signal.SIGINT)
            assert watch.wait(PATIENCE) == 130
            assert watch.stderr.read().strip() == "Interrupted."
