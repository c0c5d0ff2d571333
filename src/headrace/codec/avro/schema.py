"""Avro schemas and a stream's fields: the one derived from the other, and which Avro type is read as which field type.

The table is `reading`. Whether it is right for every value is decided by types alone: a field whose writer's type does
not always fit makes every record with a value there invalid. `codec.avro.read` and `codec.avro.sql` carry readings
out; the registry compares schemas through `fields_of`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from headrace.codec.avro.node import Node, parse
from headrace.errors import SchemaError, shown
from headrace.types.field_types import (
    NAME,
    Boolean,
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

NAMESPACE = "headrace"
MOMENTS = {"timestamp-millis": 1_000, "timestamp-micros": 1}
_WHOLE = {"int": 10, "long": 19}
"""How many digits the whole numbers may have."""


@dataclass(frozen=True)
class Reading:
    """How a value is made: `how` names the rule, `factor` is the microseconds in one unit of a moment."""

    how: str
    factor: int = 0


def reading(node: Node, kind: Type) -> Reading | None:
    """How values of an Avro type, null aside, become a field's; None when they do not.

    Examples
    --------
    >>> from headrace.codec.avro.node import Node
    >>> reading(Node("int"), Float()).how, reading(Node("string"), Integer())
    ('real', None)
    >>> reading(Node("int", logical="date"), Integer()) is None
    True
    """
    plain = node.logical is None
    match kind:
        case String() if node.kind in ("string", "enum"):
            return Reading("text" if node.kind == "string" else "symbol")
        case Boolean() if node.kind == "boolean":
            return Reading("flag")
        case Integer() if node.kind in _WHOLE and plain:
            return Reading("whole")
        case Float() if node.kind in ("float", "double", *_WHOLE) and plain:
            return Reading("real")
        case Decimal(precision, scale):
            digits = precision - scale
            if node.logical == "decimal" and node.precision - node.scale <= digits and node.scale <= scale:
                return Reading("exact")
            return Reading("count") if plain and _WHOLE.get(node.kind, 99) <= digits else None
        case Timestamp(unit):
            return _moment(node, unit)
        case List() if node.kind == "array":
            return Reading("list")
        case Struct() if node.kind == "record":
            return Reading("struct")
    return None


def _moment(node: Node, unit: str) -> Reading | None:
    if node.kind == "long" and node.logical in MOMENTS:
        return Reading("moment", MOMENTS[node.logical])
    if node.logical is not None:
        return None
    if node.kind in _WHOLE and unit in Timestamp.units:
        return Reading("moment", Timestamp.units[unit])
    return Reading("written") if node.kind == "string" and unit == "rfc3339" else None


def avro_schema(schema: Struct, name: str = "record") -> dict[str, Any]:
    """The canonical Avro schema of a stream's fields.

    Examples
    --------
    >>> from headrace.types.field_types import schema_of
    >>> avro_schema(schema_of({"card": str, "at": Timestamp | None}), "payments")["fields"][0]
    {'name': 'card', 'type': 'string'}
    """
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": _fields(schema, name)}


def avro_text(schema: Struct, name: str) -> str:
    """The canonical Avro schema as text: equal for equal fields, on every machine.

    >>> from headrace.types.field_types import schema_of
    >>> avro_text(schema_of({"n": int}), "clicks")
    '{"fields":[{"name":"n","type":"long"}],"name":"clicks","namespace":"headrace","type":"record"}'
    """
    return json.dumps(avro_schema(schema, name), sort_keys=True, separators=(",", ":"))


def _fields(schema: Struct, name: str) -> list[dict[str, Any]]:
    made = []
    for field in schema:
        form = _avro(field.type, f"{name}_{field.name}")
        optional = {"type": ["null", form], "default": None}
        made.append({"name": field.name} | (optional if field.optional else {"type": form}))
    return made


def _avro(kind: Type, name: str) -> Any:
    match kind:
        case Struct():
            return {"type": "record", "name": name, "fields": _fields(kind, name)}
        case List(element):
            inside = _avro(element, f"{name}_element")
            return {"type": "array", "items": ["null", inside] if kind.optional else inside}
        case Decimal(precision, scale):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        case Timestamp("s"):
            return {"type": "long", "headrace-unit": "s"}
        case Timestamp("ms"):
            return {"type": "long", "logicalType": "timestamp-millis"}
        case Timestamp(unit):
            marked = {"headrace-unit": unit} if unit == "us" else {}
            return {"type": "long", "logicalType": "timestamp-micros"} | marked
    return {"string": "string", "boolean": "boolean", "integer": "long", "float": "double"}[kind.name]


@dataclass(frozen=True)
class Foreign(Type):
    """An Avro type that no field has; it stands in a schema that is compared, never in a stream's."""

    written: str
    name = "foreign"

    def __str__(self) -> str:
        return f"Avro's {self.written}"


def fields_of(avro: Any) -> Struct:
    """The fields that an Avro schema's records have; a type that no field has is refused.

    Examples
    --------
    >>> str(fields_of('{"type": "record", "name": "r", "fields": [{"name": "n", "type": ["null", "int"]}]}'))
    'struct(n integer?)'
    """
    return Struct(tuple(_field(name, part) for name, part in record(avro).fields))


def fields_read(avro: Any, wanted: Struct) -> Struct:
    """What a reader of `wanted` finds in an Avro schema's records, to be compared with it.

    Where it reads the Avro type, its own type stands in the result. Fields it does not ask for are left out.

    Examples
    --------
    >>> from headrace.types.field_types import schema_of
    >>> text = '{"type": "record", "name": "r", "fields": [{"name": "at", "type": "%s"}]}'
    >>> wanted = schema_of({"at": Timestamp})
    >>> str(fields_read(text % "string", wanted)), str(fields_read(text % "bytes", wanted))
    ('struct(at timestamp)', "struct(at Avro's bytes)")
    """
    return _read(record(avro), wanted)


def record(avro: Any) -> Node:
    """The tree of a record's schema; anything but a record is refused."""
    node = avro if isinstance(avro, Node) else parse(avro)
    if node.kind != "record":
        raise SchemaError("bad-avro", "A stream's Avro schema is a record.", got=shown(str(node)))
    return node


def _read(node: Node, wanted: Struct) -> Struct:
    found = [(name, part) for name, part in node.fields if name in wanted]
    return Struct(tuple(Field(name, _as_read(part.value, wanted[name].type), part.nullable) for name, part in found))


def _as_read(node: Node, wanted: Type) -> Type:
    match wanted:
        case Struct() if node.kind == "record":
            return _read(node, wanted)
        case List(element) if node.kind == "array":
            return List(_as_read(node.parts[0].value, element), node.parts[0].nullable)
    if reading(node, wanted) is not None:
        return wanted
    return _own(node) or Foreign(str(node))


def _field(name: str, part: Node) -> Field:
    if not NAME.fullmatch(name):
        raise SchemaError("bad-name", "A field's name cannot be used.", got=shown(name))
    return Field(name, _type(part.value, name), part.nullable)


def _type(node: Node, path: str) -> Type:
    if node.kind == "record":
        return Struct(tuple(_field(name, part) for name, part in node.fields))
    if node.kind == "array":
        return List(_type(node.parts[0].value, f"{path}[]"), node.parts[0].nullable)
    own = _own(node)
    if own is not None:
        return own
    hint = "Read are string, enum, boolean, int, long, float, double, decimal, timestamp-millis, timestamp-micros."
    raise SchemaError("bad-avro", f"No type of field reads the Avro type of {path!r}.", got=shown(str(node)), hint=hint)


def _own(node: Node) -> Type | None:
    if node.logical in MOMENTS and node.kind == "long":
        return Timestamp("ms") if node.logical == "timestamp-millis" else Timestamp(node.unit or "rfc3339")
    if node.logical == "decimal" and node.precision <= 38:
        return Decimal(node.precision, node.scale)
    if node.logical is not None:
        return None
    if node.unit == "s":
        return Timestamp("s")
    simple: dict[str, Type] = {"string": String(), "enum": String(), "boolean": Boolean()}
    simple |= {"int": Integer(), "long": Integer(), "float": Float(), "double": Float()}
    return simple.get(node.kind)
