"""What reading a body costs grows with its size and no faster, whatever is in it; and it ends with its request.

Costs are counted, not timed: steps of the interpreter, and bytes that went through zlib.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import sys
import threading
import zlib
from collections.abc import Callable
from functools import partial
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Message

import headrace as hr
from headrace.codec.json.read import decoder
from headrace.errors import DataError
from headrace.read.on_demand import Requests
from headrace.serve import body as bodies
from headrace.serve.batch import batch_of
from headrace.serve.body import MOST_MEMBERS, events_of, read_body, unzipped
from headrace.serve.request_queue import sent_within
from headrace.serve.scoring.route import wanted_of
from headrace.types.field_types import schema_of
from tests.serve.conftest import World, habits

LINES, ARRAY = "application/x-ndjson", "application/json"
LIMIT = 8 * 1024 * 1024
SMALL = 700
FIELDS = {"id": str, "n": int, "x": float, "d": hr.Decimal(10, 2), "l": list[int], "at": hr.Timestamp}


def steps(work: Callable[[], Any]) -> int:
    """How many steps of the interpreter some work takes, calls of what is not Python among them."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.suppress(DataError):
            work()
    finally:
        sys.settrace(before)
    return count


@pytest.fixture
def zlib_bytes(monkeypatch):
    """The bytes that zlib was given, gave, and copied."""
    counted = SimpleNamespace(bytes=0)

    class Counting:
        def __init__(self, bits: int) -> None:
            self._member = zlib.decompressobj(bits)

        def decompress(self, part: Any, most: int) -> bytes:
            plain = self._member.decompress(part, most)
            counted.bytes += len(part) + len(plain) + len(self._member.unused_data) + len(self._member.unconsumed_tail)
            return plain

        def __getattr__(self, name: str) -> Any:
            return getattr(self._member, name)

    monkeypatch.setattr(bodies, "zlib", SimpleNamespace(decompressobj=Counting, error=zlib.error))
    return counted


MEMBERS = {
    "empty ones": gzip.compress(b"", mtime=0),
    "small ones": gzip.compress(b'{"id": 1}\n', mtime=0),
    "ones that do not compress": gzip.compress(bytes(range(256)) * 16, 0, mtime=0),
    "ones that compress well": gzip.compress(b" " * 100_000, mtime=0),
}


@pytest.mark.parametrize("member", MEMBERS.values(), ids=MEMBERS.keys())
def test_a_gzip_body_costs_what_its_bytes_and_a_bounded_number_of_members_cost(zlib_bytes, member, monkeypatch):
    monkeypatch.setattr(bodies, "MOST_MEMBERS", 100)
    body = member * (1_000_000 // len(member))
    with contextlib.suppress(DataError):
        unzipped(body, LIMIT)
    assert zlib_bytes.bytes <= len(body) + LIMIT + 2 * 100 * bodies.STEP


def test_a_gzip_body_in_many_pieces_is_read_up_to_a_bound_and_refused_beyond_it():
    member = gzip.compress(b"a")
    assert unzipped(member * MOST_MEMBERS, LIMIT) == b"a" * MOST_MEMBERS
    with pytest.raises(DataError, match="at most 1,000 members"):
        unzipped(member * (MOST_MEMBERS + 1), LIMIT)


def test_a_body_of_empty_members_is_refused_at_every_path_that_takes_one():
    world, body = World(), gzip.compress(b"") * (MOST_MEMBERS + 1)
    for path in ("/v1/features", "/v1/events/clicks"):
        answer = world.ask("POST", path, content=body, headers={"content-encoding": "gzip"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (415, "bad-encoding")


def test_decompression_ends_with_its_request(zlib_bytes):
    ended = threading.Event()
    ended.set()
    assert unzipped(gzip.compress(os.urandom(100_000)), LIMIT, ended) is None
    assert zlib_bytes.bytes == 0


def test_a_request_that_is_given_up_stops_its_thread(monkeypatch):
    began, stopped = threading.Event(), threading.Event()

    def slow(_: bytes, __: int, ended: threading.Event) -> None:
        began.set()
        if ended.wait(60):
            stopped.set()

    async def receive() -> Message:
        return {"type": "http.request", "body": gzip.compress(b"{}")}

    async def give_up() -> None:
        request = Request({"type": "http", "headers": [(b"content-encoding", b"gzip")]}, receive)
        reading = asyncio.ensure_future(read_body(request, LIMIT, lambda _: None))
        await asyncio.to_thread(began.wait, 60)
        with pytest.raises(DataError, match="not sent within"):
            await sent_within(reading, 0)

    monkeypatch.setattr(bodies, "unzipped", slow)
    asyncio.run(give_up())
    assert stopped.wait(60)


def nested(count: int) -> str:
    return "[" * count + "]" * count


SHAPES: dict[str, Callable[[int], str]] = {
    "numbers": lambda n: json.dumps(list(range(n))),
    "empty lists": lambda n: "[" + "[]," * n + "1]",
    "empty objects": lambda n: "[" + "{}," * n + "1]",
    "one list in another": nested,
    "brackets that nobody closes": lambda n: "[" * n,
    "one object in another": lambda n: '{"a":' * n + "1" + "}" * n,
    "many names": lambda n: json.dumps({f"k{number}": number for number in range(n)}),
    "one name": lambda n: "{" + '"a":1,' * n + '"a":1}',
    "a long number": lambda n: "9" * n,
    "a long fraction": lambda n: "0." + "1" * n,
    "a great exponent": lambda n: f"1e{'9' * n}",
    "escapes": lambda n: '"' + "\\u00e9\\n" * n + '"',
    "backslashes": lambda n: '"' + "\\\\" * n + '"',
    "halves of surrogate pairs": lambda n: '"' + "\\ud800" * n + '"',
    "spaces": lambda n: " " * n + "1" + " " * n,
    "line breaks": lambda n: "\n" * n,
    "commas": lambda n: "[" + "," * n,
    "a string that nobody closes": lambda n: '"' + "a" * n,
    "what is inside a list of a field": lambda n: json.dumps({"l": [None] * n}),
    "what is inside a number of a field": lambda n: f'{{"id":"a","n":1,"x":1,"l":[],"d":"{"9" * n}"}}',
    "a moment": lambda n: json.dumps({"at": "2026-01-01T00:00:00." + "1" * n + "Z"}),
}


def readers() -> dict[str, Callable[[bytes], Any]]:
    """Everything that reads a body, by what it takes the body for."""
    event = decoder(schema_of(FIELDS))
    reads = World().serving.app.context.reads
    requests = Requests(habits)

    def events(kind: str) -> Callable[[bytes], Any]:
        return lambda body: [event(each) for each in events_of(body, kind)]

    def values(body: bytes) -> None:
        batch = batch_of(b'{"view":"habits","keys":["a"],"request":%b}' % body, reads, most=10, stale="flag")
        batch.values(reads, 0, 0)

    def scores(body: bytes) -> None:
        wanted = wanted_of(body, served, reads, most=10, stale="flag")
        wanted.batch.values(reads, 0, 0)

    served: Any = SimpleNamespace(model=SimpleNamespace(features=habits))
    return {
        "lines": events(LINES),
        "an array": events(ARRAY),
        "one event": events(""),
        "a request for features": lambda body: batch_of(body, reads, most=10, stale="flag"),
        "keys": lambda body: batch_of(b'{"view":"users","keys":[%b]}' % body, reads, most=10, stale="flag"),
        "request values": lambda body: requests.read(b'{"budget":1,"note":%b}' % body),
        "an array of request values": values,
        "request values of an array": lambda body: values(b'[{"budget":1,"note":%b}]' % body),
        "a request for scores": scores,
        "keys to score": lambda body: scores(b'{"keys":[%b],"request":{"budget":1}}' % body),
        "request values of a score": lambda body: scores(b'{"key":"a","request":{"budget":1,"note":%b}}' % body),
        "an array of request values of scores": lambda body: scores(b'{"keys":["a"],"request":%b}' % body),
    }


READERS = readers()


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_twice_the_body_costs_at_most_twice_the_steps_whatever_is_in_it(read):
    dear = {}
    for name, shape in SHAPES.items():
        few, many = (steps(partial(read, shape(size).encode())) for size in (SMALL, 2 * SMALL))
        if many > 2.1 * few + 500:
            dear[name] = (few, many)
    assert dear == {}


def test_steps_of_what_is_quadratic_are_seen_to_be():
    def pairs(size: int) -> int:
        return sum(1 for _ in range(size) for _ in range(size))

    assert steps(lambda: pairs(60)) > 3 * steps(lambda: pairs(30))
