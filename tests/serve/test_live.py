"""A real process and callers that are slow, idle, too many or too much; and how it ends."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import time

import pytest

from tests.serve.process import PATIENCE, answer, ended, served, until

pytestmark = pytest.mark.xdist_group("live")

HEAD = "POST /v1/features HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n"
BODY = b'{"view": "users", "keys": ["ann", "bob"]}'


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    with served(tmp_path_factory.mktemp("shop"), 'timeout = "1s"\nidle = "1s"\nmax_body = 100_000\n') as process:
        yield process


def drip(where, data, pause=0.05):
    """Send a byte at a time until the server has had enough."""
    with contextlib.suppress(ConnectionError):
        for place in range(len(data)):
            where.sendall(data[place : place + 1])
            time.sleep(pause)


def test_a_body_that_comes_a_byte_at_a_time_is_given_up_and_nobody_waits_for_it(impatient):
    with impatient.connect() as where:
        where.sendall(HEAD.format(100).encode())
        began = time.monotonic()
        drip(where, b" " * 10)
        assert impatient.ask("/v1/features/users/ann")[0] == 200
        drip(where, b" " * 30)
        status, said = answer(where)
        assert (status, said["error"]["code"]) == (408, "too-slow")
        assert 0.9 < time.monotonic() - began < 10
        assert ended(where)


def test_events_that_come_a_byte_at_a_time_are_given_up_and_nothing_is_appended(impatient):
    with impatient.connect() as where:
        where.sendall(HEAD.format(100).replace("features", "events/clicks").encode())
        drip(where, b"{" * 30)
        assert answer(where)[0] == 408


def test_a_head_that_comes_a_byte_at_a_time_is_given_up(impatient):
    with impatient.connect() as where:
        began = time.monotonic()
        drip(where, b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 60)
        assert ended(where)
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("first", [b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_a_connection_that_does_nothing_is_ended(impatient, first):
    with impatient.connect() as where:
        where.sendall(first)
        began = time.monotonic()
        assert ended(where)
        assert 0.5 < time.monotonic() - began < 10


@pytest.mark.parametrize("length", ["Content-Length: 100000000", "Transfer-Encoding: chunked"])
def test_a_body_over_the_limit_is_cut_off_early(impatient, length):
    sent = 0
    with impatient.connect() as where:
        where.sendall(f"POST /v1/features HTTP/1.1\r\nHost: localhost\r\n{length}\r\n\r\n".encode())
        piece = b" " * 50_000 if "Length" in length else b"c350\r\n" + b" " * 50_000 + b"\r\n"
        with contextlib.suppress(ConnectionError):
            for _ in range(2_000):
                where.sendall(piece)
                sent += len(piece)
        with contextlib.suppress(ConnectionError):  # what it said may be lost with what it did not read
            assert answer(where)[0] == 413
    assert sent < 50_000_000, "the connection was ended long before all was sent"


@pytest.mark.parametrize("sent", [b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"])
def test_what_is_no_http_is_refused_in_the_one_shape(impatient, sent):
    with impatient.connect() as where:
        where.sendall(sent)
        status, said = answer(where)
        assert (status, said["error"]["code"]) == (400, "bad-request")
        assert ended(where)


def test_a_caller_that_goes_away_half_way_is_no_error(impatient):
    with impatient.connect() as where:
        where.sendall(HEAD.format(100).encode() + b"{")
        until(lambda: "headrace_http_in_flight 2" in told(impatient))
    until(lambda: "headrace_http_in_flight 1" in told(impatient))
    assert "Traceback" not in (impatient.folder / "said").read_text()


def head_and_body(file):
    """The next answer on a connection: its head without the date, and its JSON without what time changes."""
    head = iter(lambda: file.readline().strip(), b"")
    lines = sorted(line for line in head if not line.startswith(b"date:"))
    length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length"))
    said = json.loads(file.read(length))
    return [line for line in lines if b"length" not in line], said | dict.fromkeys(("at", "freshness_ms"))


def test_a_key_is_answered_alike_at_once_and_in_a_task(impatient):
    with impatient.connect() as where, where.makefile("rb") as file:
        answers = []
        for path, more in [("ann", ""), ("ann?stale=flag", ""), ("a%6En", ""), ("ann", "Content-Length: 0\r\n")]:
            where.sendall(f"GET /v1/features/users/{path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode())
            answers.append(head_and_body(file))
        assert answers[0][1]["key"] == {"user": "ann"}
        assert answers == [answers[0]] * 4


def test_requests_that_come_together_are_answered_in_their_order(impatient):
    with impatient.connect() as where, where.makefile("rb") as file:
        paths = [f"/v1/features/users/u{n}{'?stale=flag' if n % 3 == 1 else ''}" for n in range(20)]
        where.sendall(b"".join(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths))
        found = [head_and_body(file)[1]["key"]["user"] for _ in paths]
    assert found == [f"u{n}" for n in range(20)]


def test_every_answer_is_counted_however_it_is_given(impatient):
    def answered():
        lines = [line for line in told(impatient).splitlines() if line.startswith("headrace_http_requests_total")]
        return sum(float(line.rpartition(" ")[2]) for line in lines if '"/v1/features/{name}",status="200"' in line)

    before = answered()
    with impatient.connect() as where:
        for path in ("ann", "ann?stale=flag"):
            assert impatient.ask(f"/v1/features/users/{path}", over=where)[0] == 200
    assert answered() == before + 2


def told(process):
    """The metrics, as text."""
    with process.connect() as where:
        where.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: where.recv(65_536), b"")).decode()


def files(count):
    """Let this process have so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


def test_a_thousand_idle_connections_keep_nobody_waiting(tmp_path):
    files(1_500)
    with served(tmp_path) as process, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(process.connect()) for _ in range(1_000)]
        for where in idle[:500]:
            where.sendall(b"GET /v1/features/users/ann HTTP/1.1\r\nHost: localhost\r\n")  # half a head
        began = time.monotonic()
        assert process.ask("/v1/features/users/ann")[0] == 200
        assert time.monotonic() - began < 5
        until(lambda: "headrace_connections 1001" in told(process))
        idle[0].sendall(b"\r\n")
        assert answer(idle[0])[0] == 200, "an idle one is still good"


def test_one_connection_too_many_ends_the_one_that_has_been_idle_longest(tmp_path):
    with served(tmp_path, "max_connections = 20\n") as process, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(process.connect()) for _ in range(30)]
        assert process.ask("/v1/features/users/ann")[0] == 200
        for where in idle[:11]:
            assert ended(where)
        for where in idle[11:]:
            where.settimeout(0.01)
            with pytest.raises(TimeoutError):
                where.recv(1)


# the end


def test_it_ends_in_order_what_is_under_way_is_answered_and_nothing_new_is_taken(tmp_path):
    with served(tmp_path, 'drain = "20s"\n') as process, process.connect() as busy, process.connect() as kept:
        assert process.ask("/ready", over=kept)[0] == 200
        busy.sendall(HEAD.format(len(BODY)).encode() + BODY[:10])
        until(lambda: "headrace_http_in_flight 2" in told(process))
        process.child.terminate()
        until(lambda: _refused(process))
        status, said = process.ask("/ready", over=kept)
        assert (status, said["ready"], said["draining"]) == (503, False, True)
        busy.sendall(BODY[10:])
        status, said = answer(busy)
        assert (status, len(said["answers"])) == (200, 2)
        assert process.child.wait(PATIENCE) == 0
        assert not (tmp_path / ".headrace" / "run" / "serve.json").exists()


def _refused(process):
    try:
        process.connect().close()
    except ConnectionRefusedError:
        return True
    return False


def test_what_does_not_end_in_its_time_is_cut_off_and_it_ends_all_the_same(tmp_path):
    with served(tmp_path, 'drain = "500ms"\n') as process, process.connect() as busy:
        busy.sendall(HEAD.format(len(BODY)).encode())
        until(lambda: "headrace_http_in_flight 2" in told(process))
        began = time.monotonic()
        assert process.end() == 0
        assert time.monotonic() - began < 15
        assert ended(busy)


def test_samples_of_what_was_served_are_in_the_log(tmp_path):
    from headrace.log import EmbeddedLog

    with served(tmp_path, "sample = 1.0\n") as process:
        process.ask("/v1/features/users/ann")
        assert process.end() == 0
    with EmbeddedLog(tmp_path / ".headrace" / "log") as log:
        (record,) = log.read("served.users", 0, 0)
    sample = json.loads(record.value)
    assert (sample["key"], sample["run"], sample["positions"]) == ({"user": "ann"}, "1", {"0": 1})


def test_a_caller_that_does_not_read_is_given_up(monkeypatch):
    from headrace.config.serve_settings import ServeSettings
    from tests.client.conftest import port_of, running
    from tests.serve.conftest import World

    monkeypatch.setattr("headrace.serve.connections.UNREAD", 0.2)
    world = World(ServeSettings(max_body=50_000_000))
    # More than the system itself would keep for somebody who may read it one day.
    asked = json.dumps({"view": "users", "keys": ["x" * 20_000] * 1_000}).encode()
    with running(world) as url, socket.socket() as where:
        where.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        where.connect(("127.0.0.1", port_of(url)))
        where.sendall(HEAD.format(len(asked)).encode() + asked)
        metrics, began = world.serving.standing.metrics, time.monotonic()
        until(lambda: metrics.connections == 1)
        until(lambda: metrics.connections == 0)
        assert time.monotonic() - began < world.serving.terms.settings.idle


def test_what_a_caller_writes_is_one_line_of_the_log_that_no_terminal_obeys(impatient):
    path = "/v1/features/users/%1b%5b2J%0aforged%c2%9b?at=2026-01-01T00:00:00Z"
    assert impatient.ask(path)[0] == 503
    file = impatient.folder / "said"
    said = until(lambda: "forged" in (text := file.read_text()) and text)
    assert "GET /v1/features/users/\\x1b[2Jforged\\x9b: The lake" in said
    assert said.replace("\n", "").isprintable()


def test_nobody_else_may_read_what_a_process_writes(impatient):
    files = [file for file in (impatient.folder / ".headrace").rglob("*") if not file.is_symlink()]
    assert {"serve.json", "data.mdb"} <= {file.name for file in files}
    assert [file for file in files if file.stat().st_mode & 0o077] == []
