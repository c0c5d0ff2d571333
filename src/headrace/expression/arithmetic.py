"""Numbers: + - * / % and the sign.

Integers are 64 bits wide and overflow to null. Floats are IEEE inside an expression; where one ends, `finite` turns
NaN and infinity into null. Decimals are exact, and refused where Spark would have to cut digits off. `/` is always a
float, and a zero divisor gives null.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from headrace.expression.cast import DIGITS, cast, positive_zero, whole_part
from headrace.expression.coerce import TOO_WIDE, decimal_type, number_kind, written
from headrace.expression.node import NUMBERS, Call, Literal, Node, Void, article, mistyped
from headrace.expression.operation import OPERATIONS, Args, Operation, Run, make, may_fail, strict
from headrace.types.field_types import LARGEST_INTEGER, SMALLEST_INTEGER, Decimal, Float, Integer, Type

_SIGNED = 34
"""Spark changes signs in 128-bit decimal floating point, which has 34 digits (`Decimal.unary_-`, also in abs)."""
_SPARK = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
_FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda x, y: x / y if y else None,
    "%": lambda x, y: None if not y else math.nan if math.isinf(x) else math.fmod(x, y),
}
_DECIMAL: dict[str, Callable[[Any, Any], Any]] = {
    "+": DIGITS.add,
    "-": DIGITS.subtract,
    "*": lambda x, y: positive_zero(DIGITS.multiply(x, y)),
    "%": lambda x, y: positive_zero(DIGITS.remainder(x, y)) if y else None,
}


def _bounded(function: Callable[[int, int], int]) -> Callable[[int, int], int | None]:
    def run(x: int, y: int) -> int | None:
        result = function(x, y)
        return result if SMALLEST_INTEGER <= result <= LARGEST_INTEGER else None

    return run


def _remainder(x: int, y: int) -> int | None:
    if y == 0:
        return None
    rest = abs(x) % abs(y)
    return rest if x >= 0 else -rest


_INTEGER: dict[str, Callable[[Any, Any], Any]] = {
    "+": _bounded(operator.add),
    "-": _bounded(operator.sub),
    "*": _bounded(operator.mul),
    "%": _remainder,
}


def _python(call: Call, args: tuple[Run, ...]) -> Run:
    table = {"integer": _INTEGER, "float": _FLOAT, "decimal": _DECIMAL}[call.type.name]
    return strict(table[call.name])(call, args)


def overflows(args: Args, kind: Type) -> bool:
    """Null when an argument is, or when an integer leaves 64 bits."""
    return isinstance(kind, Integer) or any(arg.nullable for arg in args)


for _name in _SPARK:
    OPERATIONS[_name] = Operation(
        python=_python,
        spark=lambda call, args: f"{_SPARK[call.name]}({args[0]}, {args[1]})",
        text=lambda call, args: f"{args[0]} {call.name} {args[1]}",
        infix=True,
        nullable=may_fail if _name in "/%" else overflows,
        finite=False,
    )


def arithmetic(name: str, left: Node, right: Node) -> Node:
    """`left name right` for one of + - * / %, or a refusal."""
    for node in (left, right):
        if not isinstance(node.type, (*NUMBERS, Void)):
            hint = "Join strings with ||." if node.type.name == "string" and name == "+" else None
            if node.type.name == "timestamp":
                hint = "Work in whole numbers: unix_micros(...) or unix_seconds(...)."
            got = written((left, right), f" {name} ")
            raise mistyped(f"`{name}` takes numbers, not {article(node.type)}.", got, hint)
    if isinstance(left.type, Void) and isinstance(right.type, Void):
        raise mistyped(f"`{name}` has only NULL to work on.", f"NULL {name} NULL", "Write CAST(NULL AS BIGINT).")
    typed = [node for node in (left, right) if not isinstance(node.type, Void)]
    kind = number_kind(typed)
    if kind is Float or name == "/":
        return make(name, (cast(left, Float()), cast(right, Float())), Float())
    if kind is Integer:
        return make(name, (cast(left, Integer()), cast(right, Integer())), Integer())
    first, second = (decimal_type(typed[0] if isinstance(node.type, Void) else node) for node in (left, right))
    return make(name, (cast(left, first), cast(right, second)), _digits(name, first, second, (left, right)))


def _digits(name: str, left: Decimal, right: Decimal, operands: Args) -> Decimal:
    scale = max(left.scale, right.scale)
    wholes = left.precision - left.scale, right.precision - right.scale
    precision = scale + max(wholes) + 1
    if name == "*":
        precision, scale = left.precision + right.precision + 1, left.scale + right.scale
    elif name == "%":
        precision = max(scale + min(wholes), 1)
    if precision > 38:
        got = f"{written(operands, f' {name} ')}, {left} and {right}"
        raise mistyped(f"`{name}` would need more than 38 digits.", got, TOO_WIDE)
    return Decimal(precision, scale)


def number(node: Node, name: str) -> Node:
    """The node, refused when it is no number."""
    if not isinstance(node.type, NUMBERS):
        raise mistyped(f"`{name}` takes a number, not {article(node.type)}.", written((node,)))
    return node


def signed(node: Node, name: str) -> Node:
    """The node, refused when it is no number whose sign Spark can change."""
    kind = number(node, name).type
    if isinstance(kind, Decimal) and kind.precision > _SIGNED and not isinstance(node, Literal):
        message = f"`{name}` takes decimals of at most {_SIGNED} digits: Spark rounds longer ones."
        raise mistyped(message, f"{written((node,))}, {kind}", TOO_WIDE)
    return node


def _negative(value: Any) -> Any:
    if isinstance(value, int):
        return whole_part(-value)
    return -value if isinstance(value, float) else positive_zero(value.copy_negate())


def _negated_literal(args: Args, kind: Type) -> Node | None:
    (only,) = args
    if not isinstance(only, Literal):
        return None
    value = None if only.value is None else _negative(only.value)
    return Literal(value, kind, None if only.exact is None else only.exact.copy_negate())


OPERATIONS["neg"] = Operation(
    python=strict(_negative),
    spark=lambda call, args: f"try_subtract(0L, {args[0]})" if isinstance(call.type, Integer) else f"(- {args[0]})",
    text=lambda _, args: f"-{args[0]}",
    infix=True,
    nullable=overflows,
    simpler=_negated_literal,
)


def negative(node: Node) -> Node:
    """`-node`."""
    return make("neg", (signed(node, "-"),), node.type)
