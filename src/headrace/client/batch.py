"""Several keys in one request: what goes into it, and how many keys go together.

Keys go out as the text that a path would have, so that one key and several are the same to the server. Request values
go out as JSON; what JSON has no form for is refused here.
"""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from headrace.client.address import Key, text_of
from headrace.clock import micros, show_time
from headrace.errors import DataError, shown
from headrace.plural import show_count

TOGETHER = 100
"""Keys in one request: enough that the way to the server costs little, few enough that a retry costs little."""
RequestValues = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
"""What on-demand features take: one mapping for all keys, or one for each."""


def listed(keys: Iterable[Key]) -> list[Key]:
    """Several keys; one alone is refused, for its letters would be several."""
    if isinstance(keys, str | bytes | Mapping):
        raise DataError("bad-argument", "Several keys are a list.", got=shown(keys), hint="Put one key into a list.")
    return list(keys)


def key_json(key: Key) -> Any:
    """A key as a request has it.

    >>> key_json("ann"), key_json((7, True)), key_json({"shop": 7})
    ('ann', ['7', 'true'], {'shop': '7'})
    """
    if isinstance(key, Mapping):
        return {str(name): text_of(value) for name, value in key.items()}
    return [text_of(part) for part in key] if isinstance(key, list | tuple) else text_of(key)


class KeyBatch(NamedTuple):
    """Keys that go together, as a request has them, with their request values."""

    keys: list[Any]
    request: Any


def pieces(keys: Sequence[Key], request: RequestValues, most: int = TOGETHER) -> Iterator[KeyBatch]:
    """All keys in order, some at a time.

    >>> [piece.keys for piece in pieces(["a", "b", "c"], {"n": 1}, most=2)]
    [['a', 'b'], ['c']]
    """
    written = [key_json(key) for key in keys]
    if isinstance(request, list | tuple) and len(request) != len(written):
        message = "Several request values are one mapping for each key."
        raise DataError("bad-argument", message, got=f"{len(request):,} for {show_count(len(written), 'key')}")
    if request is not None and not isinstance(request, Mapping | list | tuple):
        message = "Request values are a mapping by their names, or a list of them."
        raise DataError("bad-argument", message, got=shown(request))
    return _cut(KeyBatch(written, request), most)


def halves(piece: KeyBatch) -> Iterator[KeyBatch]:
    """A piece as two."""
    return _cut(piece, -(-len(piece.keys) // 2))


def _cut(whole: KeyBatch, most: int) -> Iterator[KeyBatch]:
    keys, request = whole
    for start in range(0, len(keys), most):
        part = slice(start, start + most)
        yield KeyBatch(keys[part], request[part] if isinstance(request, list | tuple) else request)


def body_of(name: str, piece: KeyBatch, stale: str | None) -> bytes:
    """The request's JSON."""
    asked: dict[str, Any] = {"view": name, "keys": piece.keys}
    if piece.request is not None:
        asked["request"] = piece.request
    if stale is not None:
        asked["stale"] = stale
    return json_of(asked)


def json_of(asked: Mapping[str, Any]) -> bytes:
    """A request as JSON.

    >>> json_of({"keys": ["42"]})
    b'{"keys":["42"]}'
    """
    try:
        text = json.dumps(asked, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_written)
        return text.encode()
    except (TypeError, ValueError) as error:
        message = "A request value has no JSON text."
        raise DataError("bad-argument", message, got=shown(str(error))) from error


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return show_time(micros(value, "a request value"))
    if isinstance(value, decimal.Decimal) and value.is_finite():
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        plain = value.item()
        if not isinstance(plain, float) or math.isfinite(plain):
            return plain
    raise TypeError(f"{shown(value)} has no form in JSON")
