"""The options of a Kafka client, with Java's names for Spark's connector.

[kafka.options] speaks librdkafka, because that is the client Headrace itself uses. Spark's connector is Java: the
options that most clusters need are translated, and [kafka.spark_options] is for the rest, taken as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace.errors import ConfigError, shown

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
# The same name and the same values on both sides.
_SAME = ("security.protocol", "ssl.key.password", "ssl.cipher.suites", "client.id", "client.rack")
_FILES = {"ssl.certificate.location": "certificate", "ssl.key.location": "key"}


def for_spark(options: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The options of Spark's Kafka source or sink, each with `kafka.` in front.

    Parameters
    ----------
    options
        Those of librdkafka, resolved.
    more
        Those that Spark's connector takes as they are, resolved; they win.

    Examples
    --------
    >>> for_spark({"security.protocol": "SASL_SSL"}, {"request.timeout.ms": "9000"})
    {'kafka.security.protocol': 'SASL_SSL', 'kafka.request.timeout.ms': '9000'}
    """
    # librdkafka takes the protocol in lower case too, Java does not.
    made = {name: options[name] for name in _SAME if name in options}
    if "security.protocol" in made:
        made["security.protocol"] = made["security.protocol"].upper()
    made |= _login(options) | _trusted(options) | _own(options)
    return {name if name.startswith("kafka.") else f"kafka.{name}": value for name, value in {**made, **more}.items()}


def _login(options: Mapping[str, str]) -> dict[str, str]:
    mechanism = options.get("sasl.mechanism", options.get("sasl.mechanisms"))
    if mechanism is None:
        return {}
    made = {"sasl.mechanism": mechanism}
    if mechanism == "PLAIN" or mechanism.startswith("SCRAM-"):
        module = _PLAIN if mechanism == "PLAIN" else _SCRAM
        user, password = (_quoted(options.get(f"sasl.{name}", "")) for name in ("username", "password"))
        made["sasl.jaas.config"] = f"{module} required username={user} password={password};"
    return made


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _trusted(options: Mapping[str, str]) -> dict[str, str]:
    made = {}
    if "ssl.ca.location" in options:
        made = {"ssl.truststore.type": "PEM", "ssl.truststore.location": options["ssl.ca.location"]}
    elif "ssl.ca.pem" in options:
        made = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": options["ssl.ca.pem"]}
    if options.get("ssl.endpoint.identification.algorithm") == "none":
        # Java says "nobody is checked" with an empty text.
        made["ssl.endpoint.identification.algorithm"] = ""
    return made


def _own(options: Mapping[str, str]) -> dict[str, str]:
    """The client's own certificate and key: two files to librdkafka, two texts to Java."""
    texts = {what: options.get(name.replace("location", "pem")) for name, what in _FILES.items()}
    for name, what in _FILES.items():
        if name in options:
            try:
                texts[what] = Path(options[name]).read_text("ascii")
            except (OSError, UnicodeDecodeError) as error:
                message = "A file that an option of Kafka names cannot be read."
                hint = "Look at its path and its permissions."
                raise ConfigError("bad-setting", message, got=shown(str(error), 200), where=name, hint=hint) from None
    certificate, key = texts["certificate"], texts["key"]
    if certificate is None or key is None:
        return {}
    return {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": certificate, "ssl.keystore.key": key}
