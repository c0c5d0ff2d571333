"""The one meaning of an Avro record, in plain Python: bytes and their writer's schema to a row, or to a fault.

`malformed` is what is not laid out as the writer's schema says: bytes that end early or go on, a union branch or symbol
that does not exist, text that is not UTF-8, a boolean that is neither 0 nor 1, a decimal with more digits than its
schema declares. `invalid` is a sound record that does not fit the stream's fields: a required one is absent or null, a
type is not the field's (`avro.reading`), a number is NaN or infinite, a moment lies outside the years 1 to 9999.
Fields nobody declared are stepped over: their layout must be sound, what they say is not judged.

Spark reads by the same rules in `codec.avro.sql`, and tests hold the two together. Two leniencies are those of Avro's
Java reader and cannot be seen from Spark: bits of a number beyond its 64th (of a union's branch beyond its 32nd) are
dropped, and a list that claims a first block of -2**63 elements is empty.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable
from math import isfinite
from typing import Any

from headrace import clock
from headrace.codec.avro.node import Node
from headrace.codec.avro.schema import Reading, reading
from headrace.codec.avro.step import CONTEXT, NotAvroError, record_step
from headrace.codec.json import rules
from headrace.codec.json.read import Decoded, RecordFault, malformed
from headrace.types.field_types import Decimal, Field, List, Struct, Type

Make = Callable[[Any], Any]


class _InvalidError(Exception):
    """Carries a reason out of a nested value."""


def avro_decoder(schema: Struct, writer: Node) -> Callable[[bytes | None], Decoded]:
    """A function from a record's bytes to its row or fault.

    Examples
    --------
    >>> from headrace.codec.avro.node import parse
    >>> from headrace.types.field_types import schema_of
    >>> writer = parse('{"type": "record", "name": "r", "fields": [{"name": "card", "type": "string"}]}')
    >>> decode = avro_decoder(schema_of({"card": str, "amount": float | None}), writer)
    >>> decode(bytes([2, 97])).row
    {'card': 'a', 'amount': None}
    >>> decode(bytes([2, 97, 0])).fault
    RecordFault(kind='malformed', reason='1 byte follows the record')
    """
    step, make = record_step(writer, schema), _object(schema, writer, "")

    def decode(data: bytes | None) -> Decoded:
        if not data:
            return malformed("there is nothing in it")
        if len(data) > rules.LARGEST_VALUE:
            return malformed(f"it is larger than {rules.LARGEST_VALUE:,} bytes")
        try:
            found, end = step(data, 0)
        except (NotAvroError, IndexError, struct.error) as error:
            return malformed(str(error) if isinstance(error, NotAvroError) else "it ends early")
        if end < len(data):
            more = len(data) - end
            return malformed(f"{more} byte{'s follow' if more > 1 else ' follows'} the record")
        try:
            return Decoded(make(found), None)
        except _InvalidError as error:
            return Decoded(None, RecordFault("invalid", str(error)))

    return decode


def _object(schema: Struct, node: Node, prefix: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """From what a record's bytes held to the row; it raises `_InvalidError`."""
    held = dict(node.fields)
    plan = [(field.name, *_rule(field, held.get(field.name), prefix + field.name)) for field in schema]

    def make(found: dict[str, Any]) -> dict[str, Any]:
        row = {}
        for name, absent, value_of in plan:
            value = found.get(name)
            if value is None and absent is not None:
                raise _InvalidError(absent)
            row[name] = None if value is None else value_of(value)
        return row

    return make


def _rule(field: Field, node: Node | None, path: str) -> tuple[str | None, Make]:
    make = _make(field.type, node.value, path) if node is not None else _refuse(rules.wrong(path, field.type))
    return None if field.optional else rules.missing(path), make


def _refuse(reason: str) -> Make:
    def refuse(_: Any) -> Any:
        raise _InvalidError(reason)

    return refuse


def _make(kind: Type, node: Node, path: str) -> Make:
    reason = rules.wrong(path, kind)
    how = reading(node, kind)
    match how, kind:
        case None, _:
            return _refuse(reason)
        case Reading("struct"), Struct():
            return _object(kind, node, path + ".")
        case Reading("list"), List(element):
            inner = _rule(Field("", element, kind.optional), node.parts[0], path + "[]")
            return lambda values: [_read_value(value, *inner) for value in values]
        case Reading("real"), _:
            return lambda value: _finite(value, reason)
        case Reading("moment"), _:
            return lambda value: _within(value * how.factor, reason)
        case Reading("written"), _:
            return lambda value: _within(clock.parse_timestamp(value), reason)
        case (Reading("exact" | "count"), Decimal(_, scale)):
            quantum = decimal.Decimal(1).scaleb(-scale)
            return lambda value: decimal.Decimal(value).quantize(quantum, context=CONTEXT)
    return lambda value: value


def _read_value(value: Any, absent: str | None, make: Make) -> Any:
    if value is not None:
        return make(value)
    if absent is not None:
        raise _InvalidError(absent)
    return None


def _finite(value: float, reason: str) -> float:
    number = float(value)
    if not isfinite(number):
        raise _InvalidError(reason)
    # Adding zero turns -0.0 into 0.0.
    return number + 0.0


def _within(moment: int | None, reason: str) -> int:
    if moment is None or not rules.EARLIEST <= moment <= rules.LATEST:
        raise _InvalidError(reason)
    return moment
