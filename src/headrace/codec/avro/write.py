"""A row as Avro bytes, the inverse of `codec.avro.read`: for producers, tests and previews.

The row is first brought into Headrace's own types by `codec.json.write.coerce`, then written as the writer's schema
lays it out. What would not be read back equal is refused: a row with a value that the writer's schema has no place
for, and a writer's schema that no row fits.
"""

from __future__ import annotations

import decimal
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

from headrace.clock import show_time
from headrace.codec.avro.node import Node
from headrace.codec.avro.schema import Reading, reading
from headrace.codec.json.write import coerce
from headrace.errors import DataError, SchemaError, shown
from headrace.types.field_types import Field, List, Struct, Type

Put = Callable[[Any, bytearray], None]


def avro_encoder(schema: Struct, writer: Node) -> Callable[[Mapping[str, Any]], bytes]:
    """A function from a row to its bytes.

    Examples
    --------
    >>> from headrace.codec.avro.node import parse
    >>> from headrace.types.field_types import schema_of
    >>> writer = parse('{"type": "record", "name": "r", "fields": [{"name": "card", "type": "string"}]}')
    >>> list(avro_encoder(schema_of({"card": str}), writer)({"card": "a"}))
    [2, 97]
    """
    write = row_encoder(schema, writer)
    return lambda row: write(coerce(schema, row))


def row_encoder(schema: Struct, writer: Node) -> Callable[[Mapping[str, Any]], bytes]:
    """A function from a row that is in Headrace's own types already, as a decoder gives it, to its bytes."""
    put = _record(schema, writer, "")

    def encode(row: Mapping[str, Any]) -> bytes:
        out = bytearray()
        put(row, out)
        return bytes(out)

    return encode


def put_varint(number: int, out: bytearray) -> None:
    """Append a zig-zag number."""
    left = (number << 1) ^ (number >> 63)
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)


def _record(schema: Struct, node: Node, prefix: str) -> Put:
    lacking = [field for field in schema if field.name not in node.names]
    for field in lacking:
        if not field.optional:
            raise _no_place(prefix + field.name, "the writer's schema does not have it")
    defaults = dict(node.defaults)
    puts = []
    for name, part in node.fields:
        path = prefix + name
        puts.append((name, _put(schema[name], part, path) if name in schema else _absent(part, defaults, name, path)))

    def record(row: Any, out: bytearray) -> None:
        for field in lacking:
            if row.get(field.name) is not None:
                raise _refused(prefix + field.name, "has no place", row[field.name])
        for name, put in puts:
            put(row.get(name), out)

    return record


def _no_place(path: str, why: str) -> SchemaError:
    hint = "Change the stream's fields or the Avro schema, so that every row can be written and read back."
    return SchemaError("incompatible-schema", f"Field {path!r} cannot be written as Avro: {why}.", hint=hint)


def _absent(node: Node, defaults: Mapping[str, str], name: str, path: str) -> Put:
    """A field the stream does not have: null, or a default that is plain enough to be written."""
    if node.nullable:
        branch = [part.kind for part in node.parts].index("null") if node.kind == "union" else None
        return lambda _, out: None if branch is None else put_varint(branch, out)
    default = json.loads(defaults[name]) if name in defaults else None
    simple: dict[str, type] = {"string": str, "boolean": bool, "int": int, "long": int}
    if node.kind in simple and type(default) is simple[node.kind]:
        put = _SIMPLE[node.kind]
        return lambda _, out: put(default, out)
    if node.kind == "enum" and default in node.names:
        return lambda _, out: put_varint(node.names.index(default), out)
    raise _no_place(path, "the stream does not have it, it is not optional and has no plain default")


def _put(field: Field, node: Node, path: str) -> Put:
    inside = node.value
    if reading(inside, field.type) is None:
        raise _no_place(path, f"it is {field.type} here and {inside} there")
    put = _value(field.type, inside, path)
    branches = [part.kind == "null" for part in node.parts] if node.kind == "union" else []
    null, other = (branches.index(value) if value in branches else None for value in (True, False))

    def maybe(value: Any, out: bytearray) -> None:
        branch = null if value is None else other
        if value is None and null is None:
            raise _refused(path, "may not be null", value)
        if branch is not None:
            put_varint(branch, out)
        if value is not None:
            put(value, out)

    return maybe if field.optional or branches else put


def _value(kind: Type, node: Node, path: str) -> Put:
    how = reading(node, kind)
    match how, kind:
        case Reading("struct"), Struct():
            return _record(kind, node, path + ".")
        case Reading("list"), List(element):
            return _array(_put(Field("", element, kind.optional), node.parts[0], path + "[]"))
        case Reading("symbol"), _:
            return _symbol(node, path)
        case Reading("exact"), _:
            return _decimal(node, path)
        case Reading("count"), _:
            return lambda value, out: _SIMPLE[node.kind](_require_whole(value, path), out)
        case Reading("moment", factor), _:
            return lambda value, out: _SIMPLE[node.kind](_moment(value, factor, path), out)
        case Reading("written"), _:
            return lambda value, out: _text(show_time(value), out)
    if kind.name == "float" and node.kind in ("int", "long", "float"):
        return lambda value, out: _narrow(value, node.kind, path, out)
    return _SIMPLE[node.kind]


def _array(put: Put) -> Put:
    def array(values: Any, out: bytearray) -> None:
        if values:
            put_varint(len(values), out)
            for value in values:
                put(value, out)
        out.append(0)

    return array


def _symbol(node: Node, path: str) -> Put:
    places = {name: at for at, name in enumerate(node.names)}

    def symbol(value: Any, out: bytearray) -> None:
        if value not in places:
            raise _refused(path, "is none of the enum's symbols", value)
        put_varint(places[value], out)

    return symbol


def _decimal(node: Node, path: str) -> Put:
    def exact(value: Any, out: bytearray) -> None:
        unscaled = _require_whole(decimal.Decimal(value).scaleb(node.scale, _WIDE), path)
        if abs(unscaled) >= 10**node.precision:
            raise _refused(path, f"does not fit {node}", value)
        if node.kind == "fixed":
            out += unscaled.to_bytes(node.size, "big", signed=True)
        else:
            run = unscaled.to_bytes(
                (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True
            )
            put_varint(len(run), out)
            out += run

    return exact


_WIDE = decimal.Context(prec=80)


def _refused(path: str, why: str, value: Any) -> DataError:
    return DataError("bad-record", f"Field {path!r} {why} in the writer's schema.", got=shown(value))


def _require_whole(value: Any, path: str) -> int:
    if value != int(value):
        raise _refused(path, "has no room for its fraction", value)
    return int(value)


def _moment(value: int, factor: int, path: str) -> int:
    if value % factor:
        raise _refused(path, "is finer than its unit can say", show_time(value))
    return value // factor


def _narrow(value: float, kind: str, path: str, out: bytearray) -> None:
    if kind == "float":
        try:
            packed = struct.pack("<f", value)
        except OverflowError:
            packed = b"\0\0\0\0"
        if struct.unpack("<f", packed)[0] != value:
            raise _refused(path, "loses digits as a float of 32 bits", value)
        out += packed
        return
    whole = _require_whole(value, path)
    if float(whole) != value or not -(2**63) <= whole < 2**63:
        raise _refused(path, "is no whole number of 64 bits", value)
    _SIMPLE[kind](whole, out)


def _text(value: str, out: bytearray) -> None:
    data = value.encode()
    put_varint(len(data), out)
    out += data


def _int(value: int, out: bytearray) -> None:
    if not -(2**31) <= value < 2**31:
        raise DataError("bad-record", "A number has no room in the 32 bits of the writer's schema.", got=shown(value))
    put_varint(value, out)


def _boolean(value: bool, out: bytearray) -> None:
    out.append(1 if value else 0)


def _double(value: float, out: bytearray) -> None:
    out += struct.pack("<d", value)


_SIMPLE: dict[str, Put] = {"string": _text, "boolean": _boolean, "int": _int, "long": put_varint, "double": _double}
