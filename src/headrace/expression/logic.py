"""Three-valued logic: AND, OR, NOT, IS NULL, and the choices CASE, IF, COALESCE, NULLIF, BETWEEN.

Several spellings of one meaning become one tree: IF and both forms of CASE are the searched CASE, BETWEEN is two
comparisons, AND and OR are flat however they were bracketed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.expression.coerce import same, written
from headrace.expression.comparison import compare
from headrace.expression.node import NULL, TRUE, Call, Literal, Node, Void, article, mistyped
from headrace.expression.operation import OPERATIONS, Args, Operation, Run, all_null, flat, make, never_null, strict
from headrace.types.field_types import Boolean, Type


def _all_true(args: tuple[Run, ...]) -> Run:
    def run(row: Mapping[str, Any]) -> bool | None:
        result: bool | None = True
        for arg in args:
            value = arg(row)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return run


def _any_true(args: tuple[Run, ...]) -> Run:
    def run(row: Mapping[str, Any]) -> bool | None:
        result: bool | None = False
        for arg in args:
            value = arg(row)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return run


def _joined(word: str, args: tuple[str, ...]) -> str:
    return f" {word} ".join(args)


def _connective(name: str, function: Callable[[tuple[Run, ...]], Run]) -> Operation:
    word = name.upper()
    return Operation(
        python=lambda _, args: function(args),
        spark=lambda _, args: f"({_joined(word, args)})",
        text=lambda _, args: _joined(word, args),
        infix=True,
        simpler=flat(name),
    )


OPERATIONS["and"] = _connective("and", _all_true)
OPERATIONS["or"] = _connective("or", _any_true)
OPERATIONS["not"] = Operation(
    python=strict(lambda value: not value),
    spark=lambda _, args: f"(NOT {args[0]})",
    text=lambda _, args: f"NOT {args[0]}",
    infix=True,
)


def _is_null(_: Call, args: tuple[Run, ...]) -> Run:
    (only,) = args
    return lambda row: only(row) is None


OPERATIONS["is null"] = Operation(
    python=_is_null,
    spark=lambda _, args: f"({args[0]} IS NULL)",
    text=lambda _, args: f"{args[0]} IS NULL",
    infix=True,
    nullable=never_null,
)


def condition(node: Node, what: str) -> Node:
    """The node as a boolean, or a refusal."""
    if isinstance(node.type, Void):
        return Literal(None, Boolean())
    if not isinstance(node.type, Boolean):
        raise mistyped(f"{what} takes conditions, not {article(node.type)}.", written((node,)))
    return node


def conjunction(*nodes: Node) -> Node:
    """`a AND b AND ...`."""
    return make("and", tuple(condition(node, "AND") for node in nodes), Boolean())


def disjunction(*nodes: Node) -> Node:
    """`a OR b OR ...`."""
    return make("or", tuple(condition(node, "OR") for node in nodes), Boolean())


def negation(node: Node) -> Node:
    """`NOT node`."""
    return make("not", (condition(node, "NOT"),), Boolean())


def is_null(node: Node) -> Node:
    """`node IS NULL`."""
    if isinstance(node.type, Void):
        return TRUE
    return make("is null", (node,), Boolean())


def between(node: Node, low: Node, high: Node) -> Node:
    """`node BETWEEN low AND high`."""
    return conjunction(compare(">=", node, low), compare("<=", node, high))


def _case_python(_: Call, args: tuple[Run, ...]) -> Run:
    *branches, otherwise = args
    pairs = tuple(zip(branches[::2], branches[1::2], strict=True))

    def run(row: Mapping[str, Any]) -> Any:
        for when, then in pairs:
            if when(row) is True:
                return then(row)
        return otherwise(row)

    return run


def _case_text(call: Call, args: tuple[str, ...]) -> str:
    last = call.args[-1]
    otherwise = "" if isinstance(last, Literal) and last.value is None else f" ELSE {args[-1]}"
    whens = "".join(f" WHEN {when} THEN {then}" for when, then in zip(args[:-1:2], args[1::2], strict=True))
    return f"CASE{whens}{otherwise} END"


def _case_nullable(args: Args, _: Type) -> bool:
    return any(node.nullable for node in (*args[1::2], args[-1]))


OPERATIONS["case"] = Operation(
    python=_case_python,
    spark=lambda call, args: f"({_case_text(call, args)})",
    text=_case_text,
    nullable=_case_nullable,
)


def case(branches: Sequence[tuple[Node, Node]], otherwise: Node = NULL) -> Node:
    """`CASE WHEN ... THEN ... ELSE otherwise END`."""
    *values, last = same([*(then for _, then in branches), otherwise], "CASE")
    args: list[Node] = []
    for (when, _), then in zip(branches, values, strict=True):
        args += (condition(when, "WHEN"), then)
    return make("case", (*args, last), last.type)


def null_if(node: Node, value: Node) -> Node:
    """`NULLIF(node, value)`: null where the two are equal, else the first."""
    return case([(compare("=", node, value), NULL)], node)


def _coalesce_python(_: Call, args: tuple[Run, ...]) -> Run:
    def run(row: Mapping[str, Any]) -> Any:
        for arg in args:
            value = arg(row)
            if value is not None:
                return value
        return None

    return run


OPERATIONS["coalesce"] = Operation(
    python=_coalesce_python,
    spark=lambda _, args: f"coalesce({', '.join(args)})",
    nullable=all_null,
)


def coalesce(*nodes: Node) -> Node:
    """`COALESCE(...)`: the first that is not null."""
    operands = same(nodes, "`coalesce`")
    return make("coalesce", operands, operands[0].type)
