"""Lists and structs: `a.b`, `xs[0]`, size and array_contains.

A member of a null struct is null, and so is an element past either end of a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import ExpressionError, did_you_mean, shown
from headrace.expression.cast import cast
from headrace.expression.coerce import same, written
from headrace.expression.constant import identifier, quoted
from headrace.expression.node import SCALARS, Call, Literal, Name, Node, article, mistyped, plain
from headrace.expression.operation import OPERATIONS, Args, Operation, Run, make, may_fail, strict
from headrace.types.field_types import Boolean, Integer, List, String, Struct, Type


def _in_parentheses(node: Node, text: str) -> str:
    return text if isinstance(node, Name) or (isinstance(node, Call) and node.name in (".", "[]")) else f"({text})"


def _name(call: Call) -> str:
    last = call.args[1]
    return str(last.value) if isinstance(last, Literal) else ""


def _member_python(call: Call, args: tuple[Run, ...]) -> Run:
    of, name = args[0], _name(call)

    def run(row: Mapping[str, Any]) -> Any:
        struct = of(row)
        return None if struct is None else struct.get(name)

    return run


def _member_nullable(args: Args, _: Type) -> bool:
    struct, name = args
    if not isinstance(struct.type, Struct) or not isinstance(name, Literal):
        return True
    return struct.nullable or struct.type[name.value].optional


OPERATIONS["."] = Operation(
    python=_member_python,
    # In parentheses the struct cannot be taken for a table of the same name.
    spark=lambda call, args: f"({args[0]}).{quoted(_name(call))}",
    text=lambda call, args: f"{_in_parentheses(call.args[0], args[0])}.{identifier(_name(call))}",
    nullable=_member_nullable,
)


def member(struct: Node, name: str) -> Node:
    """`struct.name`."""
    if not isinstance(struct.type, Struct):
        raise mistyped(f"Only a struct has members, not {article(struct.type)}.", f"{written((struct,))}.{name}")
    if name not in struct.type:
        hint = did_you_mean(name, [field.name for field in struct.type])
        message = f"{written((struct,))} has no such member."
        raise ExpressionError("unknown-field", message, got=shown(name), hint=hint)
    return make(".", (struct, Literal(name, String())), plain(struct.type[name].type))


def _element(values: list[Any], index: int) -> Any:
    return values[index] if 0 <= index < len(values) else None


OPERATIONS["[]"] = Operation(
    python=strict(_element),
    spark=lambda _, args: f"get({args[0]}, TRY_CAST({args[1]} AS INT))",
    text=lambda call, args: f"{_in_parentheses(call.args[0], args[0])}[{args[1]}]",
    nullable=may_fail,
)


def element(values: Node, index: Node) -> Node:
    """`values[index]`, from 0."""
    if not isinstance(values.type, List) or not isinstance(index.type, Integer):
        hint = "Write a.b for a member of a struct." if isinstance(values.type, Struct) else None
        got = f"{written((values,))}[{written((index,))}]"
        raise mistyped(f"`[]` takes a list and a whole number, not {article(values.type)}.", got, hint)
    return make("[]", (values, index), values.type.element)


OPERATIONS["size"] = Operation(
    python=strict(len),
    # size(NULL) is -1 under some settings, array_size(NULL) never
    spark=lambda _, args: f"CAST(array_size({args[0]}) AS BIGINT)",
)


def size(values: Node) -> Node:
    """`size(values)`: how many elements, nulls included."""
    if not isinstance(values.type, List):
        hint = "For text there is length(x)." if isinstance(values.type, String) else None
        raise mistyped(f"`size` takes a list, not {article(values.type)}.", written((values,)), hint)
    return make("size", (values,), Integer())


def _contains(values: list[Any], wanted: Any) -> bool | None:
    if wanted in values:
        return True
    return None if None in values else False


def _contains_nullable(args: Args, _: Type) -> bool:
    optional = isinstance(args[0].type, List) and args[0].type.optional
    return optional or any(arg.nullable for arg in args)


OPERATIONS["array_contains"] = Operation(
    python=strict(_contains),
    spark=lambda _, args: f"array_contains({args[0]}, {args[1]})",
    nullable=_contains_nullable,
)


def array_contains(values: Node, wanted: Node) -> Node:
    """`array_contains(values, wanted)` for a constant: null when it is not found among nulls."""
    if not isinstance(values.type, List) or not isinstance(values.type.element, SCALARS):
        raise mistyped(
            f"`array_contains` takes a list of plain values, not {article(values.type)}.", written((values,))
        )
    if not isinstance(wanted, Literal) or wanted.value is None:
        got = written((wanted,))
        raise ExpressionError("unsupported-expression", "`array_contains` looks for a constant.", got=got)
    kind = values.type.element
    (typed, _) = same((wanted, Literal(None, kind)), "`array_contains`")
    if typed.type != kind:
        got = written((values, wanted))
        raise mistyped(f"A list of {kind} holds no {typed.type}.", got, f"Cast it: CAST(... AS {kind.ddl}).")
    return make("array_contains", (values, cast(typed, kind)), Boolean())
