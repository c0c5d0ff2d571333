"""Comparisons: = <> < <= > >= <=>, IN, LIKE, greatest and least.

Strings compare by code point, which is the order of their UTF-8 bytes. Floats compare as Spark has them: NaN equals
itself and is greater than everything, -0.0 equals 0.0.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from headrace.errors import ExpressionError
from headrace.expression.coerce import same, written
from headrace.expression.node import SCALARS, Call, Literal, Node, article, mistyped
from headrace.expression.operation import OPERATIONS, Operation, Run, all_null, make, never_null, strict
from headrace.types.field_types import Boolean, Float, String

Compare = Callable[[Any, Any], bool]
_PLAIN: dict[str, Compare] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WITH_NAN: dict[str, Compare] = {
    "=": lambda x, y: x == y or (x != x and y != y),
    "<>": lambda x, y: not (x == y or (x != x and y != y)),
    "<": lambda x, y: x < y or (y != y and x == x),
    "<=": lambda x, y: x <= y or y != y,
    ">": lambda x, y: x > y or (x != x and y == y),
    ">=": lambda x, y: x >= y or x != x,
}


def _compare(name: str, call: Call) -> Compare:
    return (_PLAIN if all(arg.finite for arg in call.args) else _WITH_NAN)[name]


def _null_safe(call: Call, args: tuple[Run, ...]) -> Run:
    first, second = args
    equal = _compare("=", call)

    def run(row: Mapping[str, Any]) -> bool:
        left, right = first(row), second(row)
        if left is None or right is None:
            return left is right
        return equal(left, right)

    return run


for _name in _PLAIN:
    OPERATIONS[_name] = Operation(
        python=lambda call, args: strict(_compare(call.name, call))(call, args),
        spark=lambda call, args: f"({args[0]} {call.name} {args[1]})",
        text=lambda call, args: f"{args[0]} {call.name} {args[1]}",
        infix=True,
    )
OPERATIONS["<=>"] = Operation(
    python=_null_safe,
    spark=lambda _, args: f"({args[0]} <=> {args[1]})",
    text=lambda _, args: f"{args[0]} <=> {args[1]}",
    infix=True,
    nullable=never_null,
)


def compare(name: str, left: Node, right: Node) -> Node:
    """`left name right`, or a refusal."""
    operands = same((left, right), f"`{name}`")
    _scalar(operands, f"`{name}`")
    return make(name, operands, Boolean())


def _scalar(operands: tuple[Node, ...], what: str) -> None:
    if not isinstance(operands[0].type, SCALARS):
        hint = "Compare its elements or members, or use array_contains(xs, x)."
        raise mistyped(f"{what} cannot compare {article(operands[0].type)}.", written(operands), hint)


def _in_python(call: Call, args: tuple[Run, ...]) -> Run:
    options = [arg.value for arg in call.args[1:] if isinstance(arg, Literal)]
    known, otherwise = frozenset(option for option in options if option is not None), None if None in options else False
    return strict(lambda value: True if value in known else otherwise)(call, args[:1])


def _in_spark(call: Call, args: tuple[str, ...]) -> str:
    # Past ten options Spark hashes, and a hash tells -0.0 from 0.0: adding 0.0 leaves only one of them.
    value = f"try_add({args[0]}, 0.0D)" if isinstance(call.args[0].type, Float) else args[0]
    return f"({value} IN ({', '.join(args[1:])}))"


OPERATIONS["in"] = Operation(
    python=_in_python,
    spark=_in_spark,
    text=lambda _, args: f"{args[0]} IN ({', '.join(args[1:])})",
    infix=True,
)


def is_in(node: Node, options: tuple[Node, ...]) -> Node:
    """`node IN (options)`: constants only."""
    variable = next((option for option in options if not isinstance(option, Literal)), None)
    if variable is not None:
        hint = "Write x = a OR x = b for values that are not constants."
        raise ExpressionError("unsupported-expression", "IN takes constants.", got=written((variable,)), hint=hint)
    operands = same((node, *options), "IN")
    _scalar(operands, "IN")
    return make("in", operands, Boolean())


def like_pattern(pattern: str) -> str | None:
    r"""The regular expression of a LIKE pattern, or None when an escape in it means nothing.

    >>> like_pattern(r"10\%_")
    '10%.'
    """
    if not re.fullmatch(r"(?s:[^\\]|\\[\\%_])*", pattern):
        return None
    parts = re.findall(r"(?s)\\?.", pattern)
    wild = {"%": ".*", "_": "."}
    return "".join(wild.get(part) or re.escape(part[-1]) for part in parts)


def _like_python(call: Call, args: tuple[Run, ...]) -> Run:
    pattern = call.args[1]
    source = like_pattern(pattern.value) if isinstance(pattern, Literal) else None
    matches = re.compile(source or "", re.DOTALL).fullmatch
    return strict(lambda value: matches(value) is not None)(call, args[:1])


OPERATIONS["like"] = Operation(
    python=_like_python,
    spark=lambda _, args: f"({args[0]} LIKE {args[1]})",
    text=lambda _, args: f"{args[0]} LIKE {args[1]}",
    infix=True,
)


def like(node: Node, pattern: Node) -> Node:
    """`node LIKE pattern`: a constant pattern of % (any text), _ (one character) and their escapes."""
    (value, _) = same((node, Literal("", String())), "LIKE")
    if not isinstance(value.type, String):
        raise mistyped(f"LIKE takes a string, not {article(value.type)}.", written((value,)))
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise ExpressionError("unsupported-expression", "LIKE takes a constant pattern.", got=written((pattern,)))
    if like_pattern(pattern.value) is None:
        hint = r"A backslash in a pattern stands before %, _ or another backslash."
        raise ExpressionError(
            "bad-expression", "The LIKE pattern has a bad escape.", got=written((pattern,)), hint=hint
        )
    return make("like", (value, pattern), Boolean())


def _extreme_python(better: str, call: Call, args: tuple[Run, ...]) -> Run:
    wins = _compare(better, call)

    def run(row: Mapping[str, Any]) -> Any:
        best = None
        for arg in args:
            value = arg(row)
            if value is not None and (best is None or wins(value, best)):
                best = value
        return best

    return run


for _name, _better in (("greatest", ">"), ("least", "<")):
    OPERATIONS[_name] = Operation(
        python=partial(_extreme_python, _better),
        spark=lambda call, args: f"{call.name}({', '.join(args)})",
        nullable=all_null,
    )


def extreme(name: str, nodes: tuple[Node, ...]) -> Node:
    """`greatest(...)` or `least(...)`: nulls are passed over."""
    operands = same(nodes, f"`{name}`")
    _scalar(operands, f"`{name}`")
    return make(name, operands, operands[0].type)
