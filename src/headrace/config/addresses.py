"""Addresses as settings and definitions have them: of storage, of HTTP, of brokers, of a Redis.

Each function says what is wrong with one, in a few words, or None. None of them asks the network.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

STORAGE = ("s3", "gs", "abfs", "abfss", "file")
"""Object storage that both deltalake and pyarrow reach, each by the same address."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
_REDIS_OPTION = re.compile(r"(?:db=[0-9]{1,4}|(?:ssl_ca_certs|ssl_certfile|ssl_keyfile)=[^&@\s]+)")
_VARIABLE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")


def host_fault(host: str) -> str | None:
    """What is wrong with a name or an IP address.

    >>> host_fault("127.0.0.1"), host_fault("::1"), host_fault("256.0.0.1")
    (None, None, 'no IP address')
    """
    if re.fullmatch(r"[0-9.]+|.*:.*", host):
        try:
            ip_address(host)
        except ValueError:
            return "no IP address"
        return None
    return None if _NAME.fullmatch(host) else "no host"


def broker_fault(text: str) -> str | None:
    """What is wrong with one `host:port`.

    >>> broker_fault("here:9092"), broker_fault("[::1]:9092"), broker_fault("here:99999")
    (None, None, 'no port from 1 to 65535')
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 1 <= int(port[:9]) <= 65_535:
        return "no port from 1 to 65535"
    return host_fault(host[1:-1] if host.startswith("[") and host.endswith("]") else host.replace(":", " "))


def brokers_fault(text: str) -> str | None:
    """What is wrong with brokers, which have commas between them."""
    return next((fault for each in text.split(",") if (fault := broker_fault(each))), None)


def variable_fault(text: str) -> str | None:
    """What is wrong with the name of a variable that holds a secret.

    >>> variable_fault("env:REDIS_URL"), variable_fault("open sesame")
    (None, 'no name of a variable')
    """
    return None if _VARIABLE.fullmatch(text) else "no name of a variable"


def http_fault(text: str) -> str | None:
    """What is wrong with an address of HTTP; a user in it would be a password in a file.

    >>> http_fault("https://registry:8081/api"), http_fault("http://:8081"), http_fault("ftp://registry")
    (None, 'no host', 'neither http:// nor https://')
    """
    if not text.startswith(("http://", "https://")):
        return "neither http:// nor https://"
    if re.search(r"[\s@?#\0]", text):
        return "a user, a query or a space"
    return _authority_fault(text)


def redis_fault(text: str) -> str | None:
    """What is wrong with the address of a Redis, or with the name of a variable that holds it.

    >>> redis_fault("redis://here:6379/3"), redis_fault("env:REDIS_URL"), redis_fault("redis://here:6379/three")
    (None, None, 'no number of a database')
    """
    if variable_fault(text) is None:
        return None
    place, question, options = text.partition("?")
    if question and not all(_REDIS_OPTION.fullmatch(each) for each in options.split("&")):
        return "an option that an address does not take"
    if re.search(r"[\s@#\0]", text):
        return "a user or a space"
    if place.startswith("unix://"):
        return None if place.startswith("unix:///") and len(place) > len("unix:///") else "no path of a socket"
    if not place.startswith(("redis://", "rediss://")):
        return "neither redis://, rediss:// nor unix://"
    fault = _authority_fault(place)
    return fault or (None if re.fullmatch(r"/?[0-9]{0,4}", urlsplit(place).path) else "no number of a database")


def storage_fault(text: str) -> str | None:
    """What is wrong with a folder, or with an address of object storage.

    >>> storage_fault("data/lake"), storage_fault("s3://bucket/lake"), storage_fault("ftp://here/lake")
    (None, None, 'no storage that can be reached: ftp://')
    """
    if not text.strip() or "\0" in text:
        return "no path"
    scheme, separator, rest = text.partition("://")
    if not separator:
        return "one slash where an address has two" if _SCHEME.match(text) else None
    if scheme not in STORAGE:
        return f"no storage that can be reached: {scheme[:20]}://"
    if scheme == "file":
        return None if rest.startswith("/") else "no path from the root"
    return None if rest.split("/", 1)[0].strip() and not re.search(r"[\s?#]", text) else "no bucket"


def folder_fault(text: str) -> str | None:
    """What is wrong with a file or folder of this machine.

    >>> folder_fault("models"), folder_fault("s3://bucket/models")
    (None, 'an address, not a path')
    """
    if not text.strip() or "\0" in text:
        return "no path"
    return "an address, not a path" if _SCHEME.match(text) else None


def _authority_fault(text: str) -> str | None:
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError:
        return "no port from 1 to 65535"
    if port == 0:
        return "no port from 1 to 65535"
    return host_fault(host) if host else "no host"
