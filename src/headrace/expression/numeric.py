"""Functions of numbers: abs, sqrt, floor, ceil, round, and `finite`, which ends every float expression.

The Spark text writes its argument once, however deep expressions nest, so what Spark saturates at is found by steps
over the end of 64 bits instead of by comparisons. Functions whose last digit depends on a library (exp, ln, pow, sin)
are not here: Java and C do not agree on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal as Exact
from typing import Any

from headrace.expression.arithmetic import number, overflows, signed
from headrace.expression.cast import NOT_FINITE, cast, whole_part
from headrace.expression.coerce import decimal_type, written
from headrace.expression.node import Call, Literal, Node, mistyped
from headrace.expression.operation import OPERATIONS, Operation, Run, make, strict
from headrace.types.field_types import Decimal, Float, Integer


def _magnitude(value: Any) -> Any:
    if isinstance(value, int):
        return whole_part(abs(value))
    return value.copy_abs() if isinstance(value, Exact) else abs(value)


OPERATIONS["abs"] = Operation(
    python=strict(_magnitude),
    spark=lambda call, args: (
        # abs() of the smallest integer would throw
        f"TRY_CAST(abs(CAST({args[0]} AS DECIMAL(20,0))) AS BIGINT)"
        if isinstance(call.type, Integer)
        else f"abs({args[0]})"
    ),
    nullable=overflows,
)
OPERATIONS["sqrt"] = Operation(
    python=strict(lambda x: math.nan if x < 0 else math.sqrt(x)),
    spark=lambda _, args: f"sqrt({args[0]})",
    finite=False,
)
OPERATIONS["finite"] = Operation(
    python=strict(lambda x: x if math.isfinite(x) else None),
    spark=lambda _, args: NOT_FINITE.format(args[0]),
    nullable=lambda args, _: args[0].nullable or not args[0].finite,
    finite=True,
    simpler=lambda args, _: args[0] if args[0].finite else None,
)


_EDGE = 2.0**63 - 1024
"""The largest double below 2^63."""


def _rounded_float(function: Callable[[float], int]) -> Callable[[float], int | None]:
    def run(value: float) -> int | None:
        return function(value) if -_EDGE < value < _EDGE else None

    return run


def _rounding(name: str, function: Callable[[Any], int]) -> Operation:
    of_float, of_decimal = _rounded_float(function), lambda value: Exact(function(value))

    def python(call: Call, args: tuple[Run, ...]) -> Run:
        return strict(of_float if isinstance(call.type, Integer) else of_decimal)(call, args)

    def spark(call: Call, args: tuple[str, ...]) -> str:
        if isinstance(call.type, Decimal):
            return f"CAST({name}({args[0]}) AS {call.type.ddl})"
        # Past 64 bits Spark throws, or saturates, by setting. So everything past the edge, NaN and NULL (which least
        # and greatest pass over) become the edge itself, and a step over the end of 64 bits and back makes it NULL.
        inside = f"{name}(greatest(least({args[0]}, {_EDGE!r}D), (-{_EDGE!r}D)))"
        return f"try_subtract(try_add(try_add(try_subtract({inside}, 1025L), 1025L), 1024L), 1024L)"

    return Operation(python=python, spark=spark, nullable=overflows)


OPERATIONS["floor"] = _rounding("floor", math.floor)
OPERATIONS["ceil"] = _rounding("ceil", math.ceil)


def absolute(node: Node) -> Node:
    """`abs(node)`."""
    return make("abs", (signed(node, "abs"),), node.type)


def square_root(node: Node) -> Node:
    """`sqrt(node)`, a float; null in the end for what has none."""
    return make("sqrt", (cast(number(node, "sqrt"), Float()),), Float())


def floor(node: Node) -> Node:
    """`floor(node)`: of a float an integer, null outside 64 bits."""
    return _round_to_whole(node, "floor")


def ceil(node: Node) -> Node:
    """`ceil(node)`: of a float an integer, null outside 64 bits."""
    return _round_to_whole(node, "ceil")


def _round_to_whole(node: Node, name: str) -> Node:
    kind = number(node, name).type
    if isinstance(kind, Integer) or (isinstance(kind, Decimal) and kind.scale == 0):
        return node
    if isinstance(kind, Decimal):
        return make(name, (node,), Decimal(kind.precision - kind.scale + 1, 0))
    return make(name, (cast(node, Float()),), Integer())


def finite(node: Node) -> Node:
    """`finite(node)`: a float, or null when it is NaN or infinite."""
    return make("finite", (cast(number(node, "finite"), Float()),), Float())


def rounded(node: Node, places: Node | None = None) -> Node:
    """`round(node, places)` of an integer or a decimal, half up."""
    kind = number(node, "round").type
    if isinstance(kind, Float):
        hint = "Declare the field as hr.Decimal, or round to a whole number with floor(x + 0.5)."
        raise mistyped("`round` takes integers and decimals, not a float.", written((node,)), hint)
    count = places.value if isinstance(places, Literal) and isinstance(places.type, Integer) else None
    if places is not None and (count is None or not 0 <= count <= 38):
        raise mistyped("The places of `round` must be a whole number from 0 to 38.", written((places,)))
    scale = count or 0
    if isinstance(kind, Integer) or (isinstance(kind, Decimal) and kind.scale <= scale):
        return node
    digits = decimal_type(node)
    return cast(node, Decimal(digits.precision - digits.scale + scale + 1, scale))
