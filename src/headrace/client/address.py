"""Addresses: the URL of a service as it was given, and the path of a view's key below it.

A URL never carries credentials: they would be in every error and log line that names it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from headrace.errors import DataError, shown
from headrace.http_paths import FEATURES, fill_path

if TYPE_CHECKING:
    from headrace.define.dimension import Keyed
    from headrace.define.feature_set import FeatureSet

Key = str | int | bool | Sequence[str | int | bool] | Mapping[str, str | int | bool]
"""One value; several in the order of the view's columns; or by their names."""

_CREDENTIALS = re.compile(r"//.*@")


@dataclass(frozen=True)
class Address:
    """Where a service answers.

    >>> address_of("https://features.example/shop/")
    Address(url='https://features.example/shop', secure=True, host='features.example', port=None, prefix='/shop')
    """

    url: str
    secure: bool
    host: str
    port: int | None
    prefix: str


def address_of(url: Any) -> Address:
    """Read a URL; what is not the address of a service is refused."""
    hint = "Give the address alone, as in http://127.0.0.1:8080."
    if not isinstance(url, str) or not url.isprintable() or " " in url:
        raise DataError("bad-argument", "The URL of a service cannot be read.", got=shown(url), hint=hint)
    safe = _CREDENTIALS.sub("//...@", url)
    if safe != url:
        message, hint = "The URL of a service carries credentials.", "Leave them out, and give a key as `api_key`."
        raise DataError("bad-argument", message, got=shown(safe), hint=hint)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise DataError("bad-argument", "The URL of a service cannot be read.", got=shown(safe), hint=hint)
    return Address(url.rstrip("/"), parts.scheme == "https", host, port, quote(parts.path.rstrip("/"), safe="/%"))


def features_path(view: str | Keyed | FeatureSet, key: Key, at: str | datetime | None = None) -> str:
    """The path of a key's features, now or at a moment: values in order as segments, values by name as the query.

    >>> features_path("cards", "a/b"), features_path("shops", (7, True)), features_path("shops", {"id": 7})
    ('/v1/features/cards/a%2Fb', '/v1/features/shops/7/true', '/v1/features/shops?id=7')
    >>> features_path("everyone", (), at="2026-01-01T12:00:00Z")
    '/v1/features/everyone?at=2026-01-01T12%3A00%3A00Z'
    """
    query = {} if at is None else {"at": at if isinstance(at, str) else at.isoformat()}
    parts: Sequence[Any] = key if isinstance(key, list | tuple) else [key]
    if isinstance(key, Mapping):
        query, parts = {str(name): text_of(value) for name, value in key.items()} | query, ()
    path = fill_path(FEATURES, named(view), *map(text_of, parts))
    return f"{path}?{urlencode(query)}" if query else path


def named(thing: Any) -> str:
    """The name of a view, feature set or stream, given as itself or as text."""
    name = getattr(thing, "name", thing)
    if not isinstance(name, str):
        raise DataError("bad-argument", "A view or stream is named by text, or given itself.", got=shown(thing))
    return _encodable(name)


def text_of(part: Any) -> str:
    """One value of a key as a path writes it.

    >>> text_of(True), text_of(7)
    ('true', '7')
    """
    if type(part).__module__ == "numpy" and hasattr(part, "item"):
        part = part.item()  # A column of a table is a list of keys too.
    match part:
        case bool():
            return "true" if part else "false"
        case int():
            return str(part)
        case str():
            return _encodable(part)
    hint = "A key is one value, a tuple of values in the order of the view's columns, or a dict by their names."
    raise DataError("bad-argument", "A key's values are text, whole numbers or booleans.", got=shown(part), hint=hint)


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError("bad-argument", "A string holds half of a surrogate pair.", got=shown(text)) from None
    return text
