"""Who may ask for what: keys and roles, and that a key is never shown."""

from __future__ import annotations

import base64
import hmac
import logging
from pathlib import Path

import pytest

from headrace.config.config import parse
from headrace.errors import ConfigError
from headrace.serve.access import Access, ApiKey, access_of, digest_of, new_key, refuse_unprotected
from headrace.serve.server_options import ServerOptions
from tests.serve.conftest import World
from tests.serve.test_app import EVENT, error_of

NAMED = '[project]\nname = "shop"\n'
KEYS = {role: f"{role}-key-{'x' * 20}" for role in ("read", "write", "admin")}
READS = ["/v1/features/users/ann", "/status.json", "/metrics", "/openapi.json", "/", "/nowhere"]


@pytest.fixture(scope="module")
def world():
    keys = [ApiKey(f"the {role}er", frozenset({role}), digest_of(key)) for role, key in KEYS.items()]
    made = World(terms=ServerOptions(Access(keys)))
    made.pipeline()
    return made


def bearer(role):
    return {"authorization": f"Bearer {KEYS[role]}"}


def sent(world, **more):
    return world.ask("POST", "/v1/events/clicks", json=EVENT, **more)


@pytest.mark.parametrize("path", READS)
def test_reading_needs_a_key_that_may_read(world, path):
    found = 404 if path == "/nowhere" else 200
    assert world.get(path).status_code == 401
    assert world.get(path, headers=bearer("write")).status_code == 403
    assert world.get(path, headers=bearer("read")).status_code == found
    assert world.get(path, headers=bearer("admin")).status_code == found


def test_nobody_is_answered_at_once_without_a_key_that_may_read(world):
    def headers(role):
        return [(b"authorization", bearer(role)["authorization"].encode())]

    at_once, path = world.serving.app.at_once, b"/v1/features/users/ann"
    assert at_once(path, []) is None
    assert at_once(path, headers("write")) is None
    assert at_once(path, headers("read") * 2) is None
    assert at_once(path, headers("read")) == world.get("/v1/features/users/ann", headers=bearer("admin")).content


def test_many_keys_are_read_with_a_key_that_may_read(world):
    asked = {"view": "users", "keys": ["ann"]}
    assert world.ask("POST", "/v1/features", json=asked, headers=bearer("read")).status_code == 200
    assert world.ask("POST", "/v1/features", json=asked, headers=bearer("write")).status_code == 403


def test_events_need_a_key_that_may_write(world):
    assert sent(world).status_code == 401
    assert sent(world, headers=bearer("read")).status_code == 403
    assert sent(world, headers=bearer("write")).status_code == 202
    assert sent(world, headers=bearer("admin")).status_code == 202


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_whoever_looks_after_the_process_needs_no_key(world, path):
    assert world.get(path).status_code == 200


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "brings no API key"),
        ("Bearer", "not known"),
        ("Bearer nonsense", "not known"),
        (f"Token {KEYS['read']}", "not known"),
        (f"Bearer {KEYS['read']}x", "not known"),
        (f"Bearer {KEYS['read'][:-1]}", "not known"),
        ("Basic !!!", "not known"),
        ("Bearer \xe9", "not known"),
    ],
)
def test_a_key_that_is_not_known_is_refused_in_the_one_shape_and_not_shown(world, given, said):
    answer = world.get("/status.json", headers={} if given is None else {"authorization": given.encode("latin-1")})
    assert (answer.status_code, error_of(answer)["code"]) == (401, "no-key")
    assert said in error_of(answer)["message"]
    assert answer.headers["www-authenticate"] == 'Bearer realm="headrace"'
    assert KEYS["read"][:8] not in answer.text


def test_a_key_without_the_role_is_told_which_it_has(world):
    error = error_of(world.get("/status.json", headers=bearer("write")))
    assert (error["code"], error["message"]) == ("wrong-role", "API key 'the writeer' does not have the role read.")
    assert error["hint"] == "Its roles: write."


def test_two_headers_are_no_key(world):
    assert world.get("/status.json", headers=[*bearer("read").items(), *bearer("write").items()]).status_code == 401


def test_a_browser_is_asked_for_the_key_and_sends_it_as_a_password(world):
    assert "Basic" in world.get("/").headers["www-authenticate"]
    given = base64.b64encode(f"me:{KEYS['read']}".encode()).decode()
    assert world.get("/", headers={"authorization": f"Basic {given}"}).status_code == 200


def test_every_key_is_compared_whichever_matches(monkeypatch):
    compared, real = [], hmac.compare_digest

    def watching(one, other):
        compared.append(other)
        return real(one, other)

    monkeypatch.setattr("headrace.serve.access.hmac.compare_digest", watching)
    keys = [ApiKey(str(n), frozenset({"read"}), digest_of(f"key-number-{n}")) for n in range(5)]
    Access(keys).allow("Bearer key-number-0", "read")
    assert compared == [key.digest for key in keys]


def test_no_key_is_in_the_log_the_status_the_metrics_or_a_repr(world, caplog):
    caplog.set_level(logging.DEBUG)
    told = [world.get(path, headers=bearer("read")).text for path in READS]
    told += [world.get("/status.json", headers=bearer("write")).text, caplog.text, repr(world.serving.terms)]
    assert not [text for text in told if any(key in text for key in KEYS.values())]


# settings


def configured(keys, environ=None, root=Path()):
    text = "".join(f'{name} = "{value}"\n' for name, value in keys.items())
    return access_of(parse(f"{NAMED}[serve.keys]\n{text}", root, {}), environ or {})


def test_keys_are_set_as_hashes_variables_or_files(tmp_path):
    (tmp_path / "key").write_text("in-a-file-" + "f" * 16 + "\n")
    given = {
        "hashed": f"read:sha256:{digest_of('hashed-key-hashed-key').hex()}",
        "named": "write:env:THE_KEY",
        "kept": "read+write:file:key",
    }
    access = configured(given, {"THE_KEY": "in-a-variable-vvvvv"}, tmp_path)
    assert [(key.name, sorted(key.roles)) for key in access.keys] == [
        ("hashed", ["read"]),
        ("named", ["write"]),
        ("kept", ["read", "write"]),
    ]
    access.allow("Bearer hashed-key-hashed-key", "read")
    access.allow("Bearer in-a-variable-vvvvv", "write")
    access.allow(f"Bearer in-a-file-{'f' * 16}", "write")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("topsecret", "roles"),
        ("owner:sha256:" + "0" * 64, "roles"),
        ("read:sha256:topsecret", "64 hexadecimal digits"),
        ("read:sha256:" + "A" * 64, "64 hexadecimal digits"),
        ("read:env:NOT_SET", "variable that is not set"),
        ("read:env:SHORT", "at least 16"),
        ("read:env:SPACED", "at least 16"),
        ("read:file:nowhere", "cannot be read"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_by_its_name_and_not_shown(value, said):
    with pytest.raises(ConfigError) as refused:
        configured({"ops": value}, {"SHORT": "topsecret", "SPACED": "topsecret topsecret"})
    assert (refused.value.code, refused.value.where) == ("bad-key", "serve.keys, ops")
    assert said in refused.value.message
    assert "topsecret" not in str(refused.value)


def test_one_key_under_two_names_is_refused():
    with pytest.raises(ConfigError, match="Two names"):
        configured({"a": "read:sha256:" + "0" * 64, "b": "write:sha256:" + "0" * 64})


def test_a_new_key_is_long_and_never_the_same():
    made = {new_key() for _ in range(100)}
    assert len(made) == 100
    assert {len(key) for key in made} == {46}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "features.example"])
def test_without_keys_serving_stays_on_this_machine_unless_it_is_told_otherwise(host):
    text = f'{NAMED}[serve]\nhost = "{host}"\n'
    with pytest.raises(ConfigError) as refused:
        refuse_unprotected(parse(text, Path(), {}))
    assert refused.value.code == "unprotected"
    refuse_unprotected(parse(text + 'without_keys = "anywhere"\n', Path(), {}))
    refuse_unprotected(parse(text + '[serve.keys]\na = "read:env:A"\n', Path(), {}))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_on_this_machine_no_keys_are_needed(host):
    refuse_unprotected(parse(f'{NAMED}[serve]\nhost = "{host}"\n', Path(), {}))
