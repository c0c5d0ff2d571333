"""The source of Headrace as trees, read once for all tests that look for something in it."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import headrace


@functools.cache
def calls_with_text() -> tuple[ast.Call, ...]:
    """Every call in the source that has a text among its arguments, in no order."""
    found = []
    for file in Path(headrace.__file__).parent.rglob("*.py"):
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        found += [node for node in nodes if isinstance(node, ast.Call) and any(map(_is_text, node.args))]
    return tuple(found)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
