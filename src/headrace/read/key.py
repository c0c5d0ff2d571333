"""Keys as requests write them: path segments in the order of the view's key, or named in the query.

A string is taken as it is, the empty one included (`/v1/features/cards/` asks for the key ""); an integer has no plus
sign and no leading zeros; a boolean is `true` or `false`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, unquote_to_bytes

from headrace.define.dimension import Keyed
from headrace.errors import DataError, did_you_mean, shown
from headrace.http_paths import FEATURES, fixed_part
from headrace.tiles.changelog import Key, KeyPart
from headrace.types.field_types import LARGEST_INTEGER, SMALLEST_INTEGER, Boolean, Integer, Type

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


def segments(raw: bytes) -> list[str]:
    """The parts of a path below a view, percent-decoded; a slash inside a key is `%2F`.

    >>> segments(b"/a%2Fb/"), segments(b"/"), segments(b"")
    (['a/b', ''], [''], [])
    """
    return [_text(part) for part in raw.split(b"/")[1:]]


def named(query: bytes) -> dict[str, str]:
    """The query's parameters, each at most once.

    >>> named(b"card=4%2B2&country=")
    {'card': '4+2', 'country': ''}
    """
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError as error:
        hint = "Write other characters as the percent signs of their UTF-8 bytes."
        raise DataError(
            "bad-request", "The query is not percent-encoded UTF-8.", got=shown(query), hint=hint
        ) from error
    found = dict(pairs)
    if len(found) < len(pairs):
        hint = "Name each column of the key once."
        raise DataError("bad-request", "A query parameter is given twice.", got=shown(query), hint=hint)
    return found


def key_of(view: Keyed, parts: Sequence[str]) -> Key:
    """A key from its parts in order."""
    if len(parts) != len(view.by):
        path = "/".join([fixed_part(FEATURES) + view.name, *(f"{{{name}}}" for name in view.by)])
        message = (
            f"{type(view).__name__} {view.name!r} is kept by {_columns(len(view.by))}, but the path names {len(parts)}."
        )
        hint = f"Ask for {path} and write a slash inside a key as %2F."
        raise DataError("bad-request", message, got=shown(list(parts)), hint=hint)
    return tuple(part_of(name, kind, part) for (name, kind), part in zip(view.key_types, parts, strict=True))


def key_of_names(view: Keyed, given: Mapping[str, str]) -> Key:
    """A key from its parts by name."""
    for name in given:
        if name not in view.by:
            message = f"{type(view).__name__} {view.name!r} has no such column in its key."
            raise DataError("bad-request", message, got=shown(name), hint=did_you_mean(name, view.by))
    missing = [name for name in view.by if name not in given]
    if missing:
        message = f"{type(view).__name__} {view.name!r} needs its whole key."
        raise DataError("bad-request", message, got=shown(dict(given)), hint=f"Give {', '.join(missing)} too.")
    return key_of(view, [given[name] for name in view.by])


def _columns(count: int) -> str:
    return {0: "no column", 1: "one column"}.get(count, f"{count} columns")


def part_of(name: str, kind: Type, text: str) -> KeyPart:
    """One value of a key from its text.

    >>> part_of("shop", Integer(), "7")
    7
    """
    match kind:
        case Integer():
            if _INTEGER.fullmatch(text) and SMALLEST_INTEGER <= int(text) <= LARGEST_INTEGER:
                return int(text)
        case Boolean():
            if text in ("true", "false"):
                return text == "true"
        case _:
            return text
    message = f"The key column {name!r} is of type {kind}."
    raise DataError("bad-request", message, got=shown(text), hint=_HINTS[kind.name])


_HINTS = {"integer": "Write a whole number of 64 bits, as in -42.", "boolean": "Write true or false."}


def _text(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError as error:
        hint = "Write other characters as the percent signs of their UTF-8 bytes."
        raise DataError(
            "bad-request", "A path segment is not percent-encoded UTF-8.", got=shown(part), hint=hint
        ) from error
