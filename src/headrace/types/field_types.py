"""The types a field can have, each with its Spark DDL, Arrow and JSON forms.

Values inside Headrace are plain Python: str, bool, int, float, decimal.Decimal, int microseconds for timestamps,
list and dict. What bytes become such values is `codec.json.read`'s business; what columns do with them, `expression`'s.
"""

from __future__ import annotations

import decimal
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from headrace.errors import SchemaError, did_you_mean, shown
from headrace.public_calls import check_call, check_making

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
LARGEST_INTEGER = 2**63 - 1
SMALLEST_INTEGER = -(2**63)


@dataclass(frozen=True)
class Type:
    """A type; `name` is the word users and errors say."""

    name: ClassVar[str] = "type"

    @property
    def ddl(self) -> str:
        """The type as Spark DDL writes it."""
        return {"string": "STRING", "boolean": "BOOLEAN", "integer": "BIGINT", "float": "DOUBLE"}[self.name]

    @property
    def form(self) -> Any:
        """The type as JSON, for the registry and for fingerprints."""
        return self.name

    def __or__(self, other: None) -> Maybe:
        """`Decimal(10, 2) | None`, as with Python's own types."""
        return Maybe(self) if other is None else NotImplemented

    __ror__ = __or__

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Maybe:
    """A type as users write it that may also be null; `optional` makes one of a nested dict."""

    annotation: Any


@check_call
def optional(annotation: Any) -> Maybe:
    """What `T | None` says, for a nested dict, where Python has no such sign.

    >>> str(schema_of({"place": optional({"city": str})}))
    'struct(place struct(city string)?)'
    """
    return Maybe(annotation)


@dataclass(frozen=True)
class String(Type):
    """Unicode text, ordered by code point."""

    name = "string"


@dataclass(frozen=True)
class Boolean(Type):
    """true or false."""

    name = "boolean"


@dataclass(frozen=True)
class Integer(Type):
    """A 64-bit signed whole number."""

    name = "integer"


@dataclass(frozen=True)
class Float(Type):
    """A finite 64-bit binary number. NaN and infinity make a record invalid."""

    name = "float"


@check_making
@dataclass(frozen=True)
class Decimal(Type):
    """An exact number of at most `precision` digits, `scale` of them after the point.

    >>> Decimal(10, 2).ddl
    'DECIMAL(10,2)'
    """

    precision: int
    scale: int = 0
    name = "decimal"

    def __post_init__(self) -> None:
        fits = isinstance(self.precision, int) and isinstance(self.scale, int)
        if not fits or not 1 <= self.precision <= 38 or not 0 <= self.scale <= self.precision:
            hint = "A decimal has a precision of 1 to 38 and a scale of 0 to that precision, as in hr.Decimal(10, 2)."
            got = f"Decimal({shown(self.precision)}, {shown(self.scale)})"
            raise SchemaError("bad-type", "A decimal's digits do not fit.", got=got, hint=hint)

    @property
    def ddl(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"

    @property
    def form(self) -> Any:
        return {"decimal": [self.precision, self.scale]}

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@check_making
@dataclass(frozen=True)
class Timestamp(Type):
    """A moment, to the microsecond. RFC 3339 text with an offset, or whole numbers since 1970 when `unit` is given.

    >>> Timestamp("ms").form
    {'timestamp': 'ms'}
    """

    unit: str = "rfc3339"
    name = "timestamp"
    units: ClassVar[dict[str, int]] = {"s": 1_000_000, "ms": 1_000, "us": 1}

    def __post_init__(self) -> None:
        if self.unit != "rfc3339" and self.unit not in self.units:
            hint = 'Leave it out for RFC 3339 text, or say "s", "ms" or "us" for numbers since 1970.'
            raise SchemaError("bad-type", "A timestamp's unit is not known.", got=shown(self.unit), hint=hint)

    @property
    def ddl(self) -> str:
        return "TIMESTAMP"

    @property
    def form(self) -> Any:
        return "timestamp" if self.unit == "rfc3339" else {"timestamp": self.unit}


@dataclass(frozen=True)
class List(Type):
    """Any number of values of one type."""

    element: Type
    optional: bool = False
    name = "list"

    @property
    def ddl(self) -> str:
        return f"ARRAY<{self.element.ddl}>"

    @property
    def form(self) -> Any:
        return {"list": self.element.form, "optional": True} if self.optional else {"list": self.element.form}

    def __str__(self) -> str:
        return f"list of {self.element}"


@dataclass(frozen=True)
class Field:
    """A named value; an optional one may be null or absent."""

    name: str
    type: Type
    optional: bool = False

    @property
    def form(self) -> Any:
        """The field as JSON."""
        base = {"name": self.name, "type": self.type.form}
        return base | {"optional": True} if self.optional else base

    def __str__(self) -> str:
        return f"{self.name} {self.type}{'?' if self.optional else ''}"


@dataclass(frozen=True)
class Struct(Type):
    """Named fields in order; a stream's schema is one, and so is a nested field's type."""

    fields: tuple[Field, ...]
    name = "struct"

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for field in self.fields:
            if field.name.lower() in seen:
                hint = "Spark does not tell upper from lower case in column names."
                raise SchemaError("duplicate-name", "Two fields have one name.", got=shown(field.name), hint=hint)
            seen.add(field.name.lower())

    @property
    def ddl(self) -> str:
        return f"STRUCT<{', '.join(f'`{field.name}`: {field.type.ddl}' for field in self.fields)}>"

    @property
    def form(self) -> Any:
        return {"struct": [field.form for field in self.fields]}

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __contains__(self, name: object) -> bool:
        return any(field.name == name for field in self.fields)

    def __getitem__(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        hint = did_you_mean(name, [field.name for field in self.fields])
        raise SchemaError("unknown-field", "There is no such field.", got=shown(name), hint=hint)

    def __str__(self) -> str:
        return f"struct({', '.join(map(str, self.fields))})"


Schema = Struct

_PYTHON: dict[Any, Type] = {
    str: String(),
    bool: Boolean(),
    int: Integer(),
    float: Float(),
    datetime: Timestamp(),
    Timestamp: Timestamp(),
}


def schema_of(fields: Any, what: str = "a stream") -> Schema:
    """Read `{"name": type, ...}` as users write it.

    >>> str(schema_of({"id": str, "tags": list[str], "amount": float | None}))
    'struct(id string, tags list of string, amount float?)'
    """
    if not isinstance(fields, Mapping) or not fields:
        hint = 'Give a dict of names to types, as in {"id": str, "at": hr.Timestamp}.'
        raise SchemaError("bad-argument", f"The fields of {what} must be a dict.", got=shown(fields), hint=hint)
    return Struct(tuple(field_of(name, annotation) for name, annotation in fields.items()))


def field_of(name: Any, annotation: Any) -> Field:
    """Read one field as users write it: a Python type, a Headrace type, `T | None`, `list[T]` or a nested dict."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        hint = "Use letters, digits and underscores, at most 100, not starting with a digit."
        raise SchemaError("bad-name", "A field's name cannot be used.", got=shown(name), hint=hint)
    inner, optional = _without_none(annotation)
    return Field(name, type_of(inner, name), optional)


def type_of(annotation: Any, name: str = "value") -> Type:
    """Read a type as users write it."""
    if isinstance(annotation, Type):
        return annotation
    if isinstance(annotation, Mapping):
        return schema_of(annotation, f"field {name!r}")
    if typing.get_origin(annotation) is list:
        element, optional = _without_none(typing.get_args(annotation)[0])
        return List(type_of(element, name), optional)
    try:
        return _PYTHON[annotation]
    except (KeyError, TypeError):
        pass
    hint = "Known: str, bool, int, float, hr.Decimal(p, s), hr.Timestamp, list[T], a nested dict, and T | None."
    if annotation is decimal.Decimal or annotation is Decimal:
        hint = "Say how many digits: hr.Decimal(10, 2)."
    raise SchemaError("bad-type", f"The type of field {name!r} is not known.", got=shown(annotation), hint=hint)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if isinstance(annotation, Maybe):
        return _without_none(annotation.annotation)[0], True
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        inner = [arg for arg in typing.get_args(annotation) if arg is not type(None)]
        if len(inner) == 1:
            return inner[0], True
    return annotation, False


def from_form(form: Any) -> Type:
    """The inverse of `Type.form`.

    >>> from_form({"list": {"decimal": [10, 2]}}).ddl
    'ARRAY<DECIMAL(10,2)>'
    """
    match form:
        case "string" | "boolean" | "integer" | "float" | "timestamp":
            simple: dict[str, Type] = {kind.name: kind for kind in _PYTHON.values()}
            return simple[form]
        case {"decimal": [int(precision), int(scale)]}:
            return Decimal(precision, scale)
        case {"timestamp": str(unit)}:
            return Timestamp(unit)
        case {"list": element}:
            return List(from_form(element), bool(form.get("optional", False)))
        case {"struct": list(fields)}:
            return Struct(tuple(map(_field_from_form, fields)))
    raise SchemaError("bad-type", "A stored type cannot be read.", got=shown(form))


def _field_from_form(form: Any) -> Field:
    match form:
        case {"name": str(name), "type": kind} if NAME.fullmatch(name):
            return Field(name, from_form(kind), bool(form.get("optional", False)))
    raise SchemaError("bad-type", "A stored field cannot be read.", got=shown(form))


def arrow_type(kind: Type) -> Any:
    """The type as pyarrow has it (imported when asked for)."""
    import pyarrow as pa

    match kind:
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case List(element):
            return pa.list_(pa.field("element", arrow_type(element), nullable=kind.optional))
        case Struct(fields):
            return pa.struct([pa.field(f.name, arrow_type(f.type), nullable=f.optional) for f in fields])
    simple = {"string": pa.string(), "boolean": pa.bool_(), "integer": pa.int64(), "float": pa.float64()}
    return simple.get(kind.name) or pa.timestamp("us", tz="UTC")
