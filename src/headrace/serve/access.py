"""API keys and what they allow: read values, write events, or everything.

A key is long random text. The settings hold its SHA-256 hash, or say which variable or file holds the key itself; here
are only hashes, compared in constant time over all keys. A fast hash is enough: nobody guesses 256 random bits.
Without keys everything is open, and then serving listens on this machine alone unless a setting says otherwise.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.config.config import Config
from headrace.errors import ConfigError, DataError, shown
from headrace.plural import show_count

READ, WRITE, ADMIN = "read", "write", "admin"
ROLES = (READ, WRITE, ADMIN)
SHORTEST = 16
"""Characters of the shortest key that is taken from a variable or a file."""

_FORM = re.compile(r"([a-z+]+):(sha256|env|file):(.+)", re.DOTALL)
_HASH = re.compile(r"[0-9a-f]{64}")
_HINT = 'Make one with `headrace keys new`, and write it as "read:sha256:HASH", "read:env:NAME" or "read:file:PATH".'


@dataclass(frozen=True)
class ApiKey:
    """A key by its name: what it allows, and its hash."""

    name: str
    roles: frozenset[str]
    digest: bytes = field(repr=False)


class Access:
    """Decides who may do what.

    Examples
    --------
    >>> access = Access([ApiKey("ops", frozenset({"read"}), digest_of("a-key-of-sixteen"))])
    >>> access.allow("Bearer a-key-of-sixteen", "read")
    >>> access.allow("Bearer a-key-of-sixteen", "write")
    Traceback (most recent call last):
    headrace.errors.DataError: API key 'ops' does not have the role write.
    ...
    """

    def __init__(self, keys: Iterable[ApiKey] = ()) -> None:
        self.keys = tuple(keys)

    def allow(self, authorization: str | None, role: str) -> None:
        """Return when the request may be answered; raise `no-key` or `wrong-role` when it may not."""
        if not self.keys:
            return
        digest, found = digest_of(_token(authorization or "")), None
        for key in self.keys:
            # Every key is compared, whichever it is: how long it takes says nothing.
            found = key if hmac.compare_digest(digest, key.digest) else found
        if found is None:
            message = "The request brings no API key." if not authorization else "The API key is not known."
            raise DataError("no-key", message, hint="Send it as `Authorization: Bearer KEY`.")
        if role not in found.roles and ADMIN not in found.roles:
            message = f"API key {found.name!r} does not have the role {role}."
            raise DataError("wrong-role", message, hint=f"Its roles: {', '.join(sorted(found.roles))}.")


def _token(authorization: str) -> str:
    """The key in a header: a bearer token, or the password that a browser asked its user for."""
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


def digest_of(key: str) -> bytes:
    """The hash of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def new_key() -> str:
    """A key nobody has: 256 random bits, with a prefix by which scanners find one that leaked.

    >>> new_key()[:3], len(new_key())
    ('hr_', 46)
    """
    return f"hr_{secrets.token_urlsafe(32)}"


def access_of(config: Config, environ: Mapping[str, str] | None = None) -> Access:
    """The keys a project sets; no message ever shows one."""
    variables = os.environ if environ is None else environ
    keys = [_key(name, form, config.root, variables) for name, form in refuse_malformed(config).items()]
    if len({key.digest for key in keys}) < len(keys):
        hint = "Make a key for each with `headrace keys new`."
        raise ConfigError(
            "bad-key", "Two names in serve.keys have one key.", got=shown([key.name for key in keys]), hint=hint
        )
    return Access(keys)


@dataclass(frozen=True)
class KeyEntry:
    """A key as the settings write it: roles, `sha256`, `env` or `file`, and the hash, variable or path."""

    roles: frozenset[str]
    kind: str
    rest: str = field(repr=False)


def refuse_malformed(config: Config) -> dict[str, KeyEntry]:
    """The keys as they are written, by name; what cannot be meant is refused, and never shown."""
    return {name: _parse_entry(name, text) for name, text in config.serve.keys.items()}


def _parse_entry(name: str, text: str) -> KeyEntry:
    where, found = _where(name), _FORM.fullmatch(text)
    roles = frozenset(found.group(1).split("+")) if found else frozenset[str]()
    if found is None or not roles <= set(ROLES):
        message = "An API key is written as its roles, and where its hash or itself is."
        raise ConfigError("bad-key", message, hint=_HINT, where=where)
    kind, rest = found.group(2), found.group(3)
    if kind == "sha256" and not _HASH.fullmatch(rest):
        message = "The hash of an API key is 64 hexadecimal digits, in lower case."
        raise ConfigError("bad-key", message, got=show_count(len(rest), "character"), hint=_HINT, where=where)
    return KeyEntry(roles, kind, rest)


def _where(name: str) -> str:
    return f"serve.keys, {name}"


def _key(name: str, form: KeyEntry, root: Path, environ: Mapping[str, str]) -> ApiKey:
    if form.kind == "sha256":
        return ApiKey(name, form.roles, bytes.fromhex(form.rest))
    where = _where(name)
    key = _read_hash(form.kind, form.rest, root, environ, where)
    if len(key) < SHORTEST or not all("!" <= sign <= "~" for sign in key):
        message = f"An API key has at least {SHORTEST} visible ASCII characters, without spaces."
        raise ConfigError("bad-key", message, hint="Make one with `headrace keys new`.", where=where)
    return ApiKey(name, form.roles, digest_of(key))


def _read_hash(kind: str, place: str, root: Path, environ: Mapping[str, str], where: str) -> str:
    if kind == "env":
        if place not in environ:
            message = "An API key is to come from a variable that is not set."
            raise ConfigError("bad-key", message, got=shown(place), hint=f"Set {place}.", where=where)
        return environ[place]
    try:
        return (root / place).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        got = getattr(error, "strerror", None) or "it is no text"
        hint = "Look at its path, which begins at the project's folder, and at its permissions."
        raise ConfigError(
            "bad-key", "The file of an API key cannot be read.", got=shown(got), where=where, hint=hint
        ) from None


def refuse_unprotected(config: Config) -> None:
    """Refuse to listen beyond this machine without keys, unless the settings say so."""
    if config.serve.keys or config.serve.without_keys == "anywhere" or is_loopback(config.serve.host):
        return
    hint = 'Add a key to [serve.keys] (`headrace keys new` makes one), or set serve.without_keys = "anywhere".'
    message = "Without API keys, serving listens on this machine alone."
    raise ConfigError("unprotected", message, got=f"serve.host = {shown(config.serve.host)}", hint=hint)


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone; a name other than localhost is not known to be.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
