"""Times in answers for programs have one form, RFC 3339: a number of microseconds is none.

What an on-demand function gave is its own business, so values of features are not looked at.
"""

from __future__ import annotations

import json
from typing import Any

EARLIEST, LATEST = 10**15, 4 * 10**15
"""Microseconds since 1970 of the years 2001 to 2096; as a duration or a size these numbers are absurd."""


def refuse_numbers(answer: Any, path: str = "") -> None:
    """Fail when a JSON value holds a moment as a number.

    >>> refuse_numbers({"since": "2026-01-01T00:00:00Z", "rows": 12})
    >>> refuse_numbers({"alarms": [{"since": 1_767_225_600_000_000}]})
    Traceback (most recent call last):
    AssertionError: /alarms/0/since is a number, 1767225600000000
    """
    if isinstance(answer, dict | list):
        for name, each in answer.items() if isinstance(answer, dict) else enumerate(answer):
            if name != "features":
                refuse_numbers(each, f"{path}/{name}")
    elif isinstance(answer, int | float):
        assert not EARLIEST <= answer <= LATEST, f"{path} is a number, {answer}"


def refuse_numbers_in(text: str) -> None:
    """The same for JSON, one value or one a line; what is no JSON is let pass."""
    try:
        refuse_numbers(json.loads(text))
    except ValueError:
        for line in text.splitlines():
            if line.startswith(("{", "[")):
                try:
                    told = json.loads(line)
                except ValueError:
                    return
                refuse_numbers(told)
