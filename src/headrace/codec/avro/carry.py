"""Whether a writer's schema has a place for everything that the rows of a stream may hold.

`codec.avro.write` refuses row by row what has none; this says beforehand whether that can happen, so that a producer
can look for another schema.
"""

from __future__ import annotations

from headrace.codec.avro.node import Node
from headrace.codec.avro.write import row_encoder
from headrace.errors import SchemaError
from headrace.types.field_types import Field, List, Struct


def carries(schema: Struct, node: Node) -> bool:
    """Whether every row of a stream has its place in a writer's schema: no field is missing, none is tighter.

    >>> from headrace.codec.avro.node import parse
    >>> from headrace.types.field_types import schema_of
    >>> writer = parse('{"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}')
    >>> carries(schema_of({"n": int}), writer), carries(schema_of({"n": int | None}), writer)
    (True, False)
    """
    try:
        row_encoder(schema, node)
    except SchemaError:
        return False
    return _roomy(schema, node)


def _roomy(schema: Struct, node: Node) -> bool:
    held = dict(node.fields)
    return all(field.name in held and _takes(field, held[field.name]) for field in schema)


def _takes(field: Field, node: Node) -> bool:
    if field.optional and not node.nullable:
        return False
    match field.type:
        case Struct():
            return _roomy(field.type, node.value)
        case List(element):
            return _takes(Field("", element, field.type.optional), node.value.parts[0])
    return True
