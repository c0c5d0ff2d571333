"""The place of an error in an expression: its lines, and carets under what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unicodedata import combining, east_asian_width

from headrace.errors import ExpressionError

AROUND = 2
"""Lines that are shown before and after the one that is wrong."""
WIDEST, BEFORE = 100, 40
"""Characters that are shown of a line, and how many of them before the place when the line is longer."""


def excerpt(text: str, start: int, end: int) -> str:
    """The lines around a place of a text, with carets under it.

    >>> print(excerpt("amuont > 0", 0, 6))
    amuont > 0
    ^^^^^^
    """
    start = min(max(start, 0), len(text))
    above = text.count("\n", 0, start)
    lines = text.split("\n")
    line, begin = lines[above], text.rfind("\n", 0, start) + 1
    column, last = start - begin, min(max(end, start + 1), begin + len(line)) - begin
    shown, column, last = _cut(line, column, max(last, column + 1))
    carets = " " * _width(shown[:column]) + "^" * max(_width(shown[column:last]), 1)
    before, after = lines[max(0, above - AROUND) : above], lines[above + 1 : above + 1 + AROUND]
    found = [*(_cut(each, 0, 0)[0] for each in before), shown, carets, *(_cut(each, 0, 0)[0] for each in after)]
    return "\n".join(each.rstrip() for each in found)


def underlined(text: str) -> str:
    """A text with all of it marked.

    >>> print(underlined("amount * 2"))
    amount * 2
    ^^^^^^^^^^
    """
    return excerpt(text, 0, len(text))


def point_at(error: ExpressionError, text: str, tree: Any) -> ExpressionError:
    """The same error with the place of a part of the text, unless it knows a narrower one."""
    if error.excerpt is None:
        error.excerpt = excerpt(text, *_span(text, tree))
    return error


def _span(text: str, tree: Any) -> tuple[int, int]:
    """Where a part of an expression stands; the whole of it where sqlglot does not say."""
    places = list(_places(tree))
    if not places:
        return 0, len(text)
    start, end = min(start for start, _ in places), max(end for _, end in places)
    if type(tree).__name__ in ("Cast", "TryCast"):
        start = max(0, text.lower().rfind("cast", 0, start))
    if type(tree).__name__ == "Anonymous" and "(" not in text[start:end]:
        end = text.find("(", end) + 1 or end
    while text.count("(", start, end) > text.count(")", start, end) and (close := text.find(")", end)) >= 0:
        end = close + 1
    return start, end


def _places(tree: Any) -> Iterator[tuple[int, int]]:
    """Where the words and constants of a tree of sqlglot's stand."""
    for part in tree.walk() if hasattr(tree, "walk") else ():  # the grammar may leave out what a keyword needs
        start, end = part.meta.get("start"), part.meta.get("end")
        if start is not None and end is not None:
            yield start, end + 1


def _cut(line: str, start: int, end: int) -> tuple[str, int, int]:
    """A line without tabs that fits a screen, and the place in it."""
    line = "".join(" " if char.isspace() or not char.isprintable() else char for char in line)
    if len(line) <= WIDEST:
        return line, start, end
    begin = max(0, start - BEFORE)
    cut = line[begin : begin + WIDEST]
    left, right = "..." if begin else "", "..." if begin + WIDEST < len(line) else ""
    moved = len(left) - begin
    return f"{left}{cut}{right}", start + moved, min(end + moved, len(left) + len(cut))


def _width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
