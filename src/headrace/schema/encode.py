"""A row as canonical JSON bytes, the inverse of `schema.json`: for producers, tests and previews.

Input is forgiving where nothing is lost: timestamps may be microseconds, aware datetimes or RFC 3339 text, and whole
numbers may stand for floats and decimals. What would not be read back equal is refused.
"""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.clock import micros, show_time
from headrace.errors import DataError, shown
from headrace.schema.json import decoder
from headrace.schema.types import Decimal, Field, Float, List, Struct, Timestamp, Type


def encode(schema: Struct, row: Mapping[str, Any]) -> bytes:
    """The row as JSON, its fields in the schema's order; null and absent optional fields are left out.

    Examples
    --------
    >>> from headrace.schema.types import schema_of
    >>> encode(schema_of({"card": str, "amount": float, "note": str | None}), {"amount": 1, "card": "a"})
    b'{"card":"a","amount":1.0}'
    """
    text = _struct(schema, row, "")
    data = text.encode()
    fault = decoder(schema)(data).fault
    if fault is not None:
        raise DataError("bad-record", f"The row does not fit its schema: {fault.reason}.", got=shown(dict(row)))
    return data


def _struct(schema: Struct, row: Mapping[str, Any], path: str) -> str:
    if not isinstance(row, Mapping):
        raise DataError("bad-record", f"Field {path!r} must be a dict.", got=shown(row))
    held = [(field, row.get(field.name)) for field in schema]
    return "{" + ",".join(_member(field, value, path) for field, value in held if value is not None) + "}"


def _member(field: Field, value: Any, path: str) -> str:
    return f"{json.dumps(field.name)}:{_value(field.type, value, f'{path}.{field.name}'.lstrip('.'))}"


def _value(kind: Type, value: Any, path: str) -> str:
    match kind:
        case Struct():
            return _struct(kind, value, path)
        case List(element):
            if isinstance(value, str) or not isinstance(value, Sequence):
                raise DataError("bad-record", f"Field {path!r} must be a list.", got=shown(value))
            return "[" + ",".join("null" if one is None else _value(element, one, path) for one in value) + "]"
        case Timestamp(unit):
            moment = micros(value, f"field {path!r}")
            return json.dumps(show_time(moment)) if unit == "rfc3339" else str(_whole(moment, kind.units[unit], path))
        case Decimal() if isinstance(value, decimal.Decimal | int):
            return format(decimal.Decimal(value), "f")
        case Float() if isinstance(value, int | float) and math.isfinite(value):
            return json.dumps(float(value))
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise DataError("bad-record", f"Field {path!r} cannot be written as {kind}.", got=shown(value)) from None


def _whole(moment: int, unit: int, path: str) -> int:
    if moment % unit:
        message = f"Field {path!r} is finer than its unit can say."
        raise DataError("bad-record", message, got=show_time(moment))
    return moment // unit
