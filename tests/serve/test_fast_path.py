"""Scores that are answered where they are read: the same answers, errors, order and counts as the usual way gives."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

import pytest

from headrace.config.serve_settings import ServeSettings
from headrace.serve.access import Access, ApiKey, digest_of
from headrace.serve.fast_path import FastPathProtocol
from headrace.serve.server_options import ServerOptions
from tests.client.conftest import PATIENCE, port_of, running, until
from tests.serve.scoring_world import ScoreWorld

ASKED = {"key": {"user": "ann"}, "request": {"budget": 10}}
BLOCKED = "while row['clicks_1h'] and not os.path.exists({flag!r}): time.sleep(0.01)\nreturn 0.5"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A world with a champion that tests only ask, and its URL."""
    world = ScoreWorld(tmp_path_factory.mktemp("straight"), ServeSettings(max_body=2_000))
    world.promote(threshold=0.3)
    with running(world) as url:
        until(lambda: world.champion() == 1)
        yield url


@pytest.fixture
def soon(monkeypatch):
    """How many requests were taken where they were read."""
    taken, usual = [], FastPathProtocol._answer_soon

    def counted(self):
        taken.append(usual(self))
        return taken[-1]

    monkeypatch.setattr(FastPathProtocol, "_answer_soon", counted)
    return taken


def raw(body, *, path="churn", more=""):
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (
        f"POST /v1/score/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(sent)}\r\n{more}\r\n".encode()
        + sent
    )


@contextlib.contextmanager
def connected(url):
    with socket.create_connection(("127.0.0.1", port_of(url)), timeout=PATIENCE) as where, where.makefile("rb") as file:
        yield where, file


def answer(file):
    """Status, headers without the date, and JSON of the next answer; a score's moments are the fake clock's."""
    status = int(file.readline().split()[1])
    lines = sorted(iter(lambda: file.readline().strip().lower(), b""))
    length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length"))
    return status, [line for line in lines if not line.startswith(b"date:")], json.loads(file.read(length))


def usual_way(url, body, **more):
    """The answer to the same request with its body in two pieces, the second of which comes later."""
    sent = raw(body, **more)
    with connected(url) as (where, file):
        where.sendall(sent[:-1])
        threading.Event().wait(0.05)
        where.sendall(sent[-1:])
        return answer(file)


@pytest.mark.parametrize(
    ("body", "path", "status"),
    [
        (ASKED, "churn", 200),
        ({"keys": [{"user": "ann"}, {"nobody": 1}, {"user": "bob"}], "request": {"budget": 10}}, "churn", 200),
        (ASKED | {"version": 9}, "churn", 404),
        (ASKED, "chrun", 404),
        (b"{", "churn", 400),
        ({"key": {"user": "ann"}}, "churn", 400),
        (ASKED | {"stale": "x" * 3_000}, "churn", 413),
        (ASKED, "churn/of", 404),
    ],
)
def test_a_request_is_answered_alike_in_one_piece_and_in_two(shared, soon, body, path, status):
    with connected(shared) as (where, file):
        where.sendall(raw(body, path=path))
        said = answer(file)
    assert soon == ([True] if "/" not in path else [])
    assert said[0] == status
    assert said == usual_way(shared, body, path=path)
    assert len(soon) < 2, "what comes in two pieces goes the usual way"


@pytest.mark.parametrize("more", ["Connection: close\r\n", "Expect: 100-continue\r\n", "Content-Encoding: gzip\r\n"])
def test_what_is_special_goes_the_usual_way(shared, soon, more):
    with connected(shared) as (where, file):
        where.sendall(raw(ASKED, more=more))
        line = file.readline()
    assert line.startswith(b"HTTP/1.1 ")
    assert soon == []


def test_requests_that_come_together_are_answered_in_their_order(shared):
    users = [f"u{n}" for n in range(12)]
    scores = [raw({"key": {"user": user}, "request": {"budget": 10}}) for user in users[::2]]
    reads = [f"GET /v1/features/users/{user} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for user in users[1::2]]
    with connected(shared) as (where, file):
        where.sendall(b"".join(score + read for score, read in zip(scores, reads, strict=True)))
        found = [answer(file)[2] for _ in users]
    assert [(each.get("answers") or [each])[0]["key"]["user"] for each in found] == users


def test_every_score_is_counted(shared, soon):
    def counted():
        import httpx

        lines = httpx.get(f"{shared}/metrics").text.splitlines()
        found = [line for line in lines if line.startswith("headrace_http_requests_total") and "/v1/score" in line]
        return sum(float(line.rpartition(" ")[2]) for line in found if 'status="200"' in line)

    before = counted()
    with connected(shared) as (where, file):
        for _ in range(3):
            where.sendall(raw(ASKED))
            answer(file)
    assert (counted() - before, soon) == (3, [True] * 3)


def test_who_may_not_ask_is_refused_as_anywhere(tmp_path, soon):
    terms = ServerOptions(access=Access([ApiKey("ops", frozenset({"read"}), digest_of("a-key-of-sixteen"))]))
    world = ScoreWorld(tmp_path, terms=terms)
    world.promote()
    with running(world) as url:
        until(lambda: world.champion() == 1)
        with connected(url) as (where, file):
            where.sendall(raw(ASKED))
            assert answer(file)[0] == 401
        with connected(url) as (where, file):
            where.sendall(raw(ASKED, more="Authorization: Bearer a-key-of-sixteen\r\n"))
            assert answer(file)[0] == 200
    assert soon == [False, True]


def test_a_caller_that_goes_away_costs_nothing_but_its_own_answer(tmp_path):
    flag = tmp_path / "go"
    world = ScoreWorld(tmp_path)
    world.promote(BLOCKED.format(flag=str(flag)))
    with running(world) as url:
        until(lambda: world.champion() == 1)
        with connected(url) as (where, _):
            where.sendall(raw(ASKED))
            until(lambda: world.models.find("churn").in_flight)
        flag.touch()
        until(lambda: not world.serving.standing.metrics.in_flight)
        with connected(url) as (where, file):
            where.sendall(raw(ASKED))
            assert answer(file)[0] == 200


def test_what_is_being_scored_when_it_ends_is_answered_and_then_the_connection_ends(tmp_path):
    flag = tmp_path / "go"
    world = ScoreWorld(tmp_path)
    world.promote(BLOCKED.format(flag=str(flag)))
    with running(world) as url:
        until(lambda: world.champion() == 1)
        with connected(url) as (where, file):
            where.sendall(raw(ASKED))
            until(lambda: world.models.find("churn").in_flight)
            world.serving.standing.draining = True
            flag.touch()
            status, lines, said = answer(file)
            assert (status, said["answers"][0]["score"], b"connection: close" in lines) == (200, 0.5, True)
            assert file.read() == b""
