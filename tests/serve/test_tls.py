"""https: a certificate of one's own, and what is said of one that cannot be used."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import ipaddress
import json
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import headrace as hr
from headrace.errors import ConfigError, MachineError
from headrace.serve.tls import certificate_of, trusting
from headrace.supervisor import stack
from tests.serve.process import served


def made(folder, name, password=None):
    """A self-signed certificate for the loopback address and its key, as two files."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    locked = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    files = folder / f"{name}.pem", folder / f"{name}.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(text)
    return tuple(map(str, files))


@pytest.mark.xdist_group("live")
def test_values_are_served_over_https_and_not_in_the_clear(tmp_path):
    certificate, key = made(tmp_path, "own")
    with served(tmp_path, 'certificate = "own.pem"\ncertificate_key = "own.key"\n', ready=False) as process:
        told = json.loads((tmp_path / ".headrace" / "run" / "serve.json").read_text())
        url = stack.address(told["host"], told["port"], told["scheme"])
        assert url == f"https://127.0.0.1:{process.port}"
        assert stack.answers(f"{url}/health")
        with hr.Client(url, tls=ssl.create_default_context(cafile=certificate)) as client:
            assert client.features("users", "ann").features == {"clicks_1h": 0}
        with hr.Client(url, tls=trusting(certificate)) as client:
            assert client.status()["project"] == "shop"
        with hr.Client(url, retries=0) as client, pytest.raises(MachineError, match="over TLS"):
            client.features("users", "ann")
        plain = http.client.HTTPConnection("127.0.0.1", process.port, timeout=10)
        with contextlib.closing(plain):
            plain.request("GET", "/health")
            with pytest.raises((http.client.HTTPException, OSError)):
                plain.getresponse()
        assert process.end() == 0
    assert key


def test_another_certificate_is_not_trusted(tmp_path):
    (one, _), (other, key) = made(tmp_path, "one"), made(tmp_path, "other")
    from tests.client.conftest import scripted

    server = certificate_of(other, key)
    with scripted((200, {}, "{}"), tls=server) as script:
        with (
            hr.Client(script.url, retries=0, tls=trusting(one)) as client,
            pytest.raises(MachineError, match="over TLS"),
        ):
            client.status()
        with hr.Client(script.url, retries=0, tls=trusting(other)) as client:
            assert client.status() == {}


def test_a_key_in_the_certificates_own_file_needs_no_other(tmp_path):
    certificate, key = made(tmp_path, "own")
    both = tmp_path / "both.pem"
    both.write_text((tmp_path / "own.pem").read_text() + (tmp_path / "own.key").read_text())
    assert isinstance(certificate_of(str(both), ""), ssl.SSLContext)
    assert (certificate, key) == (str(tmp_path / "own.pem"), str(tmp_path / "own.key"))


def test_what_cannot_be_used_is_refused_with_what_is_wrong(tmp_path):
    certificate, key = made(tmp_path, "own")
    _, others = made(tmp_path, "other")
    _, locked = made(tmp_path, "locked", b"open sesame")
    (tmp_path / "empty").write_text("")
    empty, nowhere = str(tmp_path / "empty"), str(tmp_path / "nowhere")
    said = {
        (certificate, others): "does not belong",
        (certificate, locked): "has a password",
        (certificate, nowhere): "serve.certificate_key cannot be read",
        (nowhere, key): "serve.certificate cannot be read",
        (certificate, empty): "cannot be read",
        (empty, key): "cannot be read",
        (certificate, ""): "in the same file",
        ("", key): "has no certificate",
        (str(tmp_path), key): "serve.certificate cannot be read",
    }
    for files, message in said.items():
        with pytest.raises(ConfigError) as refused:
            certificate_of(*files)
        assert refused.value.code == "bad-certificate"
        assert message in refused.value.message, files
        assert "PRIVATE" not in str(refused.value)
