"""Events in over HTTP: batches, compression, limits, and when a producer is asked to come back later."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from contextlib import contextmanager

import pytest

from headrace.config.serve_settings import ServeSettings
from headrace.log import EmbeddedLog, MemoryLog, Message
from headrace.serve import body as bodies
from headrace.serve.http_server import serve
from headrace.serve.limits import Room
from headrace.serve.server import listening
from tests.serve.conftest import NAMES, STREAM, World
from tests.serve.test_app import EVENT, appended, error_of

PATH = "/v1/events/clicks"
LINES = {"content-type": "application/x-ndjson"}
ARRAY = {"content-type": "application/json"}
GZIP = {"content-encoding": "gzip"}


def events(count):
    return [EVENT | {"id": f"c{number}"} for number in range(count)]


def lines(count):
    return "\n".join(json.dumps(event) for event in events(count)).encode()


def small(**limits):
    return World(ServeSettings(**limits))


# batches


def test_an_array_is_many_events_each_as_it_was_written(world):
    texts = [json.dumps(event, indent=1) for event in events(3)]
    answer = world.ask("POST", PATH, content=f"\n[{','.join(texts)}]", headers=ARRAY)
    assert (answer.status_code, answer.json()["accepted"]) == (202, 3)
    assert [record.value.decode() for record in appended(world)] == texts


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[]", "There is no event in the request."),
        (b"[1]", "invalid, the record must be an object"),
        (b"[{]", "The array of events is not JSON."),
        (b"[" * 200_000, "The array of events is not JSON."),
        (b"[" + json.dumps(EVENT).encode() + b", {}]", "invalid, id is required"),
    ],
)
def test_an_array_with_a_mistake_in_it_is_refused_whole(world, body, said):
    answer = world.ask("POST", PATH, content=body, headers=ARRAY)
    assert answer.status_code == 400
    assert said in error_of(answer)["message"]
    assert appended(world) == []


def test_an_array_is_one_event_unless_its_content_type_says_otherwise(world):
    assert world.ask("POST", f"{PATH}?unchecked=1", content=b"[1]").json()["accepted"] == 1


def test_a_request_has_a_largest_number_of_events(world, monkeypatch):
    monkeypatch.setattr(bodies, "MOST_EVENTS", 3)
    assert world.ask("POST", PATH, content=lines(3), headers=LINES).status_code == 202
    answer = world.ask("POST", PATH, content=lines(5), headers=LINES)
    assert (answer.status_code, error_of(answer)["got"]) == (413, "4 events")
    answer = world.ask("POST", PATH, content=json.dumps(events(4)), headers=ARRAY)
    assert (answer.status_code, error_of(answer)["got"]) == (413, "4 events")


# sizes and compression


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_beyond_the_limit_is_refused_with_what_the_limit_is_and_one_at_it_is_not(declared):
    world = small(max_body=100_000)
    read = []

    async def chunks(size):
        for start in range(0, size, 50_000):
            read.append(start)
            yield b" " * min(50_000, size - start)

    def sent(size):
        content = b" " * size if declared else chunks(size)
        return world.ask("POST", f"{PATH}?unchecked=1", content=content)

    assert sent(100_000).status_code == 202
    read.clear()
    answer = sent(100_001 if declared else 1_000_000)
    error = error_of(answer)
    assert (answer.status_code, error["code"], answer.headers["connection"]) == (413, "too-large", "close")
    assert error["message"] == "A request's body takes at most 100,000 bytes."
    assert "serve.max_body" in error["hint"]
    assert len(read) <= 4, "the rest is not read"
    assert len(appended(world)) == 1


@pytest.mark.parametrize("length", ["9" * 30, "9" * 5_000])
def test_an_absurd_length_is_refused_before_anything_is_read(world, length):
    read = []

    async def body():
        read.append(1)
        yield b""

    answer = world.ask("POST", PATH, content=body(), headers={"content-length": length})
    assert (answer.status_code, read) == (413, [])


def test_a_compressed_body_is_what_it_was_before(world):
    answer = world.ask("POST", PATH, content=gzip.compress(lines(500)), headers=LINES | GZIP)
    assert (answer.status_code, answer.json()["accepted"]) == (202, 500)


def test_a_compressed_body_of_several_members_is_all_of_them(world):
    content = gzip.compress(lines(2) + b"\n") + gzip.compress(lines(1))
    assert world.ask("POST", PATH, content=content, headers=LINES | GZIP).json()["accepted"] == 3


def test_a_body_that_grows_beyond_the_limit_when_it_is_decompressed_is_refused():
    world = small(max_body=1_000_000)
    bomb = gzip.compress(b" " * 200_000_000)
    assert len(bomb) < 250_000
    answer = world.ask("POST", f"{PATH}?unchecked=1", content=bomb, headers=GZIP)
    assert (answer.status_code, error_of(answer)["code"]) == (413, "too-large")
    answer = world.ask("POST", f"{PATH}?unchecked=1", content=gzip.compress(b" " * 1_000_000), headers=GZIP)
    assert answer.status_code == 202


@pytest.mark.parametrize(
    ("headers", "content"),
    [
        ({"content-encoding": "br"}, b"{}"),
        (GZIP, b"{}"),
        (GZIP, gzip.compress(lines(10), mtime=0)[:-9]),
        (GZIP, gzip.compress(lines(10), mtime=0) + b"x"),
    ],
)
def test_a_compression_that_is_not_what_it_says_is_refused(world, headers, content):
    answer = world.ask("POST", PATH, content=content, headers=LINES | headers)
    assert (answer.status_code, error_of(answer)["code"]) == (415, "bad-encoding")
    assert appended(world) == []


# come back later


def told(world, included, rate):
    world.tell({"streams": {"clicks": STREAM | {"included": included, "rate_per_s": rate}}, "tile_sets": {}})
    world.serving.monitor.tick()


def filled(world, count):
    world.log.append_batch(NAMES.topic("clicks"), [Message(b"{}")] * count, partition=0)


@pytest.mark.parametrize(("rate", "wait"), [(10.0, "3"), (0.0, "60"), (1_000.0, "1"), (0.1, "60")])
def test_a_stream_that_the_pipeline_is_far_behind_is_taken_later(rate, wait):
    world = small(max_lag=100)
    filled(world, 130)
    told(world, {"0": 5}, rate)
    answer = world.ask("POST", PATH, json=EVENT)
    assert (answer.status_code, error_of(answer)["code"]) == (429, "too-busy")
    assert answer.headers["retry-after"] == wait
    assert error_of(answer)["message"] == "The pipeline has yet to read 125 events of stream 'clicks'."
    assert len(appended(world)) == 130
    told(world, {"0": 130, "1": 0}, rate)
    assert world.ask("POST", PATH, json=EVENT).status_code == 202


def test_a_pipeline_that_never_spoke_has_everything_to_read():
    world = small(max_lag=100)
    filled(world, 101)
    assert world.ask("POST", PATH, json=EVENT).status_code == 202, "nobody has looked yet"
    world.serving.monitor.tick()
    assert world.ask("POST", PATH, json=EVENT).status_code == 429


def test_without_a_bound_no_lag_is_too_much():
    world = small(max_lag=0)
    filled(world, 1_000)
    world.serving.monitor.tick()
    assert world.ask("POST", PATH, json=EVENT).status_code == 202


def test_a_disk_that_is_nearly_full_takes_no_events(tmp_path):
    with EmbeddedLog(tmp_path) as log:
        world = World(ServeSettings(min_free_disk=10**15), log)
        world.serving.monitor.tick()
        answer = world.ask("POST", PATH, json=EVENT)
        assert (answer.status_code, answer.headers["retry-after"]) == (507, "60")
        assert (error_of(answer)["code"], "bytes left" in error_of(answer)["message"]) == ("disk-full", True)


def test_too_much_under_way_is_taken_later_and_room_is_given_back(monkeypatch):
    monkeypatch.setattr("headrace.serve.handler_context.room_for", lambda limits: Room(1_000))
    world = World()
    answer = world.ask("POST", PATH, content=b" " * 1_001)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    for _ in range(20):
        assert world.ask("POST", PATH, json=EVENT).status_code == 202
        assert world.ask("POST", PATH, content=b"{" * 900).status_code == 400


def test_only_so_many_requests_are_under_way_at_once(monkeypatch):
    monkeypatch.setattr("headrace.serve.handler_context.room_for", lambda limits: Room(10**9, 0))
    assert World().ask("POST", PATH, json=EVENT).status_code == 429


# over real sockets


@contextmanager
def served(world):
    """An address at which the world answers."""
    stop, started = threading.Event(), threading.Event()
    with listening("127.0.0.1", 0) as (listener,):
        thread = threading.Thread(target=serve, args=(listener, world.serving, stop, started.set))
        thread.start()
        try:
            assert started.wait(30)
            yield listener.getsockname()[:2]
        finally:
            stop.set()
            thread.join(30)


def spoken(address, text, expected=b"\r\n\r\n"):
    """What a server says to some bytes, until it closes the connection or the answer is there."""
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(text)
        answer = b""
        while expected not in answer and (chunk := connection.recv(65_536)):
            answer += chunk
        rest = b""
        while b"connection: close" in answer.lower() and (chunk := connection.recv(65_536)):
            rest += chunk
    return (answer + rest).decode()


def request(length, body=b"", more=""):
    return f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{more}\r\n".encode() + body


def test_over_a_socket_a_body_is_refused_by_its_length_before_it_is_sent():
    with served(small(max_body=10_000)) as address:
        for more in ("", "Expect: 100-continue\r\n"):
            answer = spoken(address, request(10**12, more=more))
            assert answer.startswith("HTTP/1.1 413 ")
            assert "connection: close" in answer.lower()
            assert '"code":"too-large"' in answer


def test_over_a_socket_batches_are_taken_and_a_producer_is_told_when_to_come_back():
    world = small(max_lag=100)
    with served(world) as address:
        packed = gzip.compress(lines(200))
        more = "Content-Encoding: gzip\r\nContent-Type: application/x-ndjson\r\n"
        assert spoken(address, request(len(packed), packed, more)).startswith("HTTP/1.1 202 ")
        deadline = threading.Event()
        for _ in range(300):
            answer = spoken(address, request(2, b"{}"))
            if " 429 " in answer:
                break
            deadline.wait(0.05)
        assert answer.startswith("HTTP/1.1 429 ")
        assert "retry-after: 60" in answer.lower()


def test_a_memory_log_has_no_disk_to_fill():
    world = World(ServeSettings(min_free_disk=10**15), MemoryLog())
    world.serving.monitor.tick()
    assert world.ask("POST", PATH, json=EVENT).status_code == 202
