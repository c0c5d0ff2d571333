"""From sqlglot's tree to ours: the only module that looks into sqlglot's trees.

Everything that is not listed here is refused, an argument of a listed construct included. Types are worked out on the
way, by the functions that build each call. What comes out goes into an `Expression` (see `value`).
"""

from __future__ import annotations

import re
from typing import Any

from headrace.errors import ExpressionError, did_you_mean, shown
from headrace.expression import comparison, functions, logic, nested, source, strings
from headrace.expression.arithmetic import arithmetic, negative
from headrace.expression.cast import cast
from headrace.expression.column import ColumnType
from headrace.expression.excerpt import excerpt, point_at
from headrace.expression.grammar import parsed
from headrace.expression.literals import moment, number, target
from headrace.expression.node import MAX_DEPTH, NULL, Literal, Name, Node, Void, mistyped, plain
from headrace.expression.operation import too_deep
from headrace.types.field_types import Boolean, String, Timestamp

_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%"}
_COMPARE = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NullSafeEQ": "<=>"}
_HARMLESS = {"safe", "typed", "coalesce", "nested", "is_string"}
_CONSTRUCTS = {
    "All": "A subquery",
    "Any": "ANY or a subquery",
    "DPipe": "||",
    "Escape": "LIKE ... ESCAPE",
    "Exists": "A subquery",
    "HexString": "A binary constant",
    "Interval": "An interval",
    "IntDiv": "DIV",
    "JSONExtract": "->",
    "Parameter": "A parameter",
    "Placeholder": "A parameter",
    "RegexpLike": "RLIKE",
    "Select": "A subquery",
    "Star": "*",
    "Subquery": "A subquery",
    "Tuple": "A list in parentheses",
    "Window": "A window function",
}
_HINTS = {
    "IntDiv": "Write floor(a / b), or CAST(a / b AS BIGINT) to cut towards zero.",
    "Interval": "Work in whole numbers: unix_seconds(at) + 3600.",
    "RegexpLike": "Use LIKE, startswith, endswith or contains.",
    "ILike": "Write lower(x) LIKE 'pattern'.",
    "Window": "Windows are features of a view, such as hr.sum(..., over='1h').",
    "Extract": "Write hour(at), year(at) and the like.",
}


def read(text: str, columns: dict[str, ColumnType]) -> Node:
    """The tree of an expression over some columns, or a refusal."""
    node = _Reader(columns, text).node(parsed(source.checked(text)))
    if isinstance(node.type, Void):
        hint = "Give it one, as in CAST(NULL AS BIGINT)."
        error = mistyped("The expression is NULL of no type.", shown(text), hint)
        error.excerpt = excerpt(text, 0, len(text))
        raise error
    return node


class _Reader:
    """One pass over sqlglot's tree; a class for the columns, the text and the depth it keeps."""

    def __init__(self, columns: dict[str, ColumnType], text: str) -> None:
        self.columns, self.text, self.depth = columns, text, 0

    def node(self, tree: Any) -> Node:
        while type(tree).__name__ == "Paren":
            tree = tree.this
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                raise too_deep(f"more than {MAX_DEPTH} levels")
            node = self._node(type(tree).__name__, tree)
        except ExpressionError as error:
            raise point_at(error, self.text, tree) from None
        self.depth -= 1
        return node

    def _node(self, name: str, tree: Any) -> Node:
        if name in _ARITHMETIC:
            return arithmetic(_ARITHMETIC[name], *self._both(tree))
        if name in _COMPARE:
            return comparison.compare(_COMPARE[name], *self._both(tree))
        if name in ("And", "Or", "DPipe"):
            join = {"And": logic.conjunction, "Or": logic.disjunction, "DPipe": strings.concat}[name]
            return join(*map(self.node, _chain(tree)))
        read = getattr(self, f"_{name.lower()}", None)
        if read is None:
            raise _unsupported(tree)
        node: Node = read(tree)
        return node

    def _both(self, tree: Any) -> tuple[Node, Node]:
        _only(tree, "this", "expression")
        return self.node(tree.this), self.node(tree.expression)

    def _literal(self, tree: Any) -> Node:
        return Literal(tree.this, String()) if tree.is_string else number(tree.this)

    def _null(self, _: Any) -> Node:
        return NULL

    def _boolean(self, tree: Any) -> Node:
        return Literal(bool(tree.this), Boolean())

    def _column(self, tree: Any) -> Node:
        if any(type(part).__name__ != "Identifier" for part in tree.parts):
            raise _unsupported(tree.this)
        root, *members = (str(part.name) for part in tree.parts)
        if root not in self.columns:
            raise _unknown(root, self.columns)
        column = self.columns[root]
        node: Node = Name(root, plain(column.type), column.nullable)
        for name in members:
            node = nested.member(node, name)
        return node

    def _dot(self, tree: Any) -> Node:
        if type(tree.expression).__name__ != "Identifier":
            raise _unsupported(tree)
        return nested.member(self.node(tree.this), tree.expression.name)

    def _bracket(self, tree: Any) -> Node:
        _only(tree, "this", "expressions")
        if len(tree.expressions) != 1:
            raise _unsupported(tree)
        return nested.element(self.node(tree.this), self.node(tree.expressions[0]))

    def _neg(self, tree: Any) -> Node:
        inner = tree.this
        if type(inner).__name__ == "Literal" and not inner.is_string:
            return number(inner.this, negative=True)
        return negative(self.node(inner))

    def _not(self, tree: Any) -> Node:
        return logic.negation(self.node(tree.this))

    def _is(self, tree: Any) -> Node:
        kind = type(tree.expression).__name__
        if kind == "Null":
            return logic.is_null(self.node(tree.this))
        if kind != "Boolean":
            raise _unsupported(tree)
        return comparison.compare("<=>", logic.condition(self.node(tree.this), "IS"), self._boolean(tree.expression))

    def _nullsafeneq(self, tree: Any) -> Node:
        return logic.negation(comparison.compare("<=>", *self._both(tree)))

    def _between(self, tree: Any) -> Node:
        _only(tree, "this", "low", "high")
        return logic.between(self.node(tree.this), self.node(tree.args["low"]), self.node(tree.args["high"]))

    def _in(self, tree: Any) -> Node:
        if tree.args.get("query") is not None:
            raise _unsupported(tree.args["query"])
        _only(tree, "this", "expressions")
        return comparison.is_in(self.node(tree.this), tuple(map(self.node, tree.expressions)))

    def _like(self, tree: Any) -> Node:
        _only(tree, "this", "expression", "negate")
        found = comparison.like(self.node(tree.this), self.node(tree.expression))
        return logic.negation(found) if tree.args.get("negate") else found

    def _case(self, tree: Any) -> Node:
        _only(tree, "this", "ifs", "default")
        base = None if tree.this is None else self.node(tree.this)
        branches = []
        for branch in tree.args["ifs"]:
            when = self.node(branch.this)
            when = when if base is None else comparison.compare("=", base, when)
            branches.append((when, self.node(branch.args["true"])))
        default = tree.args.get("default")
        return logic.case(branches, NULL if default is None else self.node(default))

    def _if(self, tree: Any) -> Node:
        args = [tree.this, tree.args.get("true"), tree.args.get("false")]
        return functions.call("if", tuple(self.node(arg) for arg in args if arg is not None))

    def _cast(self, tree: Any) -> Node:
        _only(tree, "this", "to")
        kind, value = target(tree.args["to"]), self.node(tree.this)
        if isinstance(kind, Timestamp) and isinstance(value, Literal) and isinstance(value.value, str):
            return moment(value.value)
        return cast(value, kind)

    _trycast = _cast

    def _anonymous(self, tree: Any) -> Node:
        name = tree.this if isinstance(tree.this, str) else tree.this.name
        functions.find_function(name)
        return functions.call(name, tuple(map(self.node, tree.expressions)))


def _chain(tree: Any) -> list[Any]:
    """The operands of a AND b AND c, left to right, without recursion: conditions in a row are long, not deep."""
    kind, operands = type(tree), []
    while type(tree) is kind:
        _only(tree, "this", "expression")
        operands.append(tree.expression)
        tree = tree.this
        while type(tree).__name__ == "Paren" and type(tree.this) is kind:
            tree = tree.this
    return [tree, *reversed(operands)]


def _only(tree: Any, *allowed: str) -> None:
    for name, value in tree.args.items():
        if value and name not in allowed and name not in _HARMLESS:
            construct = f"{type(tree).__name__.upper()} ... {name.upper()}"
            raise ExpressionError("unsupported-expression", f"{construct} is not part of expressions.", got=_sql(tree))


def _unsupported(tree: Any) -> ExpressionError:
    name = type(tree).__name__
    words = _CONSTRUCTS.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()
    message = f"{words} is not part of expressions."
    return ExpressionError("unsupported-expression", message, got=_sql(tree), hint=_HINTS.get(name))


def _sql(tree: Any) -> str:
    try:
        return shown(tree.sql(dialect="spark"))
    except Exception:  # only for showing, and of a construct we do not know
        return type(tree).__name__


def _unknown(name: str, columns: dict[str, ColumnType]) -> ExpressionError:
    if name.lower() in functions.CLOCKS:
        message = f"`{name}` is not part of expressions."
        return ExpressionError("unsupported-expression", message, got=shown(name), hint=functions.instead_of(name))
    cased = [known for known in columns if known.lower() == name.lower()]
    hint = f"Did you mean {cased[0]!r}? Upper and lower case matter." if cased else did_you_mean(name, columns)
    return ExpressionError("unknown-field", f"There is no column {shown(name, 60)}.", got=shown(name), hint=hint)
