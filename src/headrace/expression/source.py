"""Expression text before it is parsed: what can be told from tokens alone.

Here strings are decoded (the parser's own decoding joins 'it''s' to its), and comments, several statements, templates
and nesting beyond measure are refused. The tokens go on to `read`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from headrace.errors import ExpressionError, shown
from headrace.expression.excerpt import excerpt
from headrace.expression.node import MAX_DEPTH
from headrace.expression.operation import too_deep
from headrace.plural import show_count

LONGEST = 10_000
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "\\": "\\", "'": "'", '"': '"'}
_KEPT = {"%": "\\%", "_": "\\_"}
_ESCAPE = re.compile(r"(?s)\\(u[0-9A-Fa-f]{4}|.)|(''|\"\")")


def unreadable(
    text: str, position: int, message: str, hint: str | None = None, *, code: str = "bad-expression", length: int = 1
) -> ExpressionError:
    """The refusal of text, with the place in the message and marked below what was written."""
    line, column = text.count("\n", 0, position) + 1, position - (text.rfind("\n", 0, position) + 1) + 1
    where = f"column {column}" if "\n" not in text else f"line {line}, column {column}"
    marked = excerpt(text, position, position + length)
    return ExpressionError(code, f"{message} at {where}.", got=shown(text), hint=hint, excerpt=marked)


def checked(text: Any) -> str:
    """The text, refused when it cannot be an expression at all."""
    if not isinstance(text, str):
        hint = 'Write it as text, as in "amount > 0".'
        raise ExpressionError("bad-expression", "An expression must be text.", got=shown(text), hint=hint)
    if len(text) > LONGEST:
        got, hint = show_count(len(text), "character"), f"At most {LONGEST:,} characters."
        raise ExpressionError("bad-expression", "The expression is too long.", got=got, hint=hint)
    if not text.strip():
        raise ExpressionError("bad-expression", "The expression is empty.", got=shown(text))
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ExpressionError("bad-expression", "The expression has half a character in it.", got=ascii(text)[:80])
    return text


def tokens(text: str, dialect: Any) -> list[Any]:
    """The tokens of an expression, with strings decoded."""
    from sqlglot.errors import TokenError

    try:
        found = dialect.tokenize(text)
    except TokenError as error:
        position = text.rfind("'") if text.count("'") % 2 else getattr(error, "end", 0) or 0
        hint = "A quote that is opened is closed, as in 'text' or `column`."
        raise unreadable(text, min(position, len(text)), "The expression cannot be read", hint) from None
    _refuse(text, found)
    return list(_strings(text, found))


def _refuse(text: str, found: list[Any]) -> None:
    depth = 0
    for token in found:
        kind = token.token_type.name
        if token.comments or kind == "HINT":
            hint, place = "Put the comment into the Python file.", excerpt(text, *_comment(text, token))
            message = "An expression has no comments."
            raise ExpressionError("unsupported-expression", message, got=shown(text), hint=hint, excerpt=place)
        if kind == "SEMICOLON":
            hint = "One expression, no semicolon."
            raise unreadable(text, token.start, "The expression ends", hint)
        depth += kind in ("L_PAREN", "L_BRACKET", "CASE")
        depth -= kind in ("R_PAREN", "R_BRACKET", "END")
        if depth > MAX_DEPTH:
            raise too_deep(show_count(depth, "level"), excerpt(text, token.start, token.end + 1))


def _comment(text: str, token: Any) -> tuple[int, int]:
    """Where a comment before or after a token stands."""
    if token.comments:
        start = text.find(token.comments[0])
        return max(0, start - 2), start + len(token.comments[0])
    return token.start, token.end + 1


def _strings(text: str, found: list[Any]) -> Iterator[Any]:
    """Join the halves of 'it''s', which come as two tokens, and decode every string."""
    waiting: Any = None
    for token in found:
        if token.token_type.name != "STRING":
            if waiting is not None:
                yield _decoded(text, waiting)
            waiting = None
            yield token
        elif waiting is None:
            waiting = token
        elif token.start == waiting.end + 1 and text[token.start] == text[waiting.end]:
            waiting = _stretched(waiting, token)
        else:
            hint = "Join strings with ||, and write a quote inside one as ''."
            raise unreadable(text, token.start, "Two strings stand side by side", hint)
    if waiting is not None:
        yield _decoded(text, waiting)


def _stretched(first: Any, last: Any) -> Any:
    return type(first)(first.token_type, "", first.line, first.col, first.start, last.end, [])


def _decoded(text: str, token: Any) -> Any:
    written = text[token.start + 1 : token.end]

    def replaced(match: re.Match[str]) -> str:
        escape, doubled = match.groups()
        if doubled:
            return str(doubled[0]) if doubled[0] == text[token.start] else str(doubled)
        if len(escape) == 5 and not 0xD800 <= int(escape[1:], 16) <= 0xDFFF:
            return chr(int(escape[1:], 16))
        known = _ESCAPES.get(escape) or _KEPT.get(escape)
        if known is None:
            hint = r"Known escapes: \\ \' \" \n \t \r \b \0 \uXXXX, and \% \_ for LIKE."
            raise unreadable(text, token.start + 1 + match.start(), "A string has an unknown escape", hint)
        return known

    value = _ESCAPE.sub(replaced, written)
    return type(token)(token.token_type, value, token.line, token.col, token.start, token.end, [])
