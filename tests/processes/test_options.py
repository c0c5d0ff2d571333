"""Options of Kafka clients: secrets from the environment, and what Spark's connector is told."""

from __future__ import annotations

import pytest

from headrace.config.config import resolved
from headrace.errors import ConfigError
from headrace.log.kafka.options import for_spark


def test_an_option_comes_from_the_environment_when_it_says_so():
    found = resolved({"sasl.username": "ada", "sasl.password": "env:SECRET"}, {"SECRET": "open sesame"})
    assert found == {"sasl.username": "ada", "sasl.password": "open sesame"}


def test_a_variable_that_is_not_set_is_refused_by_its_name():
    with pytest.raises(ConfigError) as caught:
        resolved({"sasl.password": "env:SECRET"}, {})
    assert (caught.value.code, caught.value.got, caught.value.where) == ("bad-setting", "'SECRET'", "sasl.password")


def test_a_plain_login_becomes_javas():
    found = for_spark(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "ada",
            "sasl.password": 'a"b\\c',
        },
        {},
    )
    assert found == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": (
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="a\\"b\\\\c";'
        ),
    }


def test_a_scram_login_names_its_own_module():
    found = for_spark({"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "a", "sasl.password": "b"}, {})
    assert "scram.ScramLoginModule" in found["kafka.sasl.jaas.config"]


def test_a_mechanism_that_is_not_translated_is_left_to_sparks_own_options():
    more = {"sasl.jaas.config": "module required;", "sasl.login.callback.handler.class": "x.Y"}
    found = for_spark({"sasl.mechanism": "OAUTHBEARER"}, more)
    assert found == {
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.jaas.config": "module required;",
        "kafka.sasl.login.callback.handler.class": "x.Y",
    }


def test_certificates_become_pem_stores(tmp_path):
    (tmp_path / "own.crt").write_text("CERTIFICATE")
    (tmp_path / "own.key").write_text("KEY")
    found = for_spark(
        {
            "ssl.ca.location": "/etc/ca.pem",
            "ssl.certificate.location": str(tmp_path / "own.crt"),
            "ssl.key.location": str(tmp_path / "own.key"),
            "ssl.key.password": "x",
            "ssl.endpoint.identification.algorithm": "none",
        },
        {},
    )
    assert found == {
        "kafka.ssl.key.password": "x",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": "/etc/ca.pem",
        "kafka.ssl.endpoint.identification.algorithm": "",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "CERTIFICATE",
        "kafka.ssl.keystore.key": "KEY",
    }


def test_certificates_given_as_text_stay_text():
    found = for_spark({"ssl.ca.pem": "CA", "ssl.certificate.pem": "C", "ssl.key.pem": "K"}, {})
    assert found["kafka.ssl.truststore.certificates"] == "CA"
    assert (found["kafka.ssl.keystore.certificate.chain"], found["kafka.ssl.keystore.key"]) == ("C", "K")


def test_a_certificate_that_cannot_be_read_is_refused():
    with pytest.raises(ConfigError) as caught:
        for_spark({"ssl.certificate.location": "/nowhere/own.crt"}, {})
    assert caught.value.where == "ssl.certificate.location"


def test_sparks_own_options_win_and_may_carry_their_prefix():
    found = for_spark({"client.id": "a"}, {"kafka.client.id": "b", "request.timeout.ms": "5"})
    assert found == {"kafka.client.id": "b", "kafka.request.timeout.ms": "5"}
