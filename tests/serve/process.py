"""A real serving process over real files, for tests that need sockets, signals and slow callers."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from headrace.log import EmbeddedLog, Message
from headrace.tiles.changelog import ProgressRow
from headrace.tiles.changelog_format import encode

PATIENCE = 60
PROJECT = """
import headrace as hr

clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
"""


class Process:
    """One that runs: where it listens, and a way to talk to it byte by byte."""

    def __init__(self, child: subprocess.Popen[bytes], folder: Path, port: int) -> None:
        self.child, self.folder, self.port = child, folder, port

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def ask(self, path: str, *, over: socket.socket | None = None, more: str = "") -> tuple[int, Any]:
        """Status and JSON of a GET, over a connection of its own unless one is given."""
        with contextlib.ExitStack() as stack:
            where = over or stack.enter_context(self.connect())
            end = "" if over else "Connection: close\r\n"
            where.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{end}{more}\r\n".encode())
            return answer(where)

    def end(self) -> int:
        """Ask it to end; its exit code."""
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(PATIENCE)


def answer(where: socket.socket) -> tuple[int, Any]:
    """The next answer on a connection."""
    file = where.makefile("rb")
    status = int(file.readline().split()[1])
    headers = {}
    while line := file.readline().strip():
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    return status, json.loads(file.read(int(headers[b"content-length"])) or b"null")


def ended(where: socket.socket) -> bool:
    """Whether the server has ended a connection; it is waited for."""
    try:
        while where.recv(65_536):
            pass
    except ConnectionError:
        return True
    return True


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError, IndexError):
            if found := condition():
                return found
        time.sleep(0.02)
    raise TimeoutError


@contextlib.contextmanager
def served(folder: Path, settings: str = "", *, ready: bool = True, features: str = PROJECT) -> Iterator[Process]:
    """`headrace run serve` over a project whose pipeline has just spoken."""
    write_project(folder, settings, features)
    with launched(folder) as process:
        be_the_pipeline(folder)
        if ready:
            until(lambda: process.ask("/ready")[0] == 200)
        yield process


def write_project(folder: Path, settings: str = "", features: str = PROJECT) -> None:
    """The files of a project."""
    (folder / "headrace.toml").write_text(f'[project]\nname = "shop"\n[serve]\n{settings}')
    (folder / "features.py").write_text(features)


@contextlib.contextmanager
def launched(folder: Path) -> Iterator[Process]:
    """`headrace run serve` over a project, as soon as it has said where it listens."""
    command = [sys.executable, "-m", "headrace.cli.main", "run", "serve", "--port", "0", "--project", str(folder)]
    with open(folder / "said", "wb") as said:
        child = subprocess.Popen(command, stdout=said, stderr=said)
    try:
        file = folder / ".headrace" / "run" / "serve.json"
        port = until(lambda: json.loads(file.read_text())["port"] if child.poll() is None else 1 / 0)
        yield Process(child, folder, port)
    finally:
        child.kill()
        child.wait()


def be_the_pipeline(folder: Path) -> None:
    """Progress, and a word on how it is doing."""
    from headrace import project

    (tiles,) = project.load(folder).plan().tile_sets
    with EmbeddedLog(folder / ".headrace" / "log") as log:
        key, value = encode(ProgressRow(tiles.fingerprint, "1", {0: 1}, 1_767_225_600_000_000))
        log.append_batch("changelog.clicks.by_user", [Message(value, key)])
        log.append("headrace.status", b'{"component":"pipeline"}', key=b"pipeline")
