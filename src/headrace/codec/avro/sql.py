"""The one meaning of an Avro record as native Spark SQL text, for queries where no Python may run.

It is text only: `spark.decode` applies it, `codec.avro.read` says the same in Python, and a differential test holds the
two together.

Spark's `from_avro` is kinder than the meaning: bytes may follow a record, a boolean of 2 is false, a decimal may wrap
around. So it is given another schema than the writer's, with the same layout, in which such things can be seen: a
boolean is one byte, an enum and an int are longs, a map is an array of pairs, moments are numbers. And the record is
read as the first field of two; the second is an end mark that `run` appends, found there only if the record ends where
its bytes do. As in `codec.json.sql`, the mark is one that the record does not contain.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

from headrace.codec.avro.node import Node, most_digits
from headrace.codec.avro.schema import Reading, reading
from headrace.codec.avro.sql_scalar import ScalarSql, scalar
from headrace.codec.json import rules
from headrace.types.field_types import List, Struct, Type

END = "X'1F68656164726163652D656E642D1E00'"
"""Sixteen bytes, the first of which is not repeated: no part of the mark can be mistaken for its beginning."""


@dataclass(frozen=True)
class AvroSql:
    """Spark SQL that reads one BINARY column of Avro records of one writer's schema.

    Parameters
    ----------
    parsed
        The expression to add as the column `name` first; the others refer to it.
    sound
        A boolean expression, never null: the bytes are laid out as the schema says.
    invalid
        A string expression, meant for sound records: the reason, or null.
    columns
        For each field of the schema its name and typed expression, meant for sound and valid records.
    """

    name: str
    parsed: str
    sound: str
    invalid: str
    columns: tuple[tuple[str, str], ...]


def end_mark(payload: str) -> str:
    """An end mark that the payload does not contain: a fixed one, or else a digest of the payload itself.

    >>> end_mark("v").startswith("CASE WHEN contains(v, X'1F")
    True
    """
    return f"CASE WHEN contains({payload}, {END}) THEN substring(unhex(sha2({payload}, 256)), 1, 16) ELSE {END} END"


def avro_sql(schema: Struct, writer: Node, payload: str, end: str, name: str) -> AvroSql:
    """The Spark SQL that reads records of a writer's schema as a stream's fields.

    Parameters
    ----------
    payload, end
        Expressions: the record's bytes (null to be left out) and its end mark (`end_mark`).
    name
        What the column of parsed records will be called.

    Examples
    --------
    >>> from headrace.codec.avro.node import parse
    >>> from headrace.types.field_types import schema_of
    >>> writer = parse('{"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}')
    >>> sql = avro_sql(schema_of({"n": int}), writer, "value", "mark", "~~avro")
    >>> sql.columns
    (('n', '`~~avro`.r.f0'),)
    """
    numbers = count()
    mark = {"type": "fixed", "name": "mark", "size": 16}
    fields = [{"name": "r", "type": _layout(writer, schema, numbers)}, {"name": "end", "type": mark}]
    layout = {"type": "record", "name": "whole", "fields": fields}
    parsed = f"from_avro(concat({payload}, {end}), '{json.dumps(layout)}', map('mode', 'PERMISSIVE'))"
    parts = _members(schema, writer, f"`{name}`.r", "")
    broken = _any_of(part.broken for _, part in parts)
    # Where nothing could be parsed everything is null, so that the comparison is no longer true.
    ends = f"`{name}`.end = {end}"
    sound = f"coalesce({ends}{f' AND NOT ({broken})' if broken else ''}, false)"
    columns = tuple((field, part.value) for field, part in parts)
    return AvroSql(name, parsed, sound, _first(part.reason for _, part in parts), columns)


def _layout(node: Node, kind: Type | None, numbers: count[int]) -> Any:
    """A schema of the same layout, made of what can be looked at; `numbers` gives every named type its own name."""
    inside = node.value
    how = None if kind is None else reading(inside, kind)
    match node.kind:
        case "union":
            wanted = kind if inside is not node else None
            branches = [_layout(part, wanted, numbers) for part in node.parts]
            # Two branches may have become the same type, which Avro forbids; a record around each takes no bytes.
            return branches if inside is not node else [b if b == "null" else _around(b, numbers) for b in branches]
        case "record":
            fields = kind if how and isinstance(kind, Struct) else Struct(())
            types = [_layout(p, fields[n].type if n in fields else None, numbers) for n, p in node.fields]
            return _record(types, numbers)
        case "array":
            element = kind.element if how and isinstance(kind, List) else None
            return {"type": "array", "items": _layout(node.parts[0], element, numbers)}
        case "map":
            return {"type": "array", "items": _record(["bytes", _layout(node.parts[0], None, numbers)], numbers)}
        case "boolean" | "fixed":
            return _exact({"type": "fixed", "name": f"t{next(numbers)}", "size": node.size or 1}, node, how)
        case "bytes":
            return _exact({"type": "bytes"}, node, how)
        case "string":
            return "string" if how else "bytes"
    return "long" if node.kind in ("int", "enum") else node.kind


def _exact(form: dict[str, Any], node: Node, how: Reading | None) -> dict[str, Any]:
    """With as many digits as fit, so that Spark neither wraps around nor rounds; the writer's own come later."""
    if node.kind == "fixed" and not node.size:
        return {"type": "record", "name": form["name"], "fields": []}
    digits = min(38, most_digits(node))
    wanted = {"logicalType": "decimal", "precision": digits, "scale": node.scale}
    return form | wanted if how == Reading("exact") else form


def _record(types: Iterable[Any], numbers: count[int]) -> dict[str, Any]:
    fields = [{"name": f"f{at}", "type": form} for at, form in enumerate(types)]
    return {"type": "record", "name": f"t{next(numbers)}", "fields": fields}


def _around(form: Any, numbers: count[int]) -> dict[str, Any]:
    return _record([form], numbers)


def _members(schema: Struct, writer: Node, source: str, prefix: str) -> list[tuple[str, ScalarSql]]:
    places = {name: (at, node) for at, (name, node) in enumerate(writer.fields)}
    made = []
    for field in schema:
        at, node = places.get(field.name, (None, None))
        path = prefix + field.name
        if node is None:
            reason = None if field.optional else f"'{rules.missing(path)}'"
            made.append((field.name, ScalarSql(f"CAST(NULL AS {field.type.ddl})", reason)))
        else:
            made.append((field.name, _part(node, field.type, f"{source}.f{at}", path, field.optional)))
    return made


def _part(node: Node, kind: Type, source: str, path: str, optional: bool) -> ScalarSql:
    """A value that may be null: what is said of the value itself holds only where there is one."""
    inner = _value(node.value, kind, source, path)
    if not node.nullable:
        return inner
    missing = "NULL" if optional else f"'{rules.missing(path)}'"
    reason = f"CASE WHEN {source} IS NULL THEN {missing} ELSE {inner.reason or 'NULL'} END"
    value = f"CASE WHEN {source} IS NOT NULL THEN {inner.value} END" if isinstance(kind, Struct) else inner.value
    broken = f"({source} IS NOT NULL AND ({inner.broken}))" if inner.broken else None
    return ScalarSql(value, None if optional and inner.reason is None else reason, broken)


def _value(node: Node, kind: Type, source: str, path: str) -> ScalarSql:
    how = reading(node, kind)
    match how, kind:
        case None, _:
            return ScalarSql(f"CAST(NULL AS {kind.ddl})", f"'{rules.wrong(path, kind)}'")
        case Reading("struct"), Struct():
            parts = _members(kind, node, source, path + ".")
            value = ", ".join(f"'{name}', {part.value}" for name, part in parts)
            reasons = [part.reason for _, part in parts]
            reason = _first(reasons) if any(reasons) else None
            return ScalarSql(f"named_struct({value})", reason, _any_of(part.broken for _, part in parts))
        case Reading("list"), List(element):
            return _list(_part(node.parts[0], element, _element(path), f"{path}[]", kind.optional), source, path)
        case Reading(), _:
            return scalar(node, kind, how, source, f"'{rules.wrong(path, kind)}'")
    raise TypeError(kind)


def _element(path: str) -> str:
    """The name of a list's element inside a lambda: lists inside each other must not share one."""
    return f"__e{path.count('[]')}"


def _list(inner: ScalarSql, source: str, path: str) -> ScalarSql:
    name = _element(path)
    value = source if inner.value == name else f"transform({source}, {name} -> {inner.value})"
    reasons = f"transform({source}, {name} -> {inner.reason})"
    reason = f"get(filter({reasons}, __r -> __r IS NOT NULL), 0)" if inner.reason else None
    return ScalarSql(value, reason, f"exists({source}, {name} -> {inner.broken})" if inner.broken else None)


def _first(reasons: Iterable[str | None]) -> str:
    return f"coalesce({', '.join([*filter(None, reasons), 'CAST(NULL AS STRING)'])})"


def _any_of(conditions: Iterable[str | None]) -> str | None:
    return " OR ".join(filter(None, conditions)) or None
