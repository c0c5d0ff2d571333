"""The one meaning of a JSON record, in plain Python: bytes to a row, or to a fault with a reason.

`malformed` is what no reader can parse, `invalid` is JSON that does not fit the schema. A record never raises. Spark
reads by the same rules in `codec.json.sql`; rows go to the reference interpreter, to tests and to previews.

The rules: UTF-8 without a byte order mark; RFC 8259 with no duplicate keys, no lone surrogate escapes and the limits in
`codec.json.rules`; types are strict (`"1"` is no integer, and neither is `1.0`); an optional field may be null or
absent; fields nobody declared are ignored.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from math import isfinite
from typing import Any, Literal, NamedTuple

from headrace import clock
from headrace.codec.json import rules
from headrace.codec.json.text import NotJsonError, Number, parser
from headrace.types.field_types import (
    LARGEST_INTEGER,
    SMALLEST_INTEGER,
    Decimal,
    Field,
    Float,
    Integer,
    List,
    String,
    Struct,
    Timestamp,
    Type,
)

Read = Callable[[Any], Any]


class RecordFault(NamedTuple):
    """Why a record was refused."""

    kind: Literal["malformed", "invalid"]
    reason: str


class Decoded(NamedTuple):
    """A row with every declared field, or the fault that stands in its place."""

    row: dict[str, Any] | None
    fault: RecordFault | None


class _InvalidError(Exception):
    """Carries a reason out of a nested value."""


def decoder(schema: Struct) -> Callable[[bytes | None], Decoded]:
    """A function from a record's bytes to its row or fault.

    Examples
    --------
    >>> from headrace.types.field_types import schema_of
    >>> decode = decoder(schema_of({"card": str, "amount": float | None}))
    >>> decode(b'{"card": "a", "note": "ignored"}').row
    {'card': 'a', 'amount': None}
    >>> decode(b'{"card": 1}').fault
    RecordFault(kind='invalid', reason='card must be a string')
    >>> decode(b"{'card': 'a'}").fault.kind
    'malformed'
    """
    parse = parser(keep_numbers=_has_decimal(schema))
    read = _object(schema, "")

    def decode(data: bytes | None) -> Decoded:
        if not data:
            return malformed("there is nothing in it")
        if len(data) > rules.LARGEST_VALUE:
            return malformed(f"it is larger than {rules.LARGEST_VALUE:,} bytes")
        try:
            value = parse(str(data, "utf-8"))
        except UnicodeDecodeError as error:
            return malformed(f"byte {error.start} is not UTF-8")
        except NotJsonError as error:
            return malformed(str(error))
        if type(value) is not dict:
            return Decoded(None, RecordFault("invalid", rules.NOT_AN_OBJECT))
        try:
            return Decoded(read(value), None)
        except _InvalidError as error:
            return Decoded(None, RecordFault("invalid", str(error)))

    return decode


def malformed(reason: str) -> Decoded:
    """What a decoder says of bytes that cannot be parsed."""
    return Decoded(None, RecordFault("malformed", reason))


def _has_decimal(kind: Type) -> bool:
    match kind:
        case Struct(fields):
            return any(_has_decimal(field.type) for field in fields)
        case List(element):
            return _has_decimal(element)
    return isinstance(kind, Decimal)


def _reader(kind: Type, path: str) -> Read:
    """A function from a parsed value that is not null to the typed value; it raises `_InvalidError`."""
    match kind:
        case Struct():
            return _struct(kind, path)
        case List():
            return _list(kind, path)
        case Decimal():
            return _decimal(kind, path)
        case Timestamp("rfc3339"):
            return _moment(kind, path)
        case Timestamp(unit):
            return _since_1970(unit, rules.wrong(path, kind))
        case Float():
            return _float(rules.wrong(path, kind))
        case Integer():
            return _integer(rules.wrong(path, kind), SMALLEST_INTEGER, LARGEST_INTEGER)
    return _exactly(str if isinstance(kind, String) else bool, rules.wrong(path, kind))


def _object(schema: Struct, prefix: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    steps = [_step(field, prefix + field.name) for field in schema]

    def read(found: dict[str, Any]) -> dict[str, Any]:
        row = {}
        get = found.get
        for name, value_of, absent in steps:
            value = get(name)
            if value is not None:
                row[name] = value_of(value)
            elif absent is None:
                row[name] = None
            else:
                raise _InvalidError(absent)
        return row

    return read


def _step(field: Field, path: str) -> tuple[str, Read, str | None]:
    return field.name, _reader(field.type, path), None if field.optional else rules.missing(path)


def _struct(kind: Struct, path: str) -> Read:
    read, reason = _object(kind, path + "."), rules.wrong(path, kind)

    def struct(value: Any) -> Any:
        if type(value) is not dict:
            raise _InvalidError(reason)
        return read(value)

    return struct


def _list(kind: List, path: str) -> Read:
    read, reason, absent = _reader(kind.element, path + "[]"), rules.wrong(path, kind), rules.missing(path + "[]")

    def each(value: Any) -> Any:
        if value is not None:
            return read(value)
        if kind.optional:
            return None
        raise _InvalidError(absent)

    def many(value: Any) -> Any:
        if type(value) is not list:
            raise _InvalidError(reason)
        return [each(element) for element in value]

    return many


def _exactly(python: type, reason: str) -> Read:
    def exactly(value: Any) -> Any:
        if type(value) is not python:
            raise _InvalidError(reason)
        return value

    return exactly


def _integer(reason: str, least: int, greatest: int) -> Read:
    def integer(value: Any) -> int:
        if type(value) is not int or not least <= value <= greatest:
            raise _InvalidError(reason)
        return value

    return integer


def _float(reason: str) -> Read:
    def real(value: Any) -> float:
        if type(value) not in (float, int, Number):
            raise _InvalidError(reason)
        number = float(value)
        # Adding zero turns -0.0 into 0.0.
        if not isfinite(number):
            raise _InvalidError(reason)
        return number + 0.0

    return real


def _decimal(kind: Decimal, path: str) -> Read:
    fits, reason = re.compile(rules.decimal_pattern(kind)).fullmatch, rules.wrong(path, kind)
    quantum = decimal.Decimal(1).scaleb(-kind.scale)
    context = decimal.Context(prec=38)

    def exact(value: Any) -> decimal.Decimal:
        # Spark's variant keeps a number as a decimal up to 38 digits; longer ones have become binary there.
        too_long = type(value) is Number and len(value.lstrip("-").replace(".", "").lstrip("0")) > 38
        if type(value) not in (int, Number, str) or too_long or not fits(str(value)):
            raise _InvalidError(reason)
        found = decimal.Decimal(value).quantize(quantum, context=context)
        # Spark's decimals know no -0.
        return found or found.copy_abs()

    return exact


def _moment(kind: Timestamp, path: str) -> Read:
    reason = rules.wrong(path, kind)

    def moment(value: Any) -> int:
        # `clock` reads any Unicode digits; a record's are ASCII.
        micros = clock.parse_timestamp(value) if type(value) is str else None
        if micros is None or not rules.EARLIEST <= micros <= rules.LATEST:
            raise _InvalidError(reason)
        return micros

    return moment


def _since_1970(unit: str, reason: str) -> Read:
    whole, factor = _integer(reason, *rules.bounds(unit)), Timestamp.units[unit]
    return lambda value: whole(value) * factor
