"""Serving over a real socket in a thread; and servers that misbehave, for faults alone."""

from __future__ import annotations

import contextlib
import http.server
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace.client import RetryClock
from headrace.serve.http_server import serve
from headrace.serve.server import listening
from tests.serve.conftest import World

PATIENCE = 30
GONE = 1  # nobody listens on port 1 of the loopback


@contextlib.contextmanager
def running(world: World, port: int = 0) -> Iterator[str]:
    """The world's serving process, as a thread; its URL."""
    stop, started = threading.Event(), threading.Event()
    with listening("127.0.0.1", port) as (listener,):
        thread = threading.Thread(target=serve, args=(listener, world.serving, stop, started.set), daemon=True)
        thread.start()
        assert started.wait(PATIENCE)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop.set()
            thread.join(PATIENCE)
            assert not thread.is_alive()


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    return found


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def filled(world: World) -> World:
    return fill(world)


def fill(world: World) -> World:
    """Three events of two users, on their way through the log."""
    world.pipeline(
        {"id": "1", "user": "ann", "at": "2025-12-31T23:50:00Z", "price": "1.10", "arrived_at": "2025-12-31T23:50:01Z"},
        {"id": "2", "user": "ann", "at": "2025-12-31T23:55:00Z", "price": "2.25", "arrived_at": "2025-12-31T23:55:01Z"},
        {"id": "3", "user": "a/b c", "at": "2025-12-31T23:58:00Z", "arrived_at": "2025-12-31T23:58:01Z"},
    )
    return world


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that a module's tests only read from."""
    with running(fill(World())) as where:
        yield where


Scripted = tuple[int, dict[str, str], str]


class Script(http.server.ThreadingHTTPServer):
    """Answers with what it is told to, one after the other and the last for ever, and remembers what it was sent."""

    daemon_threads = True

    def __init__(self, *answers: Scripted, tls: ssl.SSLContext | None) -> None:
        self.answers, self.asked, self.connections = list(answers), list[tuple[str, str, dict[str, str], bytes]](), 0
        super().__init__(("127.0.0.1", 0), _Reading)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_port}"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_: object) -> None:
        """A caller that goes away is nothing to talk about."""

    def get_request(self) -> tuple[socket.socket, Any]:
        self.connections += 1
        return super().get_request()


class _Reading(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Script

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked.append((self.command, self.path, dict(self.headers.items()), body))
        status, headers, text = self.server.answers[0] if len(self.server.answers) == 1 else self.server.answers.pop(0)
        self.send_response(status)
        for name, value in {"content-length": str(len(text.encode())), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())
        # What is promised and not sent ends the connection, as does saying so.
        self.close_connection = headers.get("connection") == "close" or "content-length" in headers

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def scripted(*answers: Scripted, tls: ssl.SSLContext | None = None) -> Iterator[Script]:
    with Script(*answers, tls=tls) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(PATIENCE)


@contextlib.contextmanager
def dripping(first: bytes, drop: bytes) -> Iterator[str]:
    """A server that says something and then a little more every few milliseconds, for ever."""
    over = threading.Event()

    def talk(conversation: socket.socket) -> None:
        with conversation, contextlib.suppress(OSError):
            conversation.sendall(first)
            while not over.wait(0.02):
                conversation.sendall(drop)

    def answer() -> None:
        with contextlib.suppress(OSError):
            while not over.is_set():
                conversation, _ = listener.accept()
                threading.Thread(target=talk, args=(conversation,), daemon=True).start()

    with listening("127.0.0.1", 0) as (listener,):
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)


class Calm:
    """Time that passes only when somebody sleeps, and chance that is always the same."""

    def __init__(self, chance: float = 0.5) -> None:
        self.naps: list[float] = []
        self.waiting = RetryClock(lambda: chance, self.naps.append, lambda: sum(self.naps))
