"""Strict JSON text to plain Python values, or `NotJsonError`.

The grammar is RFC 8259 and nothing more: one value, no duplicate keys, no NaN, no lone surrogates, and bounds on depth,
numbers and names. It knows no schema: `codec.json.read` looks at the values next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from headrace.codec.json.rules import DEEPEST, LONGEST_NAME, LONGEST_NUMBER

_SPACE = " \t\n\r"
_SHORT = 640
"""No number or name in a text this short can break a limit, and Python's own limit on int(text) is never lower."""
_SHALLOW = 100
"""Brackets that the C scanner may recurse into; Python's stack allows 1,000 frames in all."""

_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE = re.compile(f"{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW}")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_GAP = re.compile(r"[ \t\n\r]*")
_scan_string: Any = vars(json.decoder)["scanstring"]
_WORDS = {"true": True, "false": False, "null": None}


class NotJsonError(ValueError):
    """The text is not JSON as Headrace reads it; the message is the reason."""


class Number(str):
    """A number kept as its text, because a float would lose digits or how it was written."""

    __slots__ = ()


def parser(*, keep_numbers: bool = False) -> Callable[[str], Any]:
    """A function from JSON text to values; with `keep_numbers` fractions and exponents stay as `Number` text.

    >>> parser()('{"a": [1, 2.50]}')
    {'a': [1, 2.5]}
    >>> parser(keep_numbers=True)("2.50")
    '2.50'
    """
    real: Callable[[str], Any] = Number if keep_numbers else float
    quick, careful = _scanner(_unique, int, real), _scanner(_unique_short, _parse_integer, _real(real))

    def parse(text: str) -> Any:
        if "\\u" in text and _LONE.search(text.replace("\\\\", "..")):
            raise NotJsonError("a string holds half of a surrogate pair")
        text = text.strip(_SPACE)
        if not text:
            raise NotJsonError("there is nothing in it")
        try:
            if len(text) > _SHORT and text.count("[") + text.count("{") > _SHALLOW:
                return _parse_deep(text, real)
            value, end = (quick if len(text) <= _SHORT else careful)(text, 0)
        except RecursionError:
            return _parse_deep(text, real)
        except StopIteration as stop:
            raise NotJsonError(f"there is no value at character {stop.value}") from None
        except json.JSONDecodeError as error:
            raise NotJsonError(f"{error.msg[0].lower()}{error.msg[1:]} at character {error.pos}") from None
        if end != len(text):
            raise NotJsonError(f"something follows the value at character {end}")
        return value

    return parse


def _scanner(
    pairs: Callable[[list[tuple[str, Any]]], dict[str, Any]], whole: Callable[[str], Any], real: Callable[[str], Any]
) -> Callable[[str, int], tuple[Any, int]]:
    # The decoder's own `decode` matches white space with regular expressions; its scanner is the C part alone.
    decoder: Any = json.JSONDecoder(object_pairs_hook=pairs, parse_int=whole, parse_float=real, parse_constant=_no)
    scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once
    return scan


def _no(word: str) -> NoReturn:
    raise NotJsonError(f"{word} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotJsonError("a key appears twice in one object")
    return found


def _unique_short(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for name, _ in pairs:
        if len(name) > LONGEST_NAME // 2 and len(name.encode("utf-16-le")) // 2 > LONGEST_NAME:
            raise NotJsonError(f"a key is longer than {LONGEST_NAME:,} characters")
    return _unique(pairs)


def _parse_integer(text: str) -> Any:
    if len(text) <= 40:
        return int(text)
    return Number(_short(text))


def _real(real: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        return real(_short(text))

    return read


def _short(number: str) -> str:
    if len(number) > LONGEST_NUMBER:
        raise NotJsonError(f"a number is longer than {LONGEST_NUMBER:,} characters")
    return number


def _parse_deep(text: str, real: Callable[[str], Any]) -> Any:
    """The same grammar with a stack of its own: depth is bounded by the rule, not by Python's stack."""
    real = _real(real)
    stack: list[list[Any]] = []
    at = 0
    while True:
        # A value starts at `at`.
        mark = text[at : at + 1]
        if mark in ("{", "["):
            if len(stack) == DEEPEST:
                raise NotJsonError(f"it nests deeper than {DEEPEST}")
            stack.append([mark])
            at = _skip(text, at + 1)
            if text[at : at + 1] != ("}" if mark == "{" else "]"):
                at = _key(text, at, stack[-1]) if mark == "{" else at
                continue
            value, at = _close(stack.pop()), at + 1
        else:
            value, at = _scalar(text, at, real)
        # A value ended at `at`: give it to whatever is open, which may end with it.
        while stack:
            stack[-1].append(value)
            at = _skip(text, at)
            mark, is_object = text[at : at + 1], stack[-1][0] == "{"
            if mark == ",":
                at = _skip(text, at + 1)
                at = _key(text, at, stack[-1]) if is_object else at
                break
            if mark != ("}" if is_object else "]"):
                raise NotJsonError(f"a comma or an end is missing at character {at}")
            value, at = _close(stack.pop()), at + 1
        else:
            if at != len(text):
                raise NotJsonError(f"something follows the value at character {at}")
            return value


def _skip(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


def _string(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise NotJsonError(f"there is no string at character {at}")
    try:
        found: tuple[str, int] = _scan_string(text, at + 1, True)
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{error.msg[0].lower()}{error.msg[1:]} at character {error.pos}") from None
    return found


def _key(text: str, at: int, frame: list[Any]) -> int:
    name, at = _string(text, at)
    frame.append(name)
    at = _skip(text, at)
    if text[at : at + 1] != ":":
        raise NotJsonError(f"a colon is missing at character {at}")
    return _skip(text, at + 1)


def _close(frame: list[Any]) -> Any:
    if frame[0] == "[":
        return frame[1:]
    return _unique_short(list(zip(frame[1::2], frame[2::2], strict=True)))


def _scalar(text: str, at: int, real: Callable[[str], Any]) -> tuple[Any, int]:
    if text[at : at + 1] == '"':
        return _string(text, at)
    for word, value in _WORDS.items():
        if text.startswith(word, at):
            return value, at + len(word)
    match = _NUMBER.match(text, at)
    if match is None:
        raise NotJsonError(f"there is no value at character {at}")
    fraction, exponent = match.groups()
    return (real if fraction or exponent else _parse_integer)(match.group()), match.end()
