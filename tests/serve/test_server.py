"""The process: a real socket, a real signal, real files."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from headrace.errors import ConfigError
from headrace.log import EmbeddedLog, Message
from headrace.serve.http_server import serve
from headrace.serve.server import announce, listening
from headrace.store import MemoryStore
from headrace.tiles.changelog import ProgressRow
from headrace.tiles.changelog_format import encode
from tests.serve.conftest import NAMES, World, plan
from tests.serve.serving import Serving

PROJECT = """
import headrace as hr

clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
"""
RUN = """
import signal, sys, threading
from pathlib import Path
from headrace import project
from headrace.serve import server
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
server.main(project.load(Path(sys.argv[1])), stop, port=0)
"""
PATIENCE = 60


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "headrace.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "features.py").write_text(PROJECT)
    return tmp_path


def asked(url, body=None):
    with urllib.request.urlopen(urllib.request.Request(url, data=body), timeout=10) as answer:
        return json.loads(answer.read())


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError):
            if found := condition():
                return found
        threading.Event().wait(0.02)
    raise TimeoutError


def test_it_serves_what_comes_through_the_log_and_ends_in_order_on_sigterm(folder):
    file = folder / ".headrace" / "run" / "serve.json"
    process = subprocess.Popen([sys.executable, "-c", RUN, str(folder)], stderr=subprocess.PIPE, text=True)
    try:
        told = until(lambda: json.loads(file.read_text()))
        assert told["pid"] == process.pid
        url = f"http://{told['host']}:{told['port']}"
        event = b'{"user": "ann", "at": "2026-01-01T00:00:00Z"}'
        assert asked(f"{url}/v1/events/clicks", event)["accepted"] == 1
        _be_the_pipeline(folder)
        until(lambda: asked(f"{url}/ready")["ready"])
        assert asked(f"{url}/v1/features/users/ann")["as_of"] == "2026-01-01T00:00:00Z"
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE)
        assert (process.returncode, said) == (0, "")
        assert time.monotonic() - started < 10
        assert not file.exists()
    finally:
        process.kill()
        process.communicate()


def _be_the_pipeline(folder: Path) -> None:
    from headrace import project

    (tiles,) = project.load(folder).plan().tile_sets
    with EmbeddedLog(folder / ".headrace" / "log") as log:
        key, value = encode(ProgressRow(tiles.fingerprint, "1", {0: 1}, 1_767_225_600_000_000))
        log.append_batch("changelog.clicks.by_user", [Message(value, key)])
        log.append("headrace.status", b'{"component":"pipeline"}', key=b"pipeline")


def test_a_thread_that_fails_ends_the_server_with_its_error():
    world, stop = World(), threading.Event()

    class Broken(MemoryStore):
        def apply(self, rows, topic, positions):
            raise OSError("no store")

    serving = Serving(plan, world.log, Broken(), NAMES, world.clock)
    world.pipeline()
    with listening("127.0.0.1", 0) as (listener,), pytest.raises(OSError, match="no store"):
        serve(listener, serving, stop, lambda: None)


def test_it_stops_when_told_and_says_when_it_has_started():
    world, stop = World(), threading.Event()
    handlers = []

    def started():
        handlers.append(signal.getsignal(signal.SIGTERM))
        stop.set()

    before = signal.getsignal(signal.SIGTERM)
    with listening("127.0.0.1", 0) as (listener,):
        serve(listener, world.serving, stop, started)
    assert handlers == [before], "signals are the caller's business"


def test_the_second_half_of_an_answer_does_not_wait_for_the_first_to_be_acknowledged():
    with (
        listening("127.0.0.1", 0) as (listener,),
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_refused_with_a_way_out():
    with listening("127.0.0.1", 0) as (listener,):
        port = listener.getsockname()[1]
        with pytest.raises(ConfigError, match="taken") as refused, listening("127.0.0.1", port):
            pass
    assert (refused.value.code, "--port" in str(refused.value.hint)) == ("port-taken", True)


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(ConfigError, match="cannot be used"), listening("192.0.2.1", 0):
        pass


def test_where_it_listens_is_written_whole(tmp_path):
    file = tmp_path / "run" / "serve.json"
    with listening("127.0.0.1", 0) as (listener,):
        announce(file, listener)
        port = listener.getsockname()[1]
    assert json.loads(file.read_text()) == {"host": "127.0.0.1", "port": port, "pid": os.getpid()}
    assert list(file.parent.iterdir()) == [file]
