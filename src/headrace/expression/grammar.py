"""From expression text to sqlglot's tree, by its Spark grammar.

The grammar only: sqlglot's table of functions is switched off, because it rewrites what it knows, so every function
arrives under the name that was written and `functions` decides. sqlglot is imported when first asked, and none of its
exceptions or log lines get out. The tree goes on to `read`.
"""

from __future__ import annotations

import logging
import sys
import threading
from functools import cache
from typing import Any

from headrace.errors import ExpressionError
from headrace.expression import source
from headrace.expression.constant import RESERVED
from headrace.expression.excerpt import underlined
from headrace.expression.node import MAX_DEPTH
from headrace.expression.operation import too_deep

_ALONE = threading.Lock()
_FRAMES = 5_000


@cache
def _grammar() -> tuple[Any, Any]:
    from sqlglot.dialects.spark import Spark

    grammar = Spark.Parser
    casts = {name: grammar.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")}
    bare = {"FUNCTIONS": {}, "NO_PAREN_FUNCTIONS": {}, "FUNCTION_PARSERS": casts}
    return Spark(), type("Grammar", (grammar,), bare)


def parsed(text: str) -> Any:
    """sqlglot's tree of one expression, or a refusal that shows where it cannot be read."""
    from sqlglot import ErrorLevel, exp
    from sqlglot.errors import ParseError

    dialect, grammar = _grammar()
    tokens = source.tokens(text, dialect)
    # sqlglot needs about twenty frames per bracket, more than Python's limit allows for brackets that we do allow.
    with _ALONE:
        limit, log = sys.getrecursionlimit(), logging.getLogger("sqlglot")
        silent, log.disabled = log.disabled, True
        try:
            sys.setrecursionlimit(max(limit, _FRAMES))
            parser = grammar(error_level=ErrorLevel.IMMEDIATE, dialect=dialect)
            (tree,) = parser.parse_into(exp.Condition, tokens, text)
        except ParseError as error:
            raise _where(text, error.errors[0] if error.errors else {}) from None
        except RecursionError:
            raise too_deep(f"more than {MAX_DEPTH} levels", underlined(text)) from None
        except Exception:  # whatever a parser of forty dialects trips over, the text is what is wrong
            raise source.unreadable(text, 0, "The expression cannot be parsed") from None
        finally:
            sys.setrecursionlimit(limit)
            log.disabled = silent
    return tree


def _where(text: str, found: dict[str, Any]) -> ExpressionError:
    word, problem = str(found.get("highlight") or ""), str(found.get("description") or "")
    lines = text.splitlines(keepends=True)
    position = sum(map(len, lines[: int(found.get("line") or 1) - 1])) + int(found.get("col") or 1) - len(word)
    message, length = f"Unexpected `{word}`" if word else "The expression cannot be parsed", len(word)
    if problem.startswith("Required keyword"):
        message = f"Something is missing before `{word}`"
        if word not in (")", "]") and not text[position + len(word) :].strip():
            message, position, length = f"Something is missing after `{word}`", position + len(word), 1
    elif problem.startswith("Expecting"):
        message = f"`{problem.removeprefix('Expecting ')}` is expected near `{word}`"
    elif problem.startswith("Expected TYPE"):
        message = f"`{word}` is no type"
    hint = f"A column of that name needs back-quotes: `{word}`." if word.lower() in RESERVED else None
    if word.lower() in ("select", "with", "values", "from", "where", "as", "over"):
        hint = "Write one expression, without SELECT, FROM, WHERE or AS."
    return source.unreadable(text, max(0, position), message, hint, length=max(1, length))
