"""An expression: a tree with its root finished, as the rest of Headrace holds it.

`parse` reads one from text; `field`, `literal`, `both`, `either` and `when` build one without text. A float
expression ends in `finite`, so NaN and infinity never leave it, and that stays so when it is put into another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal as Exact
from functools import cached_property
from typing import Any, overload

from headrace.errors import ExpressionError, shown
from headrace.expression import logic, operation
from headrace.expression.cast import rescale
from headrace.expression.coerce import digits_of
from headrace.expression.column import ColumnType
from headrace.expression.node import Call, Literal, Name, Node, article, mistyped, names, plain
from headrace.expression.numeric import finite
from headrace.types.field_types import LARGEST_INTEGER, SMALLEST_INTEGER, Boolean, Decimal, Float, Integer, String, Type


@dataclass(frozen=True)
class Expression:
    """A typed expression that means the same in Spark and in Python. Made by `parse` and the functions below."""

    root: Node

    @cached_property
    def text(self) -> str:
        """The canonical SQL: one text for all spellings of one tree, so that fingerprints can use it."""
        ends = isinstance(self.root, Call) and self.root.name == "finite"
        return operation.text(self.root.args[0] if ends and isinstance(self.root, Call) else self.root)

    @property
    def type(self) -> Type:
        """The type of the value."""
        return self.root.type

    @property
    def nullable(self) -> bool:
        """Whether the value may be null, failures included."""
        return self.root.nullable

    @cached_property
    def fields(self) -> frozenset[str]:
        """The root columns it reads."""
        return frozenset(name.name for name in names(self.root))

    def python(self) -> operation.Run:
        """The value of a row, as a compiled function; compiled once."""
        return self._compiled

    @cached_property
    def _compiled(self) -> operation.Run:
        return operation.python(self.root)

    def spark(self) -> str:
        """The value of a row, as Spark SQL that throws under no setting."""
        return operation.spark(self.root)

    def substitute(self, mapping: Mapping[str, Expression]) -> Expression:
        """This expression with columns replaced by the expressions that compute them."""
        return _ended(_substituted(self.root, mapping))

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, tuple[Node]]:
        # the compiled closures cannot travel to another process, and need not
        return Expression, (self.root,)


def _ended(node: Node) -> Expression:
    return Expression(finite(node) if isinstance(node.type, Float) else node)


def _substituted(node: Node, mapping: Mapping[str, Expression]) -> Node:
    if isinstance(node, Name) and node.name in mapping:
        other = mapping[node.name]
        if other.type != node.type:
            types = f"is {article(node.type)}, its expression {article(other.type)}"
            raise mistyped(f"Column {shown(node.name, 60)} {types}.", f"{node.name} = {other.text}")
        return other.root
    if isinstance(node, Call):
        return operation.make(node.name, tuple(_substituted(arg, mapping) for arg in node.args), node.type)
    return node


def parse(text: str, columns: Mapping[str, ColumnType]) -> Expression:
    """Read an SQL expression over some columns, or refuse it.

    Parameters
    ----------
    text
        SQL in Spark's grammar; the supported part is in the reference.
    columns
        The columns it may name. Upper and lower case matter.

    Examples
    --------
    >>> total = parse("price*qty", {"price": ColumnType(Float()), "qty": ColumnType(Integer())})
    >>> total.text
    'price * CAST(qty AS DOUBLE)'
    """
    from headrace.expression.reader import read

    return _ended(read(text, dict(columns)))


def field(name: str, column: ColumnType) -> Expression:
    """A column on its own.

    >>> field("card", ColumnType(String())).spark()
    '`card`'
    """
    return Expression(Name(name, plain(column.type), column.nullable))


def literal(value: Any, kind: Type | None = None) -> Expression:
    """A constant: str, bool, int, float or Decimal; with `kind`, null or microseconds of a timestamp too.

    >>> literal("DE").text
    "'DE'"
    """
    if isinstance(value, Exact) and value.is_finite():
        digits = kind if isinstance(kind, Decimal) else digits_of(value)
        return Expression(Literal(rescale(value, digits.precision, digits.scale), digits))
    if kind is not None:
        return Expression(Literal(value, plain(kind)))
    match value:
        case bool():
            return Expression(Literal(value, Boolean()))
        case int() if SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
            return Expression(Literal(value, Integer()))
        case float() if math.isfinite(value):
            return Expression(Literal(value, Float()))
        case str():
            return Expression(Literal(value, String()))
    hint = "A str, bool, 64-bit int, finite float or Decimal; for others name the type."
    raise ExpressionError("bad-argument", "A value cannot be a constant.", got=shown(value), hint=hint)


@overload
def both(first: Expression, second: Expression | None) -> Expression: ...
@overload
def both(first: Expression | None, second: Expression) -> Expression: ...
@overload
def both(first: None, second: None) -> None: ...
@overload
def both(first: Expression | None, second: Expression | None) -> Expression | None: ...
def both(first: Expression | None, second: Expression | None) -> Expression | None:
    """`first AND second`; None stands for no condition.

    >>> both(literal(True), None).text
    'TRUE'
    """
    if first is None or second is None:
        return second if first is None else first
    return Expression(logic.conjunction(first.root, second.root))


@overload
def either(first: Expression, second: Expression) -> Expression: ...
@overload
def either(first: Expression | None, second: Expression | None) -> Expression | None: ...
def either(first: Expression | None, second: Expression | None) -> Expression | None:
    """`first OR second`; None stands for no condition, which lets everything through.

    >>> either(literal(True), literal(False)).text
    'TRUE OR FALSE'
    """
    if first is None or second is None:
        return None
    return Expression(logic.disjunction(first.root, second.root))


def when(condition: Expression | None, value: Expression) -> Expression:
    """The value where the condition is true, null elsewhere; None stands for no condition.

    >>> when(field("paid", ColumnType(Boolean())), literal(1)).text
    'CASE WHEN paid THEN 1 END'
    """
    return value if condition is None else _ended(logic.case([(condition.root, value.root)]))
