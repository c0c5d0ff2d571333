"""Names and constants as text, in Spark SQL and in the canonical form.

Spark SQL text is rewritten before it is parsed (`${...}` is replaced by settings) and its escapes depend on a setting,
so text that is not plain goes through its bytes. Canonical text is what `read` reads back to the same constant.
"""

from __future__ import annotations

import re
from typing import Any

from headrace.clock import show_time
from headrace.types.field_types import NAME, Boolean, Decimal, Float, Integer, String, Type

# Names that sqlglot's Spark grammar does not always read as a column.
_KEYWORDS = """
all alter and any array as between call case cast connect_by_root create cross date describe distinct div drop else end
escape except execute explain false fetch for from glob grant having if ilike in inner insert intersect interval into is
join lateral like list minus not notnull null on optimize or outer partitioned_by prepare qualify regexp rename
returning revoke rlike rollback select serdeproperties show tablesample then timestamp true try_cast uncache union using
vacuum values when where with xor
"""
RESERVED = frozenset(_KEYWORDS.split())
_SPECIAL = re.compile(r"['\\$\x00-\x1f\x7f]")
_ESCAPES = {"'": "''", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile(r"['\\\x00-\x1f\x7f]")


def quoted(name: str) -> str:
    """A name in back-quotes.

    >>> quoted("card")
    '`card`'
    """
    return "`" + name.replace("`", "``") + "`"


def identifier(name: str) -> str:
    """A name as the canonical form writes it: in back-quotes only where it needs them.

    >>> identifier("card"), identifier("case")
    ('card', '`case`')
    """
    return name if NAME.fullmatch(name) and name.lower() not in RESERVED else quoted(name)


def spark(value: Any, kind: Type) -> str:
    """A constant in Spark SQL.

    >>> spark(-5, Integer()), spark("it's", String())
    ('(-5L)', "CAST(X'69742773' AS STRING)")
    """
    if value is None:
        return f"CAST(NULL AS {kind.ddl})"
    match kind:
        case String():
            return spark_string(value)
        case Boolean():
            return "TRUE" if value else "FALSE"
        case Integer():
            return f"{value}L" if value >= 0 else f"({value}L)"
        case Float():
            return f"{value!r}D" if value >= 0 else f"({value!r}D)"
        case Decimal():
            return f"CAST('{value:f}' AS {kind.ddl})"
    return f"timestamp_micros({value}L)" if value >= 0 else f"timestamp_micros((-{-value}L))"


def spark_string(value: str) -> str:
    """A string in Spark SQL, safe from substitution and from every escaping setting."""
    return f"CAST(X'{value.encode().hex()}' AS STRING)" if _SPECIAL.search(value) else f"'{value}'"


def text(value: Any, kind: Type) -> str:
    """A constant in the canonical form.

    >>> text("it's", String()), text(1.0, Float())
    ("'it''s'", '1.0')
    """
    if value is None:
        return "NULL" if not _typed(kind) else f"CAST(NULL AS {kind.ddl})"
    match kind:
        case String():
            return f"'{_ESCAPED.sub(_escape, value)}'"
        case Boolean():
            return "TRUE" if value else "FALSE"
        case Integer() | Float():
            return repr(value)
        case Decimal():
            return f"CAST({value:f} AS {kind.ddl})"
    return f"TIMESTAMP '{show_time(value)}'"


def _typed(kind: Type) -> bool:
    return kind.name in ("string", "boolean", "integer", "float", "decimal", "timestamp")


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return _ESCAPES.get(char) or f"\\u{ord(char):04x}"
