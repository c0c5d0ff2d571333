"""Servers that are away, busy, slow or strange: a clear error in bounded time, and never a wrong value."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.client.batch import TOGETHER
from headrace.client.connection import Reply
from headrace.client.retry import FIRST, LONGEST, READ, Patience, RetryClock, call_with_retries
from headrace.errors import DataError, DefinitionError, HeadraceError, MachineError
from tests.client.conftest import Calm, Scripted, dripping, port_of, running, scripted, until
from tests.serve.conftest import World

ANSWER = {
    "view": "users",
    "key": {"user": "ann"},
    "features": {"clicks_1h": 2},
    "at": "2026-01-01T00:00:00Z",
    "as_of": None,
    "late_as_of": None,
    "freshness_ms": None,
    "missing": False,
    "stale": True,
    "mode": "micro-batch",
}
GOOD: Scripted = (200, {}, json.dumps(ANSWER))
TAKEN: Scripted = (202, {}, json.dumps({"positions": [{"partition": 0, "offset": 7, "arrived_at": None}]}))
SECRET = "s3cr3t-of-mine"


def said(code, status=400, **headers):
    body = {"error": {"code": code, "message": "No.", "where": "here", "got": "'x'", "hint": "Do that."}}
    return status, headers, json.dumps(body)


# asking again


def test_a_busy_server_is_asked_again_when_it_said_and_a_little_later():
    calm = Calm(chance=0.5)
    busy = said("too-busy", 503, **{"retry-after": "1"})
    with scripted(busy, busy, GOOD) as server, hr.Client(server.url, waiting=calm.waiting) as client:
        assert client.features("users", "ann").features == {"clicks_1h": 2}
    assert calm.naps == [1 + 0.5 * FIRST, 1 + 0.5 * FIRST * 2]
    assert len(server.asked) == 3


def test_a_server_that_asks_for_more_time_than_there_is_is_not_waited_for():
    calm = Calm()
    with (
        scripted(said("too-busy", 429, **{"retry-after": "60"})) as server,
        hr.Client(server.url, within="10s", waiting=calm.waiting) as client,
        pytest.raises(MachineError) as refused,
    ):
        client.features("users", "ann")
    assert (refused.value.code, calm.naps, len(server.asked)) == ("too-busy", [], 1)


@pytest.mark.parametrize("retries", [0, 2])
def test_a_server_that_stays_busy_is_given_up_with_its_own_error(retries):
    with (
        scripted(said("too-busy", 503)) as server,
        hr.Client(server.url, retries=retries, waiting=Calm().waiting) as client,
        pytest.raises(MachineError) as refused,
    ):
        client.features("users", "ann")
    assert refused.value.as_json() == json.loads(said("too-busy")[2])["error"]
    assert len(server.asked) == retries + 1


@pytest.mark.parametrize(("status", "code"), [(400, "bad-request"), (404, "not-found"), (500, "internal")])
def test_what_will_be_refused_again_is_asked_once(status, code):
    with (
        scripted(said(code, status)) as server,
        hr.Client(server.url, waiting=Calm().waiting) as client,
        pytest.raises(HeadraceError) as refused,
    ):
        client.features("users", "ann")
    assert (refused.value.code, len(server.asked)) == (code, 1)


@pytest.mark.parametrize("fault", [said("log-failed", 503), (202, {"content-length": "999"}, "{")], ids=["503", "cut"])
def test_events_that_may_have_been_taken_are_not_sent_again(fault):
    with (
        scripted(fault, TAKEN) as server,
        hr.Client(server.url, waiting=Calm().waiting) as client,
        pytest.raises(MachineError),
    ):
        client.send("clicks", [{"id": "1"}])
    assert len(server.asked) == 1


def test_events_that_were_refused_for_now_are_sent_again():
    with (
        scripted(said("too-busy", 429, **{"retry-after": "1"}), TAKEN) as server,
        hr.Client(server.url, waiting=Calm().waiting) as client,
    ):
        assert [place.offset for place in client.send("clicks", [{"id": "1"}, b'{"id":\n"2"}'])] == [7]
    assert [request[3] for request in server.asked] == [b'{"id":"1"}\n{"id": "2"}'] * 2


def test_events_do_not_go_over_a_connection_that_may_be_gone():
    with scripted(GOOD, TAKEN) as server, hr.Client(server.url) as client:
        client.features("users", "ann")
        client.send("clicks", [{"id": "1"}])
    assert server.connections == 2


@given(
    chances=st.lists(st.floats(0, 1, exclude_max=True), min_size=30, max_size=30),
    retries=st.integers(0, 20),
    within=st.floats(0.01, 30),
)
def test_pauses_are_random_below_a_doubling_bound_and_all_ends_in_time(chances, retries, within):
    naps: list[float] = []
    rest = iter(chances)
    waiting = RetryClock(lambda: next(rest), naps.append, lambda: sum(naps))
    reply = call_with_retries(lambda _: Reply(503, b""), "http://here", Patience(1, retries, within), READ, waiting)
    assert reply.status == 503
    assert len(naps) <= retries
    assert sum(naps) < within
    for number, (nap, chance) in enumerate(zip(naps, chances, strict=False)):
        assert nap == chance * min(LONGEST, FIRST * 2**number)


# away and back


def test_a_server_that_is_gone_is_an_error_with_a_hint():
    calm = Calm()
    with (
        hr.Client("http://127.0.0.1:1", retries=2, waiting=calm.waiting) as client,
        pytest.raises(MachineError) as gone,
    ):
        client.features("users", "ann")
    assert (gone.value.code, gone.value.where, len(calm.naps)) == ("no-answer", "http://127.0.0.1:1", 2)
    assert "asked 3 times" in str(gone.value.got)
    assert "headrace status" in str(gone.value.hint)


def test_a_client_outlives_its_server(filled):
    keys = ["ann", "nobody", "a/b c"]
    with running(filled) as url:
        client = hr.Client(url, retries=0)
        before = client.features_of("users", keys)
    with client:
        with pytest.raises(MachineError):
            client.features("users", "ann")
        with running(World(log=filled.log), port_of(url)):
            until(client.ready)
            assert client.features_of("users", keys) == before


def test_a_server_that_comes_back_while_it_is_asked_is_found(filled):
    with running(filled) as url:
        pass
    back = World(log=filled.log)
    back.serving.filler.step()
    server, entered = running(back, port_of(url)), list[str]()
    waiting = RetryClock(sleep=lambda _: None if entered else entered.append(server.__enter__()))
    try:
        with hr.Client(url, waiting=waiting) as client:
            assert client.features("users", "ann").features["clicks_1h"] == 2
    finally:
        if entered:
            server.__exit__(None, None, None)
    assert entered == [url]


def test_reads_share_a_kept_connection():
    with scripted(GOOD) as server, hr.Client(server.url) as client:
        for _ in range(5):
            client.features("users", "ann")
    assert (len(server.asked), server.connections) == (5, 1)


def test_several_keys_are_read_over_a_bounded_number_of_connections():
    several: Scripted = (200, {}, json.dumps({"answers": [ANSWER] * TOGETHER}))
    with scripted(several) as server, hr.Client(server.url, connections=3) as client:
        for _ in range(2):
            assert len(client.features_of("users", [str(number) for number in range(20 * TOGETHER)])) == 20 * TOGETHER
    assert len(server.asked) == 40
    assert server.connections <= 3


@pytest.mark.parametrize("answers", [[], [ANSWER], [ANSWER] * 3, [{}, ANSWER], [ANSWER, {"error": {"code": "x"}}]])
def test_other_answers_than_were_asked_for_are_none(answers):
    with scripted((200, {}, json.dumps({"answers": answers}))) as server, hr.Client(server.url) as client:
        with pytest.raises(HeadraceError) as strange:
            client.features_of("users", ["a", "b"])
        assert strange.value.code == "no-answer"


def test_several_keys_are_asked_for_again_when_the_server_says_so():
    calm = Calm()
    busy: Scripted = (503, {"retry-after": "2"}, json.dumps({"error": {"code": "too-busy", "message": "Too busy."}}))
    good: Scripted = (200, {}, json.dumps({"answers": [ANSWER]}))
    with scripted(busy, busy, good) as server, hr.Client(server.url, waiting=calm.waiting) as client:
        (answer,) = client.features("users", keys=["ann"])
    assert answer.features == {"clicks_1h": 2}
    assert ([each[0] for each in server.asked], [int(nap) for nap in calm.naps]) == (["POST"] * 3, [2, 2])


def test_a_connection_that_the_server_ended_meanwhile_is_replaced_without_a_retry(filled):
    with running(filled) as url, hr.Client(url, retries=0) as client:
        before = client.features("users", "ann")
        client._wire._idle[0].sock.shutdown(socket.SHUT_RDWR)
        assert client.features("users", "ann") == before


# slow


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\n", b"x-more: 1\r\n"),
        (b"HTTP/1.1 200 OK\r\nx-more: ", b"1"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n{", b" "),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ],
    ids=["silent", "headers", "a header", "body", "chunks"],
)
def test_a_slow_server_is_an_error_in_time_however_it_keeps_its_caller(first, drop):
    began = time.monotonic()
    with (
        dripping(first, drop) as url,
        hr.Client(url, timeout="300ms", retries=1, within="2s") as client,
        pytest.raises(MachineError) as slow,
    ):
        client.features("users", "ann")
    assert (slow.value.code, slow.value.message) == ("no-answer", "Serving did not answer within 300ms.")
    assert "asked 2 times" in str(slow.value.got)
    assert 0.5 < time.monotonic() - began < 10


def test_a_call_ends_within_its_time_whatever_a_try_may_take():
    began = time.monotonic()
    with (
        dripping(b"", b"") as url,
        hr.Client(url, timeout="1m", retries=50, within="300ms") as client,
        pytest.raises(MachineError),
    ):
        client.features("users", "ann")
    assert time.monotonic() - began < 10


def test_a_slow_server_does_not_hold_the_event_loop():
    async def look(url):
        async with hr.AsyncClient(url, timeout="500ms", retries=0) as client:
            slow = asyncio.create_task(client.features("users", "ann"))
            turns = 0
            while not slow.done():
                await asyncio.sleep(0.01)
                turns += 1
            with pytest.raises(MachineError):
                await slow
            return turns

    with dripping(b"", b"") as url:
        assert asyncio.run(look(url)) > 5


def test_a_cancelled_coroutine_ends_at_once():
    async def look(url):
        async with hr.AsyncClient(url, timeout="2s", retries=0) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.features("users", "ann"), 0.05)

    with dripping(b"", b"") as url:
        began = time.monotonic()
        loop = asyncio.new_event_loop()
        loop.run_until_complete(look(url))
        assert time.monotonic() - began < 1.5
        loop.close()


# strange


@pytest.mark.parametrize(
    "answer",
    [
        (200, {}, "<html>hello</html>"),
        (200, {}, "[]"),
        (200, {}, "{}"),
        (200, {}, '{"a": ' * 100_000),
        (200, {}, json.dumps({**ANSWER, "missing": "no"})),
        (200, {"content-length": "9999"}, json.dumps(ANSWER)),
        (302, {"location": "http://127.0.0.1:1/"}, ""),
        (404, {}, "no such page"),
        (418, {}, json.dumps({"error": {"code": "of-another-version", "message": "No."}})),
        (404, {}, json.dumps({"error": "no"})),
        (400, {}, json.dumps({"error": {"code": ["bad-request"]}})),
    ],
)
def test_an_answer_that_is_not_headraces_is_an_error_and_never_a_value(answer):
    with (
        scripted(answer) as server,
        hr.Client(server.url, retries=0) as client,
        pytest.raises(HeadraceError) as strange,
    ):
        client.features("users", "ann")
    assert strange.value.code == "no-answer"
    assert len(str(strange.value)) < 600


@pytest.mark.parametrize("answer", [(200, {}, "{}"), (503, {}, "<html>"), said("internal", 500)])
def test_readiness_that_says_nothing_is_an_error(answer):
    with scripted(answer) as server, hr.Client(server.url, retries=0) as client, pytest.raises(HeadraceError):
        client.ready()


def test_a_feature_of_another_type_than_the_view_says_is_an_error():
    clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.last("at", over="1h")})
    with scripted(GOOD) as server, hr.Client(server.url) as client, pytest.raises(HeadraceError) as strange:
        client.features(users, "ann")
    assert strange.value.code == "no-answer"


# secrets and arguments


def test_a_server_with_tls_is_spoken_to_when_it_is_trusted_and_only_then(tmp_path):
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out cert.pem -subj /CN=127.0.0.1"
    subprocess.run(
        [*made.split(), "-addext", "subjectAltName=IP:127.0.0.1"], cwd=tmp_path, check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    calm, trust = Calm(), ssl.create_default_context(cafile=tmp_path / "cert.pem")
    with scripted(GOOD, tls=context) as server:
        with hr.Client(server.url, tls=trust) as client:
            assert client.features("users", "ann").features == {"clicks_1h": 2}
        with (
            hr.Client(server.url, waiting=calm.waiting) as stranger,
            pytest.raises(MachineError, match="TLS") as refused,
        ):
            stranger.features("users", "ann")
    assert (refused.value.code, "`tls`" in str(refused.value.hint), calm.naps) == ("no-answer", True, [])


def test_an_api_key_is_sent_and_never_shown():
    with scripted(GOOD, said("bad-request")) as server, hr.Client(server.url, api_key=SECRET) as client:
        client.features("users", "ann")
        with pytest.raises(HeadraceError) as refused:
            client.features("users", "ann")
    assert [request[2]["Authorization"] for request in server.asked] == [f"Bearer {SECRET}"] * 2
    with hr.Client("http://127.0.0.1:1", api_key=SECRET, retries=0) as away, pytest.raises(HeadraceError) as gone:
        away.features("users", "ann")
    for text in (
        repr(client),
        str(refused.value),
        repr(refused.value),
        str(gone.value),
        repr(hr.AsyncClient("http://a")),
    ):
        assert SECRET not in text


@pytest.mark.parametrize("key", [f"{SECRET}\r\nx: y", f"{SECRET} ", "", f"{SECRET}é", SECRET.encode()])
def test_an_api_key_that_cannot_be_sent_is_refused_without_showing_it(key):
    with pytest.raises(DataError) as refused:
        hr.Client("http://127.0.0.1:1", api_key=key)
    assert (refused.value.code, SECRET in str(refused.value)) == ("bad-argument", False)


@pytest.mark.parametrize(
    "url", [f"http://me:{SECRET}@here", f"http://me:x/{SECRET}@here", f"https://{SECRET}@here:1/a"]
)
def test_a_url_with_credentials_is_refused_without_showing_them(url):
    with pytest.raises(DataError, match="credentials") as refused:
        hr.Client(url)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["", "here:80", "ftp://here", "http://", "http://here:port", "http://h?a=1", "http://h\n", 7]
)
def test_what_is_no_address_of_a_service_is_refused(url):
    with pytest.raises(DataError) as refused:
        hr.Client(url)
    assert refused.value.code == "bad-argument"


@pytest.mark.parametrize(
    "wish", [{"retries": -1}, {"retries": True}, {"connections": 0}, {"timeout": 2}, {"within": "0s"}]
)
def test_wishes_that_cannot_be_meant_are_refused(wish):
    with pytest.raises((DataError, DefinitionError)):
        hr.Client("http://here", **wish)


def test_a_service_below_a_path_is_asked_there():
    with scripted(GOOD) as server, hr.Client(f"{server.url}/shop/") as client:
        client.features("users", "ann")
    assert server.asked[0][1] == "/shop/v1/features/users/ann"


def test_proxies_of_the_environment_have_no_part_in_it(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with scripted(GOOD) as server, hr.Client(server.url, retries=0) as client:
        assert not client.features("users", "ann").missing


def test_a_closed_client_says_so():
    client = hr.Client("http://here")
    client.close()
    for call in (lambda: client.features("users", "ann"), lambda: client.features_of("users", ["ann", "bob"])):
        with pytest.raises(DataError, match="closed"):
            call()
