"""Hosts and origins: a page on the web, or a name that was bound to this machine, gets nothing and leaves nothing."""

from __future__ import annotations

import base64
import json
import socket

import pytest

from headrace.config.config import parse
from headrace.errors import DataError
from headrace.serve.access import Access, ApiKey, digest_of
from headrace.serve.server_options import ServerOptions, terms_of
from tests.client.conftest import PATIENCE, port_of, running
from tests.serve.conftest import World
from tests.serve.process import answer
from tests.serve.test_app import EVENT, appended, error_of
from tests.streams import BASE

KEY = "a-key-of-sixteen-signs"
READ = "/v1/features/users/ann"
ASKED = [
    ("GET", READ),
    ("GET", "/v1/features/everyone"),
    ("POST", "/v1/features"),
    ("POST", "/v1/events/clicks"),
    ("POST", "/v1/score/churn"),
    ("GET", "/"),
    ("GET", "/status.json"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("OPTIONS", "/v1/events/clicks"),
    ("GET", "/nothing"),
]
OWN = [
    "localhost",
    "localhost:8787",
    "LocalHost:8787",
    "localhost.",
    "localhost.:80",
    "localhost:",
    "127.0.0.1",
    "127.0.0.1:9",
    "127.8.8.8:8787",
    "[::1]",
    "[::1]:8787",
    "[0:0:0:0:0:0:0:1]:8787",
    "[::ffff:127.0.0.1]:8787",
]
FOREIGN = [
    "shop.example",
    "localhost.shop.example",
    "127.0.0.1.shop.example",
    "shop.example:8787",
    "192.168.0.7",
    "0.0.0.0",
    "[::2]",
    "[::1",
    "::1",
    "[::1]x",
    "localhost@shop.example",
    "localhost/",
    "localhost:80:80",
    "localhost, shop.example",
    "localhost..",
    " localhost.",
    "127.1",
    "",
]


def keyed():
    return ServerOptions(access=Access([ApiKey("ops", frozenset({"admin"}), digest_of(KEY))]))


def sent(world, method, path, **headers):
    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    return world.ask(method, path, content=json.dumps(EVENT) if method == "POST" else None, headers=given)


@pytest.mark.parametrize(("method", "path"), ASKED)
def test_no_path_answers_a_request_to_another_host(world, method, path):
    answer = sent(world, method, path, host="shop.example:8787")
    error = error_of(answer)
    assert (answer.status_code, error["code"], error["got"]) == (403, "foreign-host", "Host: 'shop.example:8787'")
    assert "localhost" in error["hint"]
    assert answer.headers["connection"] == "close"
    assert appended(world) == []


@pytest.mark.parametrize("origin", ["https://shop.example", "null"])
@pytest.mark.parametrize(("method", "path"), ASKED)
def test_no_path_answers_a_page_of_another_origin(world, method, path, origin):
    answer = sent(world, method, path, host="localhost:8787", origin=origin)
    assert (answer.status_code, error_of(answer)["code"]) == (403, "foreign-origin")
    assert "Bearer" in error_of(answer)["hint"]
    assert appended(world) == []


@pytest.mark.parametrize("host", OWN)
def test_this_machine_is_answered_by_all_of_its_names(world, host):
    assert sent(world, "GET", "/health", host=host).status_code == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_what_is_no_name_of_this_machine_is_not_answered(world, host):
    assert error_of(sent(world, "GET", "/health", host=host))["code"] == "foreign-host"


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:8787", "http://localhost:8787", 202),
        ("LOCALHOST.:8787", "http://localhost:8787", 202),
        ("localhost", "http://localhost:80", 202),
        ("localhost:443", "https://localhost", 202),
        ("[::1]:8787", "http://[0:0::1]:8787", 202),
        ("localhost:8787", "http://localhost:3000", 403),
        ("localhost:8787", "http://localhost", 403),
        ("localhost:8787", "http://127.0.0.1:8787", 403),
        ("localhost:8787", "http://localhost.shop.example:8787", 403),
        ("localhost:8787", "http://localhost:8787@shop.example", 403),
        ("localhost:8787", "ftp://localhost:8787", 403),
        ("localhost:8787", "localhost:8787", 403),
        ("localhost:8787", "", 403),
    ],
)
def test_an_origin_is_the_server_itself_or_foreign(world, host, origin, status):
    assert sent(world, "POST", "/v1/events/clicks", host=host, origin=origin).status_code == status
    assert len(appended(world)) == (status == 202)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ([], "foreign-host"),
        ([(b"host", b"localhost"), (b"host", b"localhost")], "foreign-host"),
        ([(b"host", b"localhost"), (b"host", b"shop.example")], "foreign-host"),
        ([(b"host", b"localhost\xff")], "foreign-host"),
        ([(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"origin", b"null")], "foreign-origin"),
    ],
)
def test_no_way_into_the_server_answers_at_once_what_is_not_to_be_answered(world, headers, code):
    world.pipeline(EVENT | {"at": BASE})
    app, scope = world.serving.app, {"type": "http", "method": "POST", "path": "/v1/score/churn", "headers": headers}
    assert app.at_once(READ.encode(), headers) is None
    assert app.soon(scope, b"{}") is None
    assert app.at_once(READ.encode(), [(b"host", b"localhost")]) is not None
    with pytest.raises(DataError) as caught:
        world.serving.standing.callers.refuse_foreign(headers)
    assert caught.value.code == code


@pytest.mark.parametrize("path", [READ, "/health", "/v1/features/everyone"])
def test_a_socket_gets_no_answer_for_another_host_none_or_two(world, path):
    with running(world) as url:
        for heads in ("Host: shop.example\r\n", "", "Host: localhost\r\nHost: shop.example\r\n"):
            with socket.create_connection(("127.0.0.1", port_of(url)), timeout=PATIENCE) as where:
                where.sendall(f"GET {path} HTTP/1.1\r\n{heads}\r\n".encode())
                status, said = answer(where)
            assert (status, said["error"]["code"]) == (403, "foreign-host")


def test_with_keys_any_host_is_answered_and_so_is_any_page_that_has_one():
    world = World(terms=keyed())
    bearer = {"host": "shop.example", "authorization": f"Bearer {KEY}"}
    assert sent(world, "GET", READ, **bearer).status_code == 200
    assert sent(world, "GET", READ, **bearer, origin="https://other.example").status_code == 200
    assert sent(world, "GET", "/health", host="shop.example").status_code == 200
    assert error_of(sent(world, "GET", READ, host="localhost", origin="null"))["code"] == "no-key"


def test_a_password_that_a_browser_keeps_opens_nothing_to_a_page_of_another_origin():
    world = World(terms=keyed())
    basic = {"host": "shop.example", "authorization": "bAsIc " + base64.b64encode(f"u:{KEY}".encode()).decode()}
    path = "/v1/events/clicks"
    assert error_of(sent(world, "POST", path, **basic, origin="https://other.example"))["code"] == "foreign-origin"
    assert appended(world) == []
    assert sent(world, "POST", path, **basic, origin="https://shop.example").status_code == 202
    assert sent(world, "GET", "/status.json", **basic).status_code == 200


def test_where_anybody_may_ask_any_host_is_answered_and_no_page_of_another_origin(tmp_path):
    settings = '[project]\nname = "shop"\n[serve]\nwithout_keys = "anywhere"\nhost = "0.0.0.0"'
    terms = terms_of(parse(settings, tmp_path, {}))
    world = World(terms=terms)
    assert sent(world, "GET", READ, host="shop.example").status_code == 200
    assert error_of(sent(world, "GET", READ, host="shop.example", origin="null"))["code"] == "foreign-origin"
    assert not terms_of(parse('[project]\nname = "shop"', tmp_path, {})).callers.any_host
