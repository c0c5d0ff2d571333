"""A stream's fields as a JSON Schema, for registries that keep one beside JSON in the Confluent wire format.

It is for other readers: Headrace itself reads JSON by the stream's fields (`codec.json.read`), which say more.
"""

from __future__ import annotations

from typing import Any

from headrace.types.field_types import Decimal, List, Struct, Timestamp, Type


def json_schema(schema: Struct, title: str) -> dict[str, Any]:
    """The JSON Schema of a stream's records.

    >>> from headrace.types.field_types import schema_of
    >>> json_schema(schema_of({"n": int, "note": str | None}), "clicks")["required"]
    ['n']
    """
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": title} | _type_schema(schema)


def _type_schema(kind: Type) -> dict[str, Any]:
    match kind:
        case Struct(fields):
            properties = {field.name: _maybe(_type_schema(field.type), field.optional) for field in fields}
            required = [field.name for field in fields if not field.optional]
            return {"type": "object", "properties": properties, "required": required}
        case List(element):
            return {"type": "array", "items": _maybe(_type_schema(element), kind.optional)}
        case Decimal():
            return {"type": ["number", "string"]}
        case Timestamp("rfc3339"):
            return {"type": "string", "format": "date-time"}
        case Timestamp():
            return {"type": "integer"}
    return {"type": {"float": "number"}.get(kind.name, kind.name)}


def _maybe(form: dict[str, Any], optional: bool) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, form]} if optional else form
