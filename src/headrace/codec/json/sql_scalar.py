"""One scalar inside a Spark variant as a typed SQL expression, null when it is of another type.

Spark's own casts are kind: '1' becomes 1 and 1.5 becomes 1. Here a string is told from everything else by a cast to
BINARY, which only strings survive; other scalars by `schema_of_variant`, which is asked only after a cast has shown
that the value is no container, since its cost on containers can be quadratic. `codec.json.sql` puts scalars into
structs and lists.
"""

from __future__ import annotations

from headrace.codec.json import rules
from headrace.types.field_types import Boolean, Decimal, Float, Integer, String, Timestamp, Type

_LARGEST_FLOAT = "1.7976931348623157E308D"


def scalar(kind: Type, source: str) -> str:
    """The typed value of the variant `source`, or null.

    >>> scalar(String(), "v")
    "CAST(try_variant_get(v, '$', 'binary') AS STRING)"
    """
    text = f"CAST({get(source, 'binary')} AS STRING)"
    match kind:
        case String():
            return text
        case Timestamp("rfc3339"):
            return in_range(moment(text))
        case Timestamp(unit):
            first, last = rules.bounds(unit)
            whole = scalar(Integer(), source)
            micros = f"timestamp_micros({get(source, 'bigint')} * {Timestamp.units[unit]}L)"
            return _between(whole, f"{first}L", f"{last}L", micros)
        case Integer():
            return _when(get(source, "bigint"), f"schema_of_variant({source}) = 'BIGINT'")
        case Boolean():
            return _when(get(source, "boolean"), f"schema_of_variant({source}) = 'BOOLEAN'")
        case Float():
            double = get(source, "double")
            number = f"schema_of_variant({source}) NOT IN ('STRING', 'BOOLEAN')"
            return _when(double, f"abs({double}) <= {_LARGEST_FLOAT} AND {number}", f"{double} + 0.0D")
        case Decimal():
            plain, pattern = get(source, "string"), _whole_match(rules.decimal_pattern(kind))
            fits = f"CASE WHEN {plain} RLIKE {pattern} THEN {plain} END"
            exact = f"schema_of_variant({source}) NOT IN ('DOUBLE', 'BOOLEAN')"
            return _when(fits, exact, f"CAST({plain} AS {kind.ddl})")
    raise TypeError(kind)


def moment(text: str) -> str:
    """The moment that a text says, or null."""
    return f"CASE WHEN {text} RLIKE {_whole_match(rules.RFC3339)} THEN try_cast({text} AS TIMESTAMP) END"


def in_range(moment: str) -> str:
    """A moment of the years 1 to 9999, or null: near their ends an offset leads out of them."""
    least, greatest = (f"timestamp_micros({bound}L)" for bound in (rules.EARLIEST, rules.LATEST))
    return _between(moment, least, greatest, moment)


def _when(cast: str, condition: str, then: str | None = None) -> str:
    """The value if a cast of it succeeds, which no container's does, and the condition on its type holds.

    CASE keeps containers from the condition; AND would not promise it, as Spark may hoist what stands in it.
    """
    return f"CASE WHEN {cast} IS NULL THEN NULL WHEN {condition} THEN {then or cast} END"


def _between(value: str, least: str, greatest: str, then: str) -> str:
    """Not BETWEEN: Spark would compute the value in a projection of its own, and once more."""
    return f"CASE WHEN {value} >= {least} AND {value} <= {greatest} THEN {then} END"


def get(source: str, kind: str, path: str = "$") -> str:
    """A cast of the variant `source`, or of what lies at `path` in it; null where the cast cannot be.

    >>> get("v", "bigint")
    "try_variant_get(v, '$', 'bigint')"
    """
    return f"try_variant_get({source}, '{path}', '{kind}')"


def _whole_match(pattern: str) -> str:
    return rf"r'\A(?:{pattern})\z'"
