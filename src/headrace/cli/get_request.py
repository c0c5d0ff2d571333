"""Request values on the command line: `--request amount=12.5`, read by the types of the feature set's request fields.

A value is written as in a cell of CSV: text without quotes, numbers and booleans as they are, lists and objects as
JSON. What is wrong or missing is refused here, before serving is asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headrace.errors import DataError, HeadraceError, did_you_mean, shown
from headrace.ingest.files.text_rows import cell_reader
from headrace.read.catalog import Readable
from headrace.read.on_demand import Requests
from headrace.types.field_types import Decimal, Field


def request_of(of: Readable, given: Sequence[str]) -> dict[str, Any] | None:
    """The request values by name, or None where nothing takes any.

    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
    >>> @hr.on_demand(users, request={"limit": int})
    ... def over(n, limit):
    ...     return n > limit
    >>> habits = hr.feature_set("habits", [over])
    >>> request_of(Readable("habits", habits.keyed, habits), ["limit=3"])
    {'limit': 3}
    """
    fields = _fields(of)
    found: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if name not in fields:
            message = f"{of.name!r} has no request value of that name."
            hint = did_you_mean(name, fields) or "Leave out --request: what is read takes none."
            raise DataError("bad-request", message, got=shown(text), hint=hint)
        if not sign or name in found:
            hint = f"Write --request {name}=... once."
            raise DataError("bad-request", "A request value is given once, as NAME=VALUE.", got=shown(text), hint=hint)
        found[name] = _value(fields[name], value)
    requests = Requests(of.feature_set)
    missing = [name for name in requests.needed if name not in found]
    if missing:
        asked = " ".join(f"--request {name}=..." for name in missing)
        message = f"{of.name!r} needs request values: {', '.join(missing)} is missing."
        raise DataError("bad-request", message, got=shown(list(given)), hint=f"Add {asked}.")
    _check(requests, found)
    return found if fields else None


def _check(requests: Requests, found: dict[str, Any]) -> None:
    """What every on-demand feature would say of the values."""
    try:
        requests.read(json.dumps(found, ensure_ascii=False).encode())
    except HeadraceError as error:
        error.got, error.hint = shown(found), "Write each value as its field's type has it."
        raise


def _fields(of: Readable) -> dict[str, Field]:
    made = () if of.feature_set is None else of.feature_set.on_demands
    return {field.name: field for each in made for field in each.request}


def _value(field: Field, text: str) -> Any:
    read, reason = cell_reader(field)
    written = read(text)
    if written is None:
        hint = f"It is of the type {field.type}."
        raise DataError("bad-request", f"A request value cannot be used: {reason}.", got=shown(text), hint=hint)
    # As text a decimal keeps its digits.
    return json.loads(written, parse_float=str if isinstance(field.type, Decimal) else None)
