"""An event as one line of JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headrace.clock import micros, show_time
from headrace.errors import DataError, shown


def line_of(event: Mapping[str, Any] | bytes) -> bytes:
    """An event as one line. A line end in JSON text lies between its parts, for in strings it is escaped.

    >>> line_of({"id": "c1", "n": 2})
    b'{"id":"c1","n":2}'
    """
    if isinstance(event, bytes):
        return event.replace(b"\n", b" ")
    try:
        text = json.dumps(dict(event), separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_moment)
        return text.encode()
    except (TypeError, ValueError) as error:
        hint = "Hand over its JSON text as bytes, or use hr.Producer, which knows the stream's types."
        raise DataError("bad-record", "An event has no JSON text.", got=shown(str(error)), hint=hint) from error


def _moment(value: Any) -> str:
    if isinstance(value, datetime):
        return show_time(micros(value, "an event's time"))
    raise TypeError(f"{type(value).__name__} has no form in JSON")
