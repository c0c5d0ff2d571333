"""Functions of strings.

Upper and lower case change ASCII letters only: what lies beyond differs between Java and Python and from version to
version. Lengths and positions count code points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.expression.coerce import same, written
from headrace.expression.node import Literal, Node, Void, article, mistyped
from headrace.expression.operation import OPERATIONS, Operation, as_function, flat, make, may_fail, strict
from headrace.types.field_types import Integer, String, Type

_LOWER, _UPPER = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TO_LOWER, _TO_UPPER = str.maketrans(_UPPER, _LOWER), str.maketrans(_LOWER, _UPPER)
INT32 = 2**31


def _translated(letters: str, into: str) -> Callable[..., str]:
    return lambda _, args: f"translate({args[0]}, '{letters}', '{into}')"


def _substring(text: str, position: int, length: int = INT32 - 1) -> str | None:
    if not (-INT32 <= position < INT32 and -INT32 <= length < INT32):
        return None
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) : max(min(start + length, INT32 - 1), 0)]


def _substring_spark(_: Any, args: tuple[str, ...]) -> str:
    return f"substring({', '.join((args[0], *(f'TRY_CAST({arg} AS INT)' for arg in args[1:])))})"


def _replace(text: str, search: str, replacement: str = "") -> str:
    return text.replace(search, replacement) if search else text


OPERATIONS["lower"] = Operation(strict(lambda text: text.translate(_TO_LOWER)), _translated(_UPPER, _LOWER))
OPERATIONS["upper"] = Operation(strict(lambda text: text.translate(_TO_UPPER)), _translated(_LOWER, _UPPER))
OPERATIONS["trim"] = Operation(strict(lambda text: text.strip(" ")), as_function)
OPERATIONS["length"] = Operation(strict(len), lambda _, args: f"CAST(length({args[0]}) AS BIGINT)")
OPERATIONS["substring"] = Operation(strict(_substring), _substring_spark, nullable=may_fail)
OPERATIONS["||"] = Operation(
    python=strict(lambda *texts: "".join(texts)),
    spark=lambda _, args: f"concat({', '.join(args)})",
    text=lambda _, args: f"concat({', '.join(args)})",
    simpler=flat("||"),
)
OPERATIONS["startswith"] = Operation(strict(str.startswith), as_function)
OPERATIONS["endswith"] = Operation(strict(str.endswith), as_function)
OPERATIONS["contains"] = Operation(strict(lambda text, part: part in text), as_function)
OPERATIONS["replace"] = Operation(strict(_replace), as_function)


def of_strings(name: str, kind: Type, *nodes: Node) -> Node:
    """A call of a function that takes strings only."""
    for node in nodes:
        if not isinstance(node.type, (String, Void)):
            hint = "Cast it: CAST(x AS STRING)." if node.type.name in ("integer", "boolean") else None
            said = "concat" if name == "||" else name
            raise mistyped(f"`{said}` takes strings, not {article(node.type)}.", written(nodes), hint)
    return make(name, same((*nodes, Literal("", String())), f"`{name}`")[:-1], kind)


def concat(*nodes: Node) -> Node:
    """`concat(a, b, ...)` and `a || b`: null when a part is."""
    return of_strings("||", String(), *nodes)


def substring(node: Node, position: Node, length: Node | None = None) -> Node:
    """`substring(text, position, length)`: from 1, or from the end when negative. Null beyond 32 bits."""
    numbers = tuple(part for part in (position, length) if part is not None)
    for part in numbers:
        if not isinstance(part.type, (Integer, Void)):
            raise mistyped(f"`substring` takes whole numbers, not {article(part.type)}.", written((node, *numbers)))
    (text, _) = same((node, Literal("", String())), "`substring`")
    whole = same((*numbers, Literal(0, Integer())), "`substring`")[:-1]
    return make("substring", (text, *whole), String())
