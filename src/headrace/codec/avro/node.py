"""An Avro schema as a tree: parsed, its names resolved, and refused where its records could not be read safely.

It knows the layout that a schema gives to bytes and nothing of streams. `codec.avro.schema` turns trees into fields
and back; `codec.avro.read` and `codec.avro.sql` read records by them.

Refused are schemas without end (a record inside itself), lists whose elements take no bytes (a record of nine bytes
could claim billions of them), and trees so deep or large that reading one record would be the danger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headrace.codec.json.rules import LARGEST_VALUE
from headrace.errors import SchemaError, shown

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEEPEST, MOST_NODES = 64, 10_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*")
_TEMPLATES = {"record", "error", "enum", "fixed", "array", "map"}
_LOGICAL = {
    "int": {"date", "time-millis"},
    "long": {
        *("time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"),
        *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"),
    },
    "bytes": {"decimal"},
    "fixed": {"decimal"},
}
"""What changes the meaning of a number or of bytes. Other logical types, or these elsewhere, count as none, as Avro
says."""


@dataclass(frozen=True)
class Node:
    """One type of an Avro schema; what does not belong to its kind is left empty.

    Parameters
    ----------
    kind
        A primitive's name, or record, enum, fixed, array, map, union.
    logical
        The logical type it carries, whether or not Headrace reads it.
    parts
        A record's field types, a union's branches, or the one type inside an array or map.
    names
        A record's field names or an enum's symbols.
    defaults
        The names of a record's fields that have a default, with it.
    """

    kind: str
    logical: str | None = None
    parts: tuple[Node, ...] = ()
    names: tuple[str, ...] = ()
    size: int = 0
    precision: int = 0
    scale: int = 0
    unit: str | None = None
    defaults: tuple[tuple[str, str], ...] = ()

    @property
    def fields(self) -> Iterator[tuple[str, Node]]:
        """A record's fields in the order of their bytes."""
        return zip(self.names, self.parts, strict=True)

    @property
    def value(self) -> Node:
        """What is there when it is not null: the node itself, or the one branch of a union beside null."""
        if self.kind != "union":
            return self
        others = [part for part in self.parts if part.kind != "null"]
        return others[0] if len(others) == 1 else self

    @property
    def nullable(self) -> bool:
        """Whether null is one of its values."""
        return self.kind == "null" or any(part.kind == "null" for part in self.parts if self.kind == "union")

    def __str__(self) -> str:
        if self.kind == "union":
            return f"union of {', '.join(map(str, self.parts))}"
        if self.logical == "decimal":
            return f"decimal({self.precision},{self.scale})"
        return self.logical or self.kind


def parse(schema: Any) -> Node:
    """Read an Avro schema, as JSON text or as what `json.loads` gives.

    Examples
    --------
    >>> node = parse('{"type": "record", "name": "r", "fields": [{"name": "n", "type": ["null", "long"]}]}')
    >>> [(name, str(part.value), part.nullable) for name, part in node.fields]
    [('n', 'long', True)]
    """
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError):
            raise _bad("An Avro schema is not JSON.", schema) from None
    return _Parser().node(schema, "", 0)


def _bad(message: str, got: Any, hint: str | None = None) -> SchemaError:
    return SchemaError("bad-avro", message, got=shown(got), hint=hint)


class _Parser:
    """Keeps the named types met so far; None marks a record whose own fields are being read."""

    def __init__(self) -> None:
        self.named: dict[str, Node | None] = {}
        self.count = 0

    def node(self, form: Any, namespace: str, depth: int) -> Node:
        self.count += 1
        if depth > DEEPEST or self.count > MOST_NODES:
            raise _bad("An Avro schema is too deep or too large.", form, f"At most {DEEPEST} levels are read.")
        match form:
            case str():
                return self.named_or_primitive(form, namespace)
            case list():
                return self.union(form, namespace, depth)
            case {"type": str(kind)} if kind in _TEMPLATES:
                return self.template(kind, form, namespace, depth)
            case {"type": str(kind)}:
                return _with_logical(self.named_or_primitive(kind, namespace), form)
            case {"type": dict() | list() as inner}:
                return self.node(inner, namespace, depth + 1)
        raise _bad("An Avro type cannot be read.", form)

    def named_or_primitive(self, name: str, namespace: str) -> Node:
        if name in PRIMITIVES:
            return Node(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self.named.get(full, self.named.get(name, False))
        if found is None:
            raise _bad("An Avro record contains itself.", name, "Streams have fields of a fixed shape.")
        if not isinstance(found, Node):
            raise _bad("An Avro type is not known.", name)
        self.count += _nodes(found)
        return found

    def union(self, form: list[Any], namespace: str, depth: int) -> Node:
        parts = tuple(self.node(branch, namespace, depth + 1) for branch in form)
        if not parts or any(part.kind == "union" for part in parts):
            raise _bad("An Avro union is empty or holds a union.", form)
        return Node("union", parts=parts)

    def template(self, kind: str, form: Mapping[str, Any], namespace: str, depth: int) -> Node:
        if kind in ("array", "map"):
            inside = self.node(form.get("items" if kind == "array" else "values"), namespace, depth + 1)
            if kind == "array" and not takes_bytes(inside):
                raise _bad("The elements of an Avro array take no bytes.", form, "Their number could not be bounded.")
            return Node(kind, parts=(inside,))
        full = _full_name(form, namespace)
        if full in self.named:
            raise _bad("Two Avro types have one name.", full)
        self.named[full] = None
        made = self.record(form, full, depth) if kind in ("record", "error") else _enum_or_fixed(kind, form)
        self.named[full] = made
        return made

    def record(self, form: Mapping[str, Any], full: str, depth: int) -> Node:
        fields = form.get("fields")
        sound = isinstance(fields, list) and all(isinstance(one, dict) and "type" in one for one in fields)
        names = [one.get("name") for one in fields] if sound and isinstance(fields, list) else [None]
        if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names) or len({*names}) < len(names):
            raise _bad("The fields of an Avro record cannot be read.", fields)
        inner = full.rpartition(".")[0]
        parts = tuple(self.node(one["type"], inner, depth + 1) for one in fields or ())
        defaults = tuple((one["name"], json.dumps(one["default"])) for one in fields or () if "default" in one)
        return Node("record", parts=parts, names=tuple(map(str, names)), defaults=defaults)


def _full_name(form: Mapping[str, Any], namespace: str) -> str:
    name, own = form.get("name"), form.get("namespace", namespace)
    if not isinstance(name, str) or not isinstance(own, str) or not _FULL_NAME.fullmatch(name):
        raise _bad("An Avro type has no name that can be used.", name)
    return name if "." in name or not own else f"{own}.{name}"


def _enum_or_fixed(kind: str, form: Mapping[str, Any]) -> Node:
    if kind == "fixed":
        size = form.get("size")
        if type(size) is not int or not 0 <= size <= LARGEST_VALUE:
            raise _bad("The size of an Avro fixed cannot be used.", size)
        return _with_logical(Node("fixed", size=size), form)
    symbols = form.get("symbols")
    fit = isinstance(symbols, list) and symbols and all(isinstance(s, str) and _NAME.fullmatch(s) for s in symbols)
    if not fit or not isinstance(symbols, list) or len(set(symbols)) < len(symbols):
        raise _bad("The symbols of an Avro enum cannot be used.", symbols)
    return Node("enum", names=tuple(symbols))


def _with_logical(node: Node, form: Mapping[str, Any]) -> Node:
    logical, unit = form.get("logicalType"), form.get("headrace-unit")
    if unit in ("s", "us") and node.kind == "long":
        node = replace(node, unit=unit)
    if not isinstance(logical, str) or logical not in _LOGICAL.get(node.kind, ()):
        return node
    if logical != "decimal":
        return replace(node, logical=logical)
    precision, scale = form.get("precision"), form.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision < 1:
        return node
    return node if precision > most_digits(node) else replace(node, logical=logical, precision=precision, scale=scale)


def most_digits(node: Node) -> int:
    """How many decimal digits always fit; bytes hold any number.

    >>> most_digits(Node("fixed", size=8)), most_digits(Node("bytes"))
    (18, 1000000)
    """
    if node.kind != "fixed":
        return 1_000_000
    # Beyond sixteen bytes every decimal of 38 digits fits, and no more is ever asked.
    return len(str(2 ** (8 * min(node.size, 64) - 1) - 1)) - 1 if node.size else 0


def takes_bytes(node: Node) -> bool:
    """Whether every value takes at least one byte."""
    if node.kind == "record":
        return any(map(takes_bytes, node.parts))
    return node.size > 0 if node.kind == "fixed" else node.kind != "null"


def _nodes(node: Node) -> int:
    return 1 + sum(map(_nodes, node.parts))
