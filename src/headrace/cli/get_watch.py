"""`headrace get --watch`: one line for each change of a key's values.

What is compared is the values, and whether they are missing or stale; how fresh they are changes with every look. The
first look must be answered. After that a serving process that is away is waited for, and both are said on stderr.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from headrace.cli.get import value_text
from headrace.cli.output import data, talk
from headrace.errors import HeadraceError, MachineError
from headrace.safe_text import printable

AWAY = ("no-answer", "not-running", "internal")
FLAGS = ("missing", "stale")


def follow(read: Callable[[], bytes], pause: Callable[[], None], *, as_json: bool) -> None:
    """Look, show what is different from the last look, and again; it ends with an error or with Ctrl-C."""
    body, last = read(), dict[str, Any]()
    while True:
        now = watched(body)
        changed = [name for name, value in now.items() if name not in last or last[name] != value]
        if changed or last.keys() - now.keys():
            data(as_object(body, changed) if as_json else as_line(body, last, now))
        last = now
        pause()
        body = _patiently(read, pause)


def _patiently(read: Callable[[], bytes], pause: Callable[[], None]) -> bytes:
    away = False
    while True:
        try:
            body = read()
        except HeadraceError as error:
            if not isinstance(error, MachineError) and error.code not in AWAY:
                raise
            if not away:
                talk(f"{error.message} Waiting for it.")
            away = True
            pause()
        else:
            if away:
                talk("Serving answers again.")
            return body


def watched(body: bytes) -> dict[str, Any]:
    """What is looked at in an answer: numbers as text, with all their digits.

    >>> watched(b'{"features": {"spend_1h": 1.50}, "missing": false, "stale": true, "freshness_ms": 7}')
    {'spend_1h': '1.50', 'missing': False, 'stale': True}
    """
    told = json.loads(body, parse_float=str)
    return {**told["features"], **{flag: told[flag] for flag in FLAGS if flag not in told["features"]}}


def as_line(body: bytes, last: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The time, and what is not as it was; at first all of it, and of the flags those that are up.

    >>> body = b'{"at": "2026-01-01T00:00:00Z"}'
    >>> as_line(body, {"n": 1, "stale": False}, {"n": 2, "stale": False})
    '2026-01-01T00:00:00Z  n 1 -> 2'
    >>> as_line(body, {}, {"n": 1, "stale": False})
    '2026-01-01T00:00:00Z  n 1'
    """
    return "  ".join([json.loads(body)["at"], *_parts(last, now)])


def _parts(last: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, value in now.items():
        if not last:
            if name not in FLAGS or value is not False:
                yield f"{name} {_shown(value)}"
        elif name not in last:
            yield f"{name} (new) {_shown(value)}"
        elif last[name] != value:
            yield f"{name} {_shown(last[name])} -> {_shown(value)}"
    yield from (f"{name} (gone)" for name in last if name not in now)


def _shown(value: Any) -> str:
    """A value in one line: nothing in it moves the cursor or breaks the line."""
    return printable(value_text(value))


def as_object(body: bytes, changed: list[str]) -> str:
    """The answer in one line, with the names of what changed.

    >>> as_object(b'{"features": {"spend_1h": 1.50}}', ["spend_1h"])
    '{"features":{"spend_1h":1.50},"changed":["spend_1h"]}'
    """
    told: dict[str, Any] = dict(msgspec.json.decode(msgspec.json.format(body, indent=-1), type=dict[str, msgspec.Raw]))
    return msgspec.json.encode({**told, "changed": changed}).decode()
