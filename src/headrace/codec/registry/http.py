"""Requests to a schema registry: basic authentication, TLS, a time limit, and a few tries when it is busy or away.

What comes back is an `RegistryResponse` in the protocol's words, or an error: `registry-unreachable` when nobody
answers or not like a registry, `registry-refused` when it lets nobody in. A password is never in an error, nor in a
value's repr.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from headrace.clock import SECOND
from headrace.config.settings import RegistryAccess
from headrace.errors import ConfigError, MachineError, shown

TRIES = 3
PAUSE = 0.2
"""Seconds before the second try; each further one waits twice as long."""
LARGEST_ANSWER = 16 * 1024 * 1024
JSON = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True)
class RegistryResponse:
    """What a registry said: the HTTP status and the JSON body; for an error its code and message."""

    status: int
    body: Any
    error: int | None = None
    message: str | None = None


def ask(access: RegistryAccess, method: str, path: str, body: Any = None) -> RegistryResponse:
    """Ask a registry, at most a few times."""
    headers = {"Accept": f"{JSON}, application/json", "Content-Type": JSON} | _authorization(access)
    data = None if body is None else json.dumps(body).encode()
    last = "no answer"
    for tried in range(TRIES):
        if tried:
            time.sleep(PAUSE * 2 ** (tried - 1))
        try:
            status, text = _request(access, method, path, headers, data)
        except (OSError, http.client.HTTPException) as error:
            last = f"{type(error).__name__}: {error}"
            continue
        if status == 429 or status >= 500:
            last = f"status {status}"
            continue
        return _answer(access, status, text)
    hint = "Start it, or correct `schema.registry`; records that need it wait until it answers."
    raise MachineError("registry-unreachable", "The schema registry cannot be reached.", got=last, hint=hint).inside(
        "the schema registry", access.address
    )


def strange(access: RegistryAccess, answer: RegistryResponse) -> MachineError:
    """The error for an answer that is not in the protocol's words, or a refusal that nobody expected."""
    told = f"status {answer.status}: {answer.message or shown(answer.body)}"
    if answer.error is not None and 400 <= answer.status < 500 and answer.status != 404:
        message, code = "The schema registry refused a request.", "registry-refused"
    else:
        message, code = "The schema registry does not answer as one.", "registry-unreachable"
    hint = "Is `schema.registry` the address of a registry that speaks the Confluent protocol?"
    return MachineError(code, message, got=told, hint=hint, where=access.address)


def _request(
    access: RegistryAccess, method: str, path: str, headers: dict[str, str], data: bytes | None
) -> tuple[int, bytes]:
    place = urlsplit(access.address)
    seconds, host = access.timeout / SECOND, place.hostname or ""
    if place.scheme == "https":
        secure = http.client.HTTPSConnection(host, place.port, timeout=seconds, context=_trust(access))
        connection: http.client.HTTPConnection = secure
    else:
        connection = http.client.HTTPConnection(host, place.port, timeout=seconds)
    try:
        connection.request(method, place.path.rstrip("/") + path, body=data, headers=headers)
        response = connection.getresponse()
        text = response.read(LARGEST_ANSWER + 1)
    finally:
        connection.close()
    if len(text) > LARGEST_ANSWER:
        raise http.client.HTTPException(f"the answer is larger than {LARGEST_ANSWER:,} bytes")
    return response.status, text


def _trust(access: RegistryAccess) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=access.ca or None)
        if access.certificate:
            context.load_cert_chain(access.certificate, access.key or None)
    except (OSError, ssl.SSLError) as error:
        message = "The certificates for the schema registry cannot be read."
        hint = "Look at the paths in [schema], and at the permissions of their files."
        raise ConfigError("bad-setting", message, got=shown(str(error)), where="[schema]", hint=hint) from None
    return context


def _authorization(access: RegistryAccess) -> dict[str, str]:
    if not access.user:
        return {}
    pair = f"{access.user}:{_secret(access.password)}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def _secret(named: str) -> str:
    """The password behind `env:NAME`, read where it is used so that no value carries it."""
    variable = named.removeprefix("env:")
    if not named:
        return ""
    if variable not in os.environ:
        message = "The variable that holds the registry's password is not set."
        hint = "Set it, or name another in schema.registry_password."
        raise ConfigError("bad-setting", message, got=shown(variable), where="schema.registry_password", hint=hint)
    return os.environ[variable]


def _answer(access: RegistryAccess, status: int, text: bytes) -> RegistryResponse:
    if status in (401, 403):
        hint = "Set `schema.registry_user` and `schema.registry_password`."
        message = "The schema registry lets nobody in with these credentials."
        raise MachineError("registry-refused", message, got=f"status {status}", hint=hint, where=access.address)
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise strange(access, RegistryResponse(status, text[:200])) from None
    if status < 300:
        return RegistryResponse(status, body)
    error, told = (body.get("error_code"), body.get("message")) if isinstance(body, dict) else (None, None)
    if type(error) is not int:
        raise strange(access, RegistryResponse(status, body))
    return RegistryResponse(status, body, error, None if told is None else str(told))
