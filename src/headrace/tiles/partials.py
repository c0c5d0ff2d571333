"""The partial columns of a tile, from the JSON that Spark wrote to the states that monoids merge.

Each monoid names its column's Spark type (`ddl`); from it comes a typed decoder that reads only the columns asked for.
Spark leaves null members out, writes binary as base64, decimals as numbers and an infinite double as text.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, Literal

import msgspec

from headrace.aggregate import Monoid, State
from headrace.errors import DefinitionError, HeadraceError, shown

_members = msgspec.structs.astuple
_TOKEN = re.compile(r"\s*(`[^`]+`|\w+|[<>(),:])")
_SCALARS: dict[str, Any] = {
    "BIGINT": int,
    "DOUBLE": float,
    "STRING": str,
    "BOOLEAN": bool,
    "BINARY": bytes,
    "DECIMAL": decimal.Decimal,
}


class StructRow(msgspec.Struct, gc=False):
    """A struct of Spark's: its members by name, as a collected row has them."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


@dataclass(frozen=True)
class SparkType:
    """A Spark type: a scalar by its name, an array of an element, or a struct of members."""

    name: str
    element: SparkType | None = None
    members: tuple[tuple[str, SparkType], ...] = ()


def shape_of(ddl: str) -> SparkType:
    """Read a Spark type as a monoid writes it.

    >>> shape_of("STRUCT<n: BIGINT, mean: DOUBLE>").members[1]
    ('mean', SparkType(name='DOUBLE', element=None, members=()))
    """
    tokens = [match.group(1) for match in _TOKEN.finditer(ddl)]
    try:
        shape = _shape(tokens)
    except (IndexError, KeyError, ValueError):
        tokens = [""]
    if tokens:
        raise DefinitionError("bad-type", "A partial column's type cannot be served.", got=shown(ddl))
    return shape


def _shape(tokens: list[str]) -> SparkType:
    name = tokens.pop(0).upper()
    if name == "ARRAY":
        tokens.pop(0)
        element = _shape(tokens)
        tokens.pop(0)
        return SparkType(name, element)
    if name == "STRUCT":
        members = []
        while tokens.pop(0) != ">":
            member = tokens.pop(0).strip("`")
            tokens.pop(0)
            members.append((member, _shape(tokens)))
        return SparkType(name, members=tuple(members))
    if name == "DECIMAL":
        # Precision and scale say nothing that the number itself does not.
        del tokens[: tokens.index(")") + 1]
    if name not in _SCALARS:
        raise KeyError(name)
    return SparkType(name)


def _type(shape: SparkType, double: Any = float) -> Any:
    """The msgspec type that decodes a shape; everything may be null."""
    if shape.element is not None:
        return GenericAlias(list, (_type(shape.element, double),)) | None
    if shape.members:
        fields = [(name, _type(member, double), None) for name, member in shape.members]
        return msgspec.defstruct("Struct", fields, bases=(StructRow,), gc=False) | None
    return (double if shape.name == "DOUBLE" else _SCALARS[shape.name]) | None


def _tile(shapes: Mapping[str, SparkType], double: Any = float) -> Callable[[bytes], Any]:
    fields = [(name, _type(shape, double), None) for name, shape in shapes.items()]
    return msgspec.json.Decoder(msgspec.defstruct("Tile", fields, bases=(StructRow,), gc=False)).decode


def decoder(columns: Sequence[tuple[str, Monoid]]) -> Callable[[bytes], Sequence[State]]:
    """A function from a tile's JSON to the states of some of its columns in their order, as `Monoid.fold` takes them.

    Examples
    --------
    >>> from headrace.aggregate import Count, TimeSpan
    >>> read = decoder([("count_1", Count()), ("span_1", TimeSpan())])
    >>> read(b'{"count_1":3,"span_1":{"n":1,"min":5,"max":5},"other":"x"}'), read(b"{}")
    ([3, (1, 5, 5)], [None, None])
    """
    shapes = {name: shape_of(monoid.ddl) for name, monoid in columns}
    decode = _tile(shapes)

    def cells(partials: bytes) -> Sequence[Any]:
        try:
            return _members(decode(partials))
        except msgspec.ValidationError:
            return _patient(partials, shapes)

    made = [None if monoid.cell_is_state else monoid.from_spark for _, monoid in columns]

    def states(partials: bytes) -> Sequence[State]:
        pairs = zip(made, cells(partials), strict=True)
        return [cell if cell is None or make is None else make(cell) for make, cell in pairs]

    return states if any(made) else cells


def _patient(partials: bytes, shapes: Mapping[str, SparkType]) -> list[Any]:
    """The rare tile with a double that is no number, which Spark writes as text; anything else is refused."""
    try:
        found = _tile(shapes, float | Literal["NaN", "Infinity", "-Infinity"])(partials)
    except msgspec.ValidationError as error:
        got = f"{error}; {shown(partials)}"
        raise HeadraceError("bad-changelog", "A tile's partial columns do not fit the plan.", got=got) from error
    return [_numbered(shape, found[name]) for name, shape in shapes.items()]


def _numbered(shape: SparkType, cell: Any) -> Any:
    """A cell with text for doubles turned into them."""
    if cell is None:
        return None
    if shape.element is not None:
        return [_numbered(shape.element, each) for each in cell]
    if shape.members:
        return {name: _numbered(member, cell[name]) for name, member in shape.members}
    return float(cell) if shape.name == "DOUBLE" else cell
