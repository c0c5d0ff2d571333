"""The registry client, against exchanges as the protocol's reference has them and a small server of our own."""

from __future__ import annotations

import json
import pickle
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.codec.registry import client as registry_client
from headrace.codec.registry import http as registry_http
from headrace.codec.registry.client import RegistryClient
from headrace.codec.registry.files import SchemaFiles
from headrace.codec.registry.ids import ProjectIds, check_subject
from headrace.codec.wire import Laid, Written, decoder, encoder, own_text, schema_id
from headrace.config.settings import RegistryAccess
from headrace.errors import ConfigError, HeadraceError, MachineError, SchemaError
from headrace.types.field_types import schema_of
from tests.codec.registry_server import RegistryServer, serving

EXCHANGES: dict[str, tuple[int, Any]] = {
    asked: (status, body)
    for asked, status, body in json.loads(Path(__file__).with_name("registry_exchanges.json").read_text())["exchanges"]
}
FIELDS = {"id": str, "amount": float, "at": hr.Timestamp}
THEIRS = """{"type": "record", "name": "Payment", "namespace": "com.shop", "fields": [
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "id", "type": "string"},
    {"name": "source", "type": {"type": "enum", "name": "S", "symbols": ["web", "app"]}, "default": "web"},
    {"name": "amount", "type": "double"}]}"""


class Replay(RegistryServer):
    """Answers as the protocol's reference says."""

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        return EXCHANGES[self.asked[-1]]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry_http, "PAUSE", 0.0)
    registry_client._memory.clear()
    registry_client._unknown.clear()
    yield
    registry_client._memory.clear()
    registry_client._unknown.clear()


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with serving(RegistryServer()) as made:
        yield made


def client_of(server: RegistryServer, tmp_path: Path, **access: Any) -> RegistryClient:
    return RegistryClient(RegistryAccess(server.address, **access), tmp_path / "registry")


def payments(format: str = "confluent-avro", **fields: Any) -> Any:
    return hr.stream("payments", fields=fields or FIELDS, event_id="id", event_time="at", format=format)


def test_the_answers_of_the_protocols_reference_are_understood(tmp_path: Path):
    with serving(Replay()) as server:
        client = client_of(server, tmp_path)
        assert client.schema_by_id(1) == Written('{"type": "string"}')
        assert client.schema_by_id(2) == Written('{"type":"object"}', "JSON")
        assert client.schema_by_id(3).kind == "AVRO with references"
        assert client.schema_by_id(9) is None
        assert client.ids("test") == (1, 12)
        assert client.ids("gone") == ()
        assert (client.latest("test").number, client.latest("test").version) == (12, 2)
        assert client.latest("gone") is None
        assert client.register("test", Written('"string"')) == 1
        assert client.incompatible("test", Written('"string"')) == ()
        assert client.incompatible("gone", Written('"string"')) == ()
        assert client.incompatible("closed", Written('"string"')) == ("READER_FIELD_MISSING_DEFAULT_VALUE",)
        with pytest.raises(SchemaError, match="refuses a schema for subject 'closed'"):
            client.register("closed", Written('"string"'))
        with pytest.raises(MachineError) as refused:
            client.register("odd", Written("{"))
    assert (refused.value.code, refused.value.got) == ("registry-refused", "status 422: Invalid Avro schema")


def test_a_schema_is_asked_for_once_and_then_kept_on_disk(server: RegistryServer, tmp_path: Path):
    number = server.register("payments-value", THEIRS)
    client = client_of(server, tmp_path)
    assert client.schema_by_id(number) == client.schema_by_id(number) == Written(THEIRS)
    assert server.asked == ["GET /schemas/ids/1"]
    registry_client._memory.clear()
    assert client.schema_by_id(number) == Written(THEIRS)
    assert len(server.asked) == 1


def test_a_damaged_cache_is_fetched_again(server: RegistryServer, tmp_path: Path):
    number = server.register("payments-value", THEIRS)
    client = client_of(server, tmp_path)
    client.schema_by_id(number)
    next((tmp_path / "registry").rglob("1.json")).write_text("{")
    registry_client._memory.clear()
    assert client.schema_by_id(number) == Written(THEIRS)
    assert len(server.asked) == 2


def test_an_unknown_number_is_asked_for_again_after_a_while(server: RegistryServer, tmp_path: Path):
    now = [100.0]
    client = RegistryClient(RegistryAccess(server.address), tmp_path, lambda: now[0])
    assert client.schema_by_id(1) is None
    assert client.schema_by_id(1) is None
    assert len(server.asked) == 1
    server.register("payments-value", THEIRS)
    now[0] += 31
    assert client.schema_by_id(1) == Written(THEIRS)


def test_a_number_that_no_registry_can_have_is_unknown_without_asking(server: RegistryServer, tmp_path: Path):
    # Registries number with 32 signed bits; asked for more they do not even understand the question.
    assert client_of(server, tmp_path).schema_by_id(2**31) is None
    assert server.asked == []


def test_a_busy_registry_is_asked_again(server: RegistryServer, tmp_path: Path):
    number = server.register("payments-value", THEIRS)
    server.broken = [(503, b"{}"), (429, b"{}")]
    assert client_of(server, tmp_path).schema_by_id(number) == Written(THEIRS)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    "answer",
    [(404, b"<html>not here</html>"), (404, b'{"detail": "no route"}'), (200, b"hello"), (200, b"[]"), (500, b"{}")],
)
def test_only_the_protocols_own_words_make_a_number_unknown(
    server: RegistryServer, tmp_path: Path, answer: tuple[int, bytes]
):
    server.broken = [answer] * 3
    with pytest.raises(MachineError) as error:
        client_of(server, tmp_path).schema_by_id(1)
    assert error.value.code == "registry-unreachable"
    assert server.address in str(error.value)


def test_a_registry_that_is_away_is_an_error_after_a_few_tries(tmp_path: Path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    client = RegistryClient(RegistryAccess(address), tmp_path)
    with pytest.raises(MachineError, match="cannot be reached") as error:
        client.schema_by_id(1)
    assert error.value.got.startswith("ConnectionRefusedError")
    with pytest.raises(MachineError):
        decoder(payments(), client)(b"\0\0\0\0\1abc")


def test_a_registry_that_does_not_answer_in_time_is_an_error(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        client = RegistryClient(RegistryAccess(address, timeout=50_000), tmp_path)
        with pytest.raises(MachineError) as error:
            client.schema_by_id(1)
    assert error.value.code == "registry-unreachable"


def test_a_password_is_sent_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with serving(RegistryServer("ann", "open sesame")) as server:
        server.register("payments-value", THEIRS)
        client = client_of(server, tmp_path, user="ann", password="env:REGISTRY_PASSWORD")
        with pytest.raises(ConfigError, match="is not set") as unset:
            client.schema_by_id(1)
        monkeypatch.setenv("REGISTRY_PASSWORD", "wrong horse")
        with pytest.raises(MachineError) as refused:
            client.schema_by_id(1)
        monkeypatch.setenv("REGISTRY_PASSWORD", "open sesame")
        assert client.schema_by_id(1) == Written(THEIRS)
        told = f"{unset.value}{refused.value}{client!r}{pickle.dumps(client)!r}"
    assert refused.value.code == "registry-refused"
    assert "sesame" not in told
    assert "wrong horse" not in told


def test_a_registry_behind_tls_is_trusted_through_its_own_authority(tmp_path: Path):
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out cert.pem -subj /CN=127.0.0.1"
    subprocess.run(
        [*made.split(), "-addext", "subjectAltName=IP:127.0.0.1"], cwd=tmp_path, check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with serving(RegistryServer(), context) as server:
        server.register("payments-value", THEIRS)
        with pytest.raises(MachineError) as untrusted:
            client_of(server, tmp_path).schema_by_id(1)
        trusted = client_of(server, tmp_path, ca=str(tmp_path / "cert.pem"))
        assert trusted.schema_by_id(1) == Written(THEIRS)
        with pytest.raises(ConfigError, match="certificates"):
            client_of(server, tmp_path, ca=str(tmp_path / "none.pem")).latest("payments-value")
    assert "CERTIFICATE_VERIFY_FAILED" in str(untrusted.value)


def test_rows_are_written_with_the_producers_schema_when_it_holds_every_field(server: RegistryServer, tmp_path: Path):
    number = server.register("payments-value", THEIRS)
    client = client_of(server, tmp_path)
    data = encoder(payments(), client)({"id": "p1", "amount": 2.5, "at": "2026-01-01T00:00:00Z"})
    assert int.from_bytes(data[1:5], "big") == number
    assert decoder(payments(), client)(data).row == {"id": "p1", "amount": 2.5, "at": 1767225600000000}
    assert server.subjects == {"payments-value": [number]}


def test_a_field_the_producers_schema_lacks_brings_the_streams_own(server: RegistryServer, tmp_path: Path):
    server.register("eu.payments-value", THEIRS)
    client, stream = client_of(server, tmp_path), payments(**FIELDS, country=str | None)
    data = encoder(stream, client, "eu.payments")({"id": "p", "amount": 1, "at": 0, "country": "DE"})
    assert int.from_bytes(data[1:5], "big") == 2
    assert json.loads(server.schemas[2]["schema"]) == json.loads(own_text(stream))
    assert server.subjects["eu.payments-value"] == [1, 2]
    assert (decoder(stream, client)(data).row or {})["country"] == "DE"


def test_json_rows_get_a_json_schema(server: RegistryServer, tmp_path: Path):
    stream, client = payments("confluent-json"), client_of(server, tmp_path)
    row = {"id": "p", "amount": 1, "at": 0}
    assert encoder(stream, client)(row) == encoder(stream, client)(row)
    assert server.schemas[1]["schemaType"] == "JSON"
    assert json.loads(server.schemas[1]["schema"])["required"] == ["id", "amount", "at"]


def test_a_stream_that_reads_the_newest_schema_passes(server: RegistryServer, tmp_path: Path):
    client = client_of(server, tmp_path)
    check_subject(client, payments(), "payments")
    server.register("payments-value", THEIRS)
    check_subject(client, payments(), "payments")
    check_subject(client, payments(**FIELDS, country=str | None), "payments")


def test_a_stream_that_cannot_read_the_newest_schema_is_refused_with_the_difference(
    server: RegistryServer, tmp_path: Path
):
    server.register("payments-value", THEIRS)
    stream = payments(id=str, amount=int, at=hr.Timestamp, country=str)
    with pytest.raises(SchemaError) as error:
        check_subject(client_of(server, tmp_path), stream, "payments")
    assert error.value.code == "incompatible-schema"
    assert "version 1 of subject 'payments-value': `~ amount float -> integer`, `+ country string`" in str(error.value)


def test_a_subject_of_another_type_is_refused(server: RegistryServer, tmp_path: Path):
    server.register("payments-value", 'syntax = "proto3";', "PROTOBUF")
    with pytest.raises(SchemaError, match="is of type PROTOBUF"):
        check_subject(client_of(server, tmp_path), payments(), "payments")


def test_a_schema_the_registry_would_turn_away_is_refused_at_check(server: RegistryServer, tmp_path: Path):
    server.register("payments-value", THEIRS)
    server.refuses = ["READER_FIELD_MISSING_DEFAULT_VALUE"]
    client = client_of(server, tmp_path)
    check_subject(client, payments(), "payments")
    with pytest.raises(SchemaError, match="would not take the schema") as error:
        check_subject(client, payments(**FIELDS, country=str | None), "payments")
    assert error.value.got == "READER_FIELD_MISSING_DEFAULT_VALUE"


def test_the_projects_own_registry_has_a_number_for_every_version(tmp_path: Path):
    first, second = schema_of({"n": int}), schema_of({"n": int, "note": str | None})
    registry = SchemaFiles(tmp_path)
    registry.register("clicks", first)
    registry.register("clicks", second)
    ids = ProjectIds(tmp_path, ())
    numbers = ids.ids("eu.clicks-value")
    texts = [own_text(Laid("clicks", schema, "confluent-avro")) for schema in (first, second)]
    assert numbers == tuple(map(schema_id, texts))
    assert [ids.schema_by_id(number).text for number in numbers] == texts
    assert ids.schema_by_id(1) is None
    # A record of the first version is read by the stream as it is now.
    old, now = Laid("clicks", first, "confluent-avro"), Laid("clicks", second, "confluent-avro")
    assert decoder(now, ids)(encoder(old)({"n": 7})).row == {"n": 7, "note": None}


def test_a_stream_is_known_before_its_schema_is_registered(tmp_path: Path):
    ids = ProjectIds(tmp_path / "none", (Laid("clicks", schema_of({"n": int}), "confluent-avro"),))
    (number,) = ids.ids("clicks-value")
    assert ids.schema_by_id(number) is not None


def test_a_project_with_a_registry_is_checked_against_it(server: RegistryServer, tmp_path: Path):
    from headrace import project

    (tmp_path / "headrace.toml").write_text(
        f'[project]\nname = "shop"\n[schema]\nregistry = "{server.address}"\nregistry_timeout = "2s"\n'
    )
    (tmp_path / "features.py").write_text(
        "import headrace as hr\n"
        'payments = hr.stream("payments", fields={"id": str, "amount": int, "at": hr.Timestamp}, event_time="at",\n'
        '    format="confluent-avro")\n'
        'by_id = hr.view("by_id", payments, by="id", features={"n": hr.count(over="1h")})\n'
    )
    loaded = project.load(tmp_path)
    loaded.check_schemas()
    server.register("payments-value", THEIRS)
    with pytest.raises(HeadraceError, match="`~ amount float -> integer`"):
        loaded.check_schemas()
