"""What a call means, three times over: as a Python function, as Spark SQL text, and as canonical text.

The operations themselves are in `arithmetic`, `numeric`, `comparison`, `logic`, `cast`, `strings`, `moments` and
`nested`, each with its typing, its Python and its Spark side by side; they register here. This module only knows how
to put them together: `make` builds a call, `python`, `spark` and `text` read a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.errors import ExpressionError
from headrace.expression import constant
from headrace.expression.node import MAX_DEPTH, MAX_SIZE, Call, Literal, Name, Node
from headrace.types.field_types import Float, Type

Run = Callable[[Mapping[str, Any]], Any]
Args = tuple[Node, ...]
Texts = tuple[str, ...]


def any_null(args: Args, _: Type) -> bool:
    """Null when an argument is: the rule of most operations."""
    return any(arg.nullable for arg in args)


def all_null(args: Args, _: Type) -> bool:
    """Null only when every argument is."""
    return all(arg.nullable for arg in args)


def may_fail(_: Args, __: Type) -> bool:
    """Null when the operation fails: overflow, division by zero, text that is no number."""
    return True


def never_null(_: Args, __: Type) -> bool:
    """Never null, whatever the arguments."""
    return False


def as_function(call: Call, args: Texts) -> str:
    """The canonical text of most operations: the name in lower case and the arguments."""
    return f"{call.name}({', '.join(args)})"


def flat(name: str) -> Callable[[Args, Type], Node | None]:
    """One call for calls of the same operation inside each other: (a AND b) AND c is a AND b AND c."""

    def simpler(args: Args, kind: Type) -> Node | None:
        parts: list[Node] = []
        for arg in args:
            parts += arg.args if isinstance(arg, Call) and arg.name == name else (arg,)
        return make(name, tuple(parts), kind) if len(parts) > len(args) else None

    return simpler


def unchanged(_: Args, __: Type) -> Node | None:
    """No simpler form."""
    return None


@dataclass(frozen=True)
class Operation:
    """One operation.

    Parameters
    ----------
    python
        Given the call and its compiled arguments, the compiled call.
    spark
        Given the call and its arguments' Spark SQL, the Spark SQL of the call, in parentheses where it needs them.
    text
        The same in the canonical form; `infix` says that it and its operands may need parentheses.
    nullable
        Whether the result may be null.
    finite
        Whether a float result is finite: always, never for sure, or (None) when the arguments are.
    simpler
        Another node that means the same, or None. Keeps one meaning from having two forms.
    """

    python: Callable[[Call, tuple[Run, ...]], Run]
    spark: Callable[[Call, Texts], str]
    text: Callable[[Call, Texts], str] = as_function
    infix: bool = False
    nullable: Callable[[Args, Type], bool] = any_null
    finite: bool | None = None
    simpler: Callable[[Args, Type], Node | None] = unchanged


OPERATIONS: dict[str, Operation] = {}


def make(name: str, args: Args, kind: Type) -> Node:
    """A call of an operation on arguments of the right types."""
    operation = OPERATIONS[name]
    simpler = operation.simpler(args, kind)
    if simpler is not None:
        return simpler
    depth, size = 1 + max(arg.depth for arg in args), 1 + sum(arg.size for arg in args)
    if depth > MAX_DEPTH:
        raise too_deep(f"{depth} levels")
    if size > MAX_SIZE:
        hint = f"At most {MAX_SIZE:,} operations, computed columns written out; let the producer send part of it."
        raise ExpressionError("unsupported-expression", "The expression is too long.", got=f"{size:,}", hint=hint)
    finite = operation.finite
    if finite is None:
        finite = all(arg.finite for arg in args if isinstance(arg.type, Float))
    return Call(name, args, kind, operation.nullable(args, kind), finite, depth, size)


def too_deep(got: str, excerpt: str | None = None) -> ExpressionError:
    """The refusal of a tree that is nested too deeply."""
    hint = f"At most {MAX_DEPTH} levels, computed columns written out; split it, or let the producer send part of it."
    return ExpressionError(
        "unsupported-expression", "The expression is nested too deeply.", got=got, hint=hint, excerpt=excerpt
    )


def python(node: Node) -> Run:
    """Compile a tree to nested closures over a row."""
    if isinstance(node, Name):
        name = node.name
        return lambda row: row.get(name)
    if isinstance(node, Literal):
        value = node.value
        return lambda _: value
    return OPERATIONS[node.name].python(node, tuple(python(arg) for arg in node.args))


def spark(node: Node) -> str:
    """The Spark SQL of a tree, fully parenthesised."""
    if isinstance(node, Name):
        return constant.quoted(node.name)
    if isinstance(node, Literal):
        return constant.spark(node.value, node.type)
    return OPERATIONS[node.name].spark(node, tuple(spark(arg) for arg in node.args))


def text(node: Node) -> str:
    """The canonical SQL of a tree."""
    if isinstance(node, Name):
        return constant.identifier(node.name)
    if isinstance(node, Literal):
        return constant.text(node.value, node.type)
    operation = OPERATIONS[node.name]
    return operation.text(node, tuple(operand(arg) if operation.infix else text(arg) for arg in node.args))


def operand(node: Node) -> str:
    """The canonical SQL of a tree inside an infix operation, in parentheses where it needs them."""
    return f"({text(node)})" if isinstance(node, Call) and OPERATIONS[node.name].infix else text(node)


def strict(function: Callable[..., Any]) -> Callable[[Call, tuple[Run, ...]], Run]:
    """The Python of an operation that is null when an argument is, and `function` of the values otherwise."""

    def compiled(call: Call, args: tuple[Run, ...]) -> Run:
        if len(args) == 1:
            return _strict_one(function, args[0])
        if len(args) == 2:
            last = call.args[1]
            if isinstance(last, Literal) and last.value is not None:
                return _strict_constant(function, args[0], last.value)
            return _strict_two(function, *args)
        return _strict_many(function, args)

    return compiled


def _strict_one(function: Callable[..., Any], only: Run) -> Run:
    def run(row: Mapping[str, Any]) -> Any:
        value = only(row)
        return None if value is None else function(value)

    return run


def _strict_constant(function: Callable[..., Any], first: Run, constant: Any) -> Run:
    def run(row: Mapping[str, Any]) -> Any:
        value = first(row)
        return None if value is None else function(value, constant)

    return run


def _strict_two(function: Callable[..., Any], first: Run, second: Run) -> Run:
    def run(row: Mapping[str, Any]) -> Any:
        left = first(row)
        if left is None:
            return None
        right = second(row)
        return None if right is None else function(left, right)

    return run


def _strict_many(function: Callable[..., Any], args: tuple[Run, ...]) -> Run:
    def run(row: Mapping[str, Any]) -> Any:
        values = [arg(row) for arg in args]
        return None if None in values else function(*values)

    return run
