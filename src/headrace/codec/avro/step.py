"""Values taken from Avro bytes, step by step as the writer's schema lays them out.

It finds what is malformed and judges nothing else: whether a value fits its field is `codec.avro.read`'s business.
A field that nobody wants is stepped over, which checks its layout and makes nothing of it.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable
from typing import Any

from headrace.codec.avro.node import Node
from headrace.codec.avro.schema import Reading, reading
from headrace.types.field_types import List, Struct, Type

Step = Callable[[bytes, int], tuple[Any, int]]
"""From the bytes and a place in them to a value and the place after it."""

OTHER = object()
"""Stands for a value that is there and was not looked at."""

CONTEXT = decimal.Context(prec=38)


class NotAvroError(Exception):
    """The bytes are not laid out as the writer's schema says."""


def varint(data: bytes, at: int, most: int = 10) -> tuple[int, int]:
    """A zig-zag number and the place after it.

    >>> varint(bytes([0x80, 0x01]), 0)
    (64, 2)
    """
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    number, shift, start = byte & 0x7F, 7, at
    while True:
        at += 1
        if at - start == most:
            raise NotAvroError(f"a number has more than {most} bytes")
        byte = data[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    number &= 0xFFFFFFFF if most == 5 else 0xFFFFFFFFFFFFFFFF
    return (number >> 1) ^ -(number & 1), at + 1


def _run(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = varint(data, at)
    if size < 0 or size > len(data) - at:
        raise NotAvroError("it ends early" if size > 0 else "a length is negative")
    return data[at : at + size], at + size


def _text(data: bytes, at: int) -> tuple[str, int]:
    run, end = _run(data, at)
    try:
        return str(run, "utf-8"), end
    except UnicodeDecodeError as error:
        raise NotAvroError(f"byte {end - len(run) + error.start} is not UTF-8") from None


def _int(data: bytes, at: int) -> tuple[int, int]:
    number, at = varint(data, at)
    if not -(2**31) <= number < 2**31:
        raise NotAvroError("a number of 32 bits is larger than that")
    return number, at


def _boolean(data: bytes, at: int) -> tuple[bool, int]:
    if data[at] > 1:
        raise NotAvroError("a boolean is neither 0 nor 1")
    return data[at] == 1, at + 1


def _float(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<f", data, at)[0], at + 4


def _double(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<d", data, at)[0], at + 8


_SIMPLE: dict[str, Step] = {"string": _text, "long": varint, "int": _int, "boolean": _boolean}
_SIMPLE |= {"float": _float, "double": _double}


def _step(node: Node, kind: Type | None) -> Step:
    """How a value is taken from the bytes; when no type is wanted, or the Avro type is not its, by layout alone."""
    if node.kind == "union":
        return _union(node, kind)
    how = None if kind is None else reading(node, kind)
    match how, kind:
        case None, _:
            return _layout(node)
        case Reading("struct"), Struct():
            return record_step(node, kind)
        case Reading("list"), List(element):
            return _array(_step(node.parts[0], element))
        case Reading("symbol"), _:
            return _symbol(node.names)
        case Reading("exact"), _:
            return _decimal(node)
    return _SIMPLE[node.kind]


def _layout(node: Node) -> Step:
    match node.kind:
        case "null":
            return lambda _, at: (None, at)
        case "boolean" | "float" | "double" | "fixed":
            return _skip({"boolean": 1, "float": 4, "double": 8}.get(node.kind, node.size))
        case "int" | "long" | "enum":
            return varint
        case "record":
            return record_step(node, Struct(()))
        case "array":
            return _array(_step(node.parts[0], None))
        case "map":
            value = _step(node.parts[0], None)
            return _array(lambda data, at: value(data, _run(data, at)[1]))
    return _run


def _skip(size: int) -> Step:
    def skip(data: bytes, at: int) -> tuple[Any, int]:
        if size > len(data) - at:
            raise NotAvroError("it ends early")
        return OTHER, at + size

    return skip


def _union(node: Node, kind: Type | None) -> Step:
    # Beside several types no reading is possible, so each is stepped over.
    wanted = kind if node.value is not node else None
    steps = [_step(part, wanted) for part in node.parts]

    def union(data: bytes, at: int) -> tuple[Any, int]:
        branch, at = varint(data, at, 5)
        if not 0 <= branch < len(steps):
            raise NotAvroError(f"a union has no branch {branch}")
        return steps[branch](data, at)

    return union


def _array(step: Step) -> Step:
    def array(data: bytes, at: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        first = True
        while True:
            count, at = varint(data, at)
            if count == 0:
                return found, at
            if count < 0:
                _, at = varint(data, at)
                count = -count
            if count == 2**63 and first:
                return found, at
            # Every element takes at least a byte, so what claims more than is left is cut off at once.
            if count > len(data) - at:
                raise NotAvroError("it ends early")
            for _ in range(count):
                value, at = step(data, at)
                found.append(value)
            first = False

    return array


def _symbol(names: tuple[str, ...]) -> Step:
    def symbol(data: bytes, at: int) -> tuple[str, int]:
        number, at = varint(data, at)
        if not 0 <= number < len(names):
            raise NotAvroError(f"an enum has no symbol {number}")
        return names[number], at

    return symbol


def _decimal(node: Node) -> Step:
    take = _run if node.kind == "bytes" else lambda data, at: (data[at : at + node.size], _skip(node.size)(data, at)[1])
    limit = 10**node.precision

    def exact(data: bytes, at: int) -> tuple[decimal.Decimal, int]:
        run, at = take(data, at)
        unscaled = int.from_bytes(run, "big", signed=True)
        if not run or abs(unscaled) >= limit:
            raise NotAvroError(f"a decimal is not one of {node.precision} digits")
        return decimal.Decimal(unscaled).scaleb(-node.scale, CONTEXT), at

    return exact


def record_step(node: Node, schema: Struct) -> Step:
    """How a record is taken from the bytes, with the values of the fields that are wanted."""
    steps = [(name, _step(part, schema[name].type if name in schema else None)) for name, part in node.fields]

    def record(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        found = {}
        for name, step in steps:
            found[name], at = step(data, at)
        return found, at

    return record
