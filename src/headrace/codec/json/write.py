"""A row as canonical JSON bytes, the inverse of `codec.json.read`: for producers, tests and previews.

Input is forgiving where nothing is lost: timestamps may be microseconds, aware datetimes or RFC 3339 text, whole
numbers may stand for floats and decimals, and NumPy and pandas scalars for Python's (NaN, NaT and NA for null). What
would not be read back equal is refused. Fields that the schema does not have are left out.
"""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from headrace.clock import micros, show_time
from headrace.codec.json.read import decoder
from headrace.codec.json.rules import EARLIEST, LATEST
from headrace.errors import DataError, shown
from headrace.types.field_types import Decimal, Field, Float, Integer, List, Struct, Timestamp, Type


def encode(schema: Struct, row: Mapping[str, Any]) -> bytes:
    """The row as JSON, its fields in the schema's order; null and absent optional fields are left out.

    Examples
    --------
    >>> from headrace.types.field_types import schema_of
    >>> encode(schema_of({"card": str, "amount": float, "note": str | None}), {"amount": 1, "card": "a"})
    b'{"card":"a","amount":1.0}'
    """
    data, _ = _written(schema, row)
    return data


def coerce(schema: Struct, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as a reader will have it: every field present, in Headrace's own types.

    Examples
    --------
    >>> from headrace.types.field_types import Timestamp, schema_of
    >>> coerce(schema_of({"at": Timestamp, "note": str | None}), {"at": "2026-01-01T00:00:00Z"})
    {'at': 1767225600000000, 'note': None}
    """
    _, read = _written(schema, row)
    return read


def encoded(schema: Struct, row: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """The row as JSON and as a reader will have it: `encode` and `coerce` in one.

    >>> from headrace.types.field_types import schema_of
    >>> encoded(schema_of({"n": int}), {"n": 7})
    (b'{"n":7}', {'n': 7})
    """
    return _written(schema, row)


def _written(schema: Struct, row: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
    try:
        data = _struct(schema, row, "").encode()
    except UnicodeEncodeError:
        raise DataError("bad-record", "A string holds half of a surrogate pair.", got=shown(dict(row))) from None
    decoded = _decoder(schema)(data)
    if decoded.row is None:
        reason = decoded.fault.reason if decoded.fault else "it cannot be read back"
        raise DataError("bad-record", f"The row does not fit its schema: {reason}.", got=shown(dict(row)))
    return data, decoded.row


_decoder = lru_cache(maxsize=64)(decoder)


def _struct(schema: Struct, row: Mapping[str, Any], path: str) -> str:
    if not isinstance(row, Mapping):
        raise DataError("bad-record", f"Field {path!r} must be a dict.", got=shown(row))
    held = [(field, _plain(row.get(field.name))) for field in schema]
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
            return (
                "["
                + ",".join("null" if one is None else _value(element, one, path) for one in map(_plain, value))
                + "]"
            )
        case Timestamp(unit):
            moment = micros(value, f"field {path!r}")
            if not EARLIEST <= moment <= LATEST:
                raise DataError("bad-record", f"Field {path!r} lies outside the years 1 to 9999.", got=shown(value))
            return (
                json.dumps(show_time(moment)) if unit == "rfc3339" else str(_to_units(moment, kind.units[unit], path))
            )
        case Decimal() if isinstance(value, decimal.Decimal | int) and not isinstance(value, bool):
            return format(decimal.Decimal(value), "f")
        case Float() if isinstance(value, int | float) and not isinstance(value, bool):
            return _float(value, path)
        case Integer() if isinstance(value, float) and value.is_integer():
            return str(int(value))
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise DataError("bad-record", f"Field {path!r} cannot be written as {kind}.", got=shown(value)) from None


def _plain(value: Any) -> Any:
    """NumPy's scalars as Python's, and what pandas writes for nothing (NaN, NaT, NA) as None."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def _float(value: float, path: str) -> str:
    try:
        return json.dumps(float(value), allow_nan=False)
    except (OverflowError, ValueError):
        raise DataError("bad-record", f"Field {path!r} must be a finite number.", got=shown(value)) from None


def _to_units(moment: int, unit: int, path: str) -> int:
    if moment % unit:
        message = f"Field {path!r} is finer than its unit can say."
        raise DataError("bad-record", message, got=show_time(moment))
    return moment // unit
