"""Hypothesis strategies for types, schemas, changed schemas and rows."""

from __future__ import annotations

import decimal
from typing import Any

from hypothesis import strategies as st

from headrace.codec.json.rules import EARLIEST, LATEST
from headrace.types.field_types import (
    LARGEST_INTEGER,
    SMALLEST_INTEGER,
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

NAMES = ("a", "b", "c", "d", "e")

decimals = st.integers(1, 38).flatmap(lambda p: st.builds(Decimal, st.just(p), st.integers(0, p)))
scalars: st.SearchStrategy[Type] = st.one_of(
    st.sampled_from([String(), Boolean(), Integer(), Float()]),
    decimals,
    st.builds(Timestamp, st.sampled_from(["rfc3339", "s", "ms", "us"])),
)


def structs(types: st.SearchStrategy[Type]) -> st.SearchStrategy[Struct]:
    return st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True).flatmap(
        lambda names: st.builds(
            lambda kinds, maybe: Struct(tuple(map(Field, names, kinds, maybe))),
            st.lists(types, min_size=len(names), max_size=len(names)),
            st.lists(st.booleans(), min_size=len(names), max_size=len(names)),
        )
    )


types: st.SearchStrategy[Type] = st.recursive(
    scalars, lambda inner: st.one_of(st.builds(List, inner, st.booleans()), structs(inner)), max_leaves=5
)
schemas = structs(types)


@st.composite
def changed(draw: Any, kind: Any) -> Any:
    """The same type after a few changes somewhere in it, or quite another one."""
    match kind:
        case Struct(fields):
            found = [draw(_changed_field(field)) for field in fields if draw(st.integers(0, 9))]
            free = [name for name in NAMES if name not in kind]
            if free and draw(st.booleans()):
                found.append(Field(free[0], draw(scalars), draw(st.booleans())))
            return Struct(tuple(found or fields))
        case List(element):
            return List(draw(changed(element)), draw(st.sampled_from([True, False, kind.optional])))
        case Decimal(precision, scale) if draw(st.booleans()):
            more = draw(st.integers(0, 38 - precision))
            return Decimal(precision + more, scale + draw(st.integers(0, more)))
        case Integer() if draw(st.booleans()):
            return draw(st.sampled_from([Float(), Decimal(19), Decimal(22, 3), Decimal(18)]))
    return draw(scalars) if draw(st.integers(0, 4)) == 0 else kind


@st.composite
def _changed_field(draw: Any, field: Field) -> Field:
    optional = draw(st.booleans()) if draw(st.integers(0, 3)) == 0 else field.optional
    return Field(field.name, draw(changed(field.type)), optional)


def values(kind: Type) -> st.SearchStrategy[Any]:
    """Values of a type as Headrace keeps them."""
    match kind:
        case String():
            return st.text(max_size=8)
        case Boolean():
            return st.booleans()
        case Integer():
            return st.integers(SMALLEST_INTEGER, LARGEST_INTEGER)
        case Float():
            return st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)
        case Decimal(precision, scale):
            most = 10**precision - 1
            context = decimal.Context(prec=38)
            return st.integers(-most, most).map(lambda n: decimal.Decimal(n).scaleb(-scale, context))
        case Timestamp(unit):
            factor = Timestamp.units.get(unit, 1)
            return st.integers(-(-EARLIEST // factor), LATEST // factor).map(lambda n: n * factor)
        case List(element):
            each = st.one_of(st.none(), values(element)) if kind.optional else values(element)
            return st.lists(each, max_size=3)
        case Struct(fields):
            return st.fixed_dictionaries(
                {f.name: st.one_of(st.none(), values(f.type)) if f.optional else values(f.type) for f in fields}
            )
    raise TypeError(kind)


schemas_with_rows = schemas.flatmap(lambda schema: st.tuples(st.just(schema), values(schema)))
schema_pairs = schemas.flatmap(lambda schema: st.tuples(st.just(schema), changed(schema)))
