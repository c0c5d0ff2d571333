"""A lint over messages: what nobody reads until it is wrong.

It finds a forgotten f before a string with braces, two strings glued together without a space, an error code that is
not in the table, an error's sentence without a full stop, a hint that is no sentence, and a count whose noun is
always in the plural. It reads source text and imports nothing of what it reads.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import pairwise

# `{task.description}` is filled by rich's progress bars, and "/views/{view}" is a route.
_PLACEHOLDER = re.compile(r"(?<![{/])\{(?!task\.)([a-z_]\w*)[^{}]*\}(?!\})")
_GLUED_LEFT = re.compile(r"[\w.,;:!?)'\"`]$")
_GLUED_RIGHT = re.compile(r"^[\w({`'\"]")
_PATTERN = re.compile(r"\(\?|\[0-9|\[a-z|\[\.\]")
_COUNTED = re.compile(
    r" (?:[a-z]+ )?(?!as\b|is\b|was\b|has\b|this\b|always\b|minus\b|less\b|s\b)[a-z]+s\b(?! (?:them|its))"
)
_BEGINS = re.compile(r"[A-Z0-9'\"`{@]|--[a-z]|[a-z]+\.[a-z]")  # or a name: --json, hr.ratio


@dataclass(frozen=True)
class Problem:
    """One finding: the line it is on and what is wrong there."""

    line: int
    text: str


def lint(source: str, codes: Container[str], kinds: Container[str]) -> list[Problem]:
    """Everything wrong with the messages of one module, given the error codes and the names of the error classes.

    >>> lint('raise ConfigError("bad-setting", "It is wrong")', {"bad-setting"}, {"ConfigError"})
    [Problem(line=1, text="the message 'It is wrong' does not end in a full stop")]
    """
    tree = ast.parse(source)
    found = [*_unformatted(tree), *_glued(source), *_counted(tree)]
    for scope in ast.walk(tree):
        if isinstance(scope, ast.Module | ast.FunctionDef):
            found += _errors(scope, codes, kinds)
    return sorted(found, key=lambda problem: problem.line)


def _unformatted(tree: ast.Module) -> Iterator[Problem]:
    """Plain strings with a placeholder that no `.format(name=...)` of the module fills."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    inside |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    filled = {
        keyword.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"
        for keyword in node.keywords
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            names = {match.group(1) for match in _PLACEHOLDER.finditer(node.value)} - filled
            if names:
                yield Problem(node.lineno, f"{node.value!r} has braces and no f before it")


def _counted(tree: ast.Module) -> Iterator[Problem]:
    """Counts with a noun in the plural after them, which may be 1; `show_count` makes the two agree."""
    for text in ast.walk(tree):
        if not isinstance(text, ast.JoinedStr):
            continue
        for number, after in pairwise(text.values):
            if isinstance(number, ast.FormattedValue) and _is_count(number) and isinstance(after, ast.Constant):
                noun = _COUNTED.match(str(after.value))
                if noun:
                    yield Problem(text.lineno, f"{noun.group()!r} may follow a 1: use show_count")


def _is_count(value: ast.FormattedValue) -> bool:
    """Whether a placeholder is a whole number that nobody knows; constants have names in capitals."""
    spec = "" if value.format_spec is None else ast.unparse(value.format_spec).strip("f'\"")
    size = isinstance(value.value, ast.Call) and ast.unparse(value.value.func) == "len"
    constant = ast.unparse(value.value).rpartition(".")[2].isupper()
    return (size or spec == ",") and not constant


def _glued(source: str) -> Iterator[Problem]:
    """Neighbouring literals whose words run into each other; raw strings and patterns are not prose."""
    before: tokenize.TokenInfo | None = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.NL, tokenize.COMMENT):
            continue
        if token.type == tokenize.STRING and before is not None:
            left, right = _inner(before.string), _inner(token.string)
            if left is not None and right is not None and _GLUED_LEFT.search(left) and _GLUED_RIGHT.search(right):
                yield Problem(token.start[0], f"{left[-20:]!r} and {right[:20]!r} are glued together")
        before = token if token.type == tokenize.STRING else None


def _inner(literal: str) -> str | None:
    match = re.fullmatch(r"(?i)([a-z]*)('''|\"\"\"|'|\")(.*)\2", literal, re.DOTALL)
    if match is None or {"r", "b"} & set(match.group(1).lower()) or _PATTERN.search(match.group(3)):
        return None
    return match.group(3)


def _errors(scope: ast.Module | ast.FunctionDef, codes: Container[str], kinds: Container[str]) -> Iterator[Problem]:
    assigned = _assignments(scope)
    for node in _own(scope):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in kinds:
            continue
        if not node.args:
            continue
        code, *rest = node.args
        if isinstance(code, ast.Constant) and isinstance(code.value, str) and code.value not in codes:
            yield Problem(node.lineno, f"the error code {code.value!r} is not in the table")
        for part, text in _texts(rest[:1], assigned):
            if not text.endswith("."):
                yield Problem(part.lineno, f"the message {text!r} does not end in a full stop")
            elif not _BEGINS.match(text):
                yield Problem(part.lineno, f"the message {text!r} does not begin like a sentence")
        hints = [keyword.value for keyword in node.keywords if keyword.arg == "hint"]
        for part, text in _texts(hints, assigned):
            if not _BEGINS.match(text) or not text.endswith((".", "?")):
                yield Problem(part.lineno, f"the hint {text!r} is not a sentence")


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """What belongs to a scope and not to a function inside it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, ast.FunctionDef):
            yield child
            yield from _own(child)


def _assignments(scope: ast.AST) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in _own(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name, value in _pairs(target, node.value):
                    found.setdefault(name, []).append(value)
    return found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for inner, part in zip(target.elts, value.elts, strict=False):
            yield from _pairs(inner, part)


def _texts(nodes: list[ast.expr], assigned: dict[str, list[ast.expr]]) -> Iterator[tuple[ast.expr, str]]:
    """The literal texts an expression can be; what is computed elsewhere is left alone."""
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)):
                yield node, text
            case ast.JoinedStr(values=values):
                yield node, "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in values)
            case ast.IfExp(body=body, orelse=other):
                yield from _texts([body, other], assigned)
            case ast.BoolOp(values=values):
                yield from _texts(values, assigned)
            case ast.Name(id=name):
                yield from _texts(assigned.get(name, []), {})
