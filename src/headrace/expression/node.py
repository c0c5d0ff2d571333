"""The tree an expression is: fields, literals and calls, each with its type and whether it may be null.

The nodes know no SQL and no engine. What a call means is in `OPERATIONS` (see `operation`); what text becomes which
tree is `read`'s business. A call's arguments already have the types it works on: conversions are calls of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal as Exact
from typing import Any

from headrace.errors import ExpressionError
from headrace.types.field_types import Boolean, Decimal, Field, Float, Integer, List, String, Struct, Timestamp, Type

MAX_DEPTH = 100
MAX_SIZE = 10_000


@dataclass(frozen=True)
class Void(Type):
    """The type of a bare NULL until its neighbours give it one. No expression ends up with it."""

    name = "NULL of no type"


@dataclass(frozen=True)
class Name:
    """A root column of the row."""

    name: str
    type: Type
    nullable: bool
    depth = 1
    size = 1
    finite = True


@dataclass(frozen=True)
class Literal:
    """A constant. `exact` keeps what was written as 1.5, so that it can still become a decimal."""

    value: Any
    type: Type
    exact: Exact | None = field(default=None, compare=False, repr=False)
    depth = 1
    size = 1
    finite = True

    def __post_init__(self) -> None:
        if isinstance(self.value, float) and self.value == 0:
            # -0.0 equals 0.0, and equal constants have one text
            object.__setattr__(self, "value", 0.0)

    @property
    def nullable(self) -> bool:
        """Whether this is NULL."""
        return self.value is None


@dataclass(frozen=True)
class Call:
    """An operation on other nodes. Made by `operation.make` only, which works out the facts below `type`."""

    name: str
    args: tuple[Node, ...]
    type: Type
    nullable: bool = field(compare=False)
    finite: bool = field(compare=False)
    depth: int = field(compare=False)
    size: int = field(compare=False)


Node = Name | Literal | Call

NUMBERS = (Integer, Float, Decimal)
SCALARS = (*NUMBERS, String, Boolean, Timestamp)
NULL = Literal(None, Void())
TRUE = Literal(True, Boolean())


def names(node: Node) -> Iterator[Name]:
    """Every root column of a tree, as often as it is used."""
    if isinstance(node, Name):
        yield node
    elif isinstance(node, Call):
        for arg in node.args:
            yield from names(arg)


def plain(kind: Type) -> Type:
    """A type without what only its bytes need: how a timestamp was written does not change what it is.

    >>> plain(Timestamp("ms"))
    Timestamp(unit='rfc3339')
    """
    match kind:
        case Timestamp():
            return Timestamp()
        case List(element, optional):
            return List(plain(element), optional)
        case Struct(fields):
            return Struct(tuple(Field(f.name, plain(f.type), f.optional) for f in fields))
    return kind


def mistyped(message: str, got: str, hint: str | None = None) -> ExpressionError:
    """The refusal of arguments whose types do not fit."""
    return ExpressionError("mistyped-expression", message, got=got, hint=hint)


def article(kind: Type) -> str:
    """A type as a sentence says it.

    >>> article(Integer())
    'an integer'
    """
    return f"an {kind}" if isinstance(kind, Integer) else str(kind) if isinstance(kind, Void) else f"a {kind}"
