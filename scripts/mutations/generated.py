"""Mutations chosen by a seed: one operator, constant, condition or call of the source is changed.

The same seed gives the same mutations of the same code. Sites are found in the syntax tree and changed in the text, so
every other line stays as it is. First a kind of change is drawn, then a site of that kind: constants are many, and
would crowd out the rest.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from scripts.mutations.mutation import Mutation

SOURCE = "src/headrace"
LEFT_OUT = ("cli", "sample_payments.py")
"""Parts of the package that are commands, a generated world and an example."""

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
TALK = ("_logger", "logger", "logging", "warnings")
"""Calls on these are talk, which few tests read."""
SMALL = 2
"""The largest constant that is an edge rather than a size."""


def choose_mutations(root: Path, seed: int, count: int) -> list[Mutation]:
    """So many different mutations of the source of a tree."""
    chance = random.Random(seed)
    sites: dict[str, list[Mutation]] = {}
    for file in _files(root):
        for mutation in mutations_of(file.read_text("utf-8"), file.relative_to(root).as_posix()):
            sites.setdefault(mutation.name, []).append(mutation)
    chosen: list[Mutation] = []
    while len(chosen) < count and sites:
        kind = chance.choice(sorted(sites))
        mutation = sites[kind].pop(chance.randrange(len(sites[kind])))
        chosen.append(replace(mutation, name=f"seed {seed}, {len(chosen) + 1}: {kind}"))
        sites = {kind: left for kind, left in sites.items() if left}
    return chosen


def _files(root: Path) -> list[Path]:
    package = root / SOURCE
    found = (file for file in package.rglob("*.py") if file.relative_to(package).parts[0] not in LEFT_OUT)
    return sorted(found, key=lambda file: file.relative_to(package).as_posix())


def mutations_of(source: str, file: str) -> list[Mutation]:
    """Every mutation of a module's text, in the order of its lines; the name is the kind of change.

    >>> [each.apply("small = a < b") for each in mutations_of("small = a < b", "a.py")]
    ['small = a <= b']
    """
    tree, text = ast.parse(source), _Text(source)
    skipped = _left_alone(tree)
    found = [
        Mutation(kind, file, span, after)
        for node in ast.walk(tree)
        if id(node) not in skipped
        for kind, span, after in _changes(node, text)
    ]
    return sorted(found, key=lambda each: (each.span, each.name))


class _Text:
    """A source whose nodes are found by character: the tree counts bytes in a line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._lines = source.splitlines(keepends=True)
        self._begins = [0]
        for line in self._lines:
            self._begins.append(self._begins[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        """The character at a line, from 1, and a column in bytes."""
        return self._begins[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """The characters of a node."""
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno or 0, node.end_col_offset or 0)

    def between(self, left: ast.expr, right: ast.expr, operator: str) -> Iterator[tuple[int, int]]:
        """Where an operator stands between its two sides; nothing when a comment makes that unclear."""
        low, high = self.span(left)[1], self.span(right)[0]
        gap = self.source[low:high]
        pattern = rf"\b{operator}\b" if operator.isalpha() else rf"(?<![<>=!]){re.escape(operator)}(?![<>=])"
        hits = [] if "#" in gap else list(re.finditer(pattern, gap))
        if len(hits) == 1:
            yield low + hits[0].start(), low + hits[0].end()


Change = tuple[str, tuple[int, int], str]
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


def _changes(node: ast.AST, text: _Text) -> Iterator[Change]:
    match node:
        case ast.Compare():
            sides = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
                if sign := _SIGNS.get(type(operator)):
                    for span in text.between(left, right, sign):
                        yield "comparison", span, COMPARISONS[sign]
        case ast.BinOp(op=ast.Add()) if not (_is_text(node.left) or _is_text(node.right)):
            for span in text.between(node.left, node.right, "+"):
                yield "plus to minus", span, "-"
        case ast.BoolOp():
            word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                for span in text.between(left, right, word):
                    yield "and to or", span, other
        case ast.If() | ast.IfExp() | ast.While():
            low, high = text.span(node.test)
            yield "condition negated", (low, high), f"(not ({text.source[low:high]}))"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in EXTREMES:
            end = text.span(node.func)[1]
            yield "least and greatest", (end - len(name), end), EXTREMES[name]
        case ast.Constant(value=value) if type(value) is int and abs(value) <= SMALL:
            yield "constant", text.span(node), str(value + 1)
        case ast.Expr(value=ast.Call()) if not _is_talk(node.value):
            yield "call removed", text.span(node), "pass"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _is_talk(call: ast.expr) -> bool:
    named = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
    return named.partition(".")[0] in TALK


def _left_alone(tree: ast.Module) -> set[int]:
    """Nodes that never run, as annotations and what is under `if TYPE_CHECKING`, and those within f-strings.

    Python 3.11 does not say where in the text the latter are.
    """
    found: set[int] = set()
    for node in ast.walk(tree):
        unused: list[ast.AST | None] = []
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            unused = [node]
        elif isinstance(node, ast.JoinedStr):
            unused = list(node.values)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            unused = [node.returns]
        elif isinstance(node, ast.arg | ast.AnnAssign):
            unused = [node.annotation]
        found |= {id(part) for each in unused if each is not None for part in ast.walk(each)}
    return found
