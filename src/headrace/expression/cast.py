"""Conversions between types: CAST and TRY_CAST, which mean the same. What cannot be converted is null.

Spark reads more texts as numbers than it writes (blanks around them, `1.5` as a whole number, `y` as true), so the
text goes through a pattern first and both sides read only what passes it. Refused, because the digits would depend on
the Java version or the session: float to string, float to decimal, timestamp to string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context
from decimal import Decimal as Exact
from typing import Any

from headrace.clock import parse_timestamp
from headrace.expression.constant import spark_string
from headrace.expression.node import Literal, Node, Void, article, mistyped
from headrace.expression.operation import OPERATIONS, Args, Operation, Run, Texts, make, strict, text
from headrace.types.field_types import (
    LARGEST_INTEGER,
    SMALLEST_INTEGER,
    Boolean,
    Decimal,
    Float,
    Integer,
    String,
    Timestamp,
    Type,
)

DIGITS = Context(prec=300, traps=[], rounding=ROUND_HALF_UP)
NOT_FINITE = "nanvl(try_mod({}, CAST('Infinity' AS DOUBLE)), CAST(NULL AS DOUBLE))"
"""A double, or NULL when it is NaN or infinite, with the argument written once: a finite x % infinity is x."""

# No backslashes (Spark's string escapes depend on a setting), and no `$` (it allows a line break after the end).
PATTERNS = {
    "integer": "[+-]?[0-9]{1,100}",
    "float": "[+-]?(?:[0-9]{1,400}(?:[.][0-9]{0,400})?|[.][0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?",
    "decimal": "[+-]?(?:[0-9]{1,100}(?:[.][0-9]{0,100})?|[.][0-9]{1,100})",
    "boolean": "true|false",
    "timestamp": (
        "(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]{1,9})?"
        "(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9]|[+-]18:00)"
    ),
}
# Of the years 1 to 9999, which have a text; casts reach a little further because of offsets.
EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999


def whole_part(value: Any) -> int | None:
    """The whole part of a number, null outside 64 bits."""
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if SMALLEST_INTEGER <= number <= LARGEST_INTEGER else None


def rescale(value: Exact, precision: int, scale: int) -> Exact | None:
    """A decimal rounded half up to `scale`, null when it needs more than `precision` digits.

    >>> rescale(Exact("2.345"), 3, 2), rescale(Exact("99.995"), 4, 2)
    (Decimal('2.35'), None)
    """
    # Nothing here may go through the thread's own context: abs() and ** would round to its 28 digits.
    rounded = DIGITS.quantize(value, Exact((0, (1,), -scale)))
    if not rounded.is_finite() or rounded.copy_abs() >= Exact((0, (1,), precision - scale)):
        return None
    return positive_zero(rounded)


def positive_zero(value: Exact) -> Exact:
    """A decimal without the sign that Python gives to some zeros and Java to none."""
    return value if value else value.copy_abs()


def number(value: str) -> float | None:
    """The finite float a text says."""
    parsed = float(value)
    return parsed if abs(parsed) != float("inf") else None


def _reader(kind: Type) -> Callable[[str], Any]:
    readers: dict[str, Callable[[str], Any]] = {
        "integer": whole_part,
        "float": number,
        "boolean": lambda value: value == "true",
        "timestamp": parse_timestamp,
    }
    if isinstance(kind, Decimal):
        read: Callable[[str], Any] = lambda value: rescale(Exact(value), kind.precision, kind.scale)  # noqa: E731
    else:
        read = readers[kind.name]
    matches = re.compile(PATTERNS[kind.name]).fullmatch
    return lambda value: read(value) if matches(value) else None


def converter(source: Type, target: Type) -> Callable[[Any], Any] | None:
    """The Python function of one conversion, or None where there is no such conversion."""
    match source, target:
        case String(), _ if target.name in PATTERNS:
            return _reader(target)
        case ((Integer() | Decimal()), Decimal(precision, scale)):
            return lambda value: rescale(Exact(value), precision, scale)
        case ((Float() | Decimal()), Integer()):
            return whole_part
        case ((Integer() | Decimal()), Float()):
            return float
        case Integer(), String():
            return str
        case Boolean(), String():
            return lambda value: "true" if value else "false"
        case Boolean(), Integer():
            return int
        case Integer(), Boolean():
            return bool
    return None


def _spark(source: Type, target: Type, value: str) -> str:
    if isinstance(source, String):
        only = f"regexp_extract({value}, {spark_string(f'(?s)^(?:{PATTERNS[target.name]})(?!.)')}, 0)"
        read = f"TRY_CAST({only} AS {target.ddl})"
        return NOT_FINITE.format(read) if isinstance(target, Float) else read
    if isinstance(source, Float):
        # Spark takes 2^63 for the largest integer, which no double is: adding one turns exactly that case to NULL.
        return f"try_subtract(try_add(TRY_CAST({value} AS BIGINT), 1L), 1L)"
    return f"TRY_CAST({value} AS {target.ddl})"


def _can_fail(source: Type, target: Type) -> bool:
    match source, target:
        case ((String() | Float()), _):
            return True
        case Integer(), Decimal(precision, scale):
            return precision - scale < 19
        case Decimal(precision, scale), Integer():
            return precision - scale > 18
        case Decimal(p, s), Decimal(precision, scale):
            return precision - scale < p - s + (1 if scale < s else 0)
    return False


def _simpler(args: Args, target: Type) -> Node | None:
    (only,) = args
    if not isinstance(only, Literal) or not (convert := converter(only.type, target)):
        return None
    value = None if only.value is None else convert(only.value)
    if isinstance(target, Timestamp) and value is not None and not EARLIEST <= value <= LATEST:
        return None
    return Literal(value, target)


def _python(call: Any, args: tuple[Run, ...]) -> Run:
    convert = converter(call.args[0].type, call.type)
    if convert is None:
        raise TypeError(f"no conversion from {call.args[0].type} to {call.type}")
    return strict(convert)(call, args)


def _text(call: Any, args: Texts) -> str:
    return f"CAST({args[0]} AS {call.type.ddl})"


OPERATIONS["cast"] = Operation(
    python=_python,
    spark=lambda call, args: _spark(call.args[0].type, call.type, args[0]),
    text=_text,
    nullable=lambda args, kind: args[0].nullable or _can_fail(args[0].type, kind),
    simpler=_simpler,
)


def cast(node: Node, kind: Type) -> Node:
    """A node converted to a type, or a refusal.

    >>> cast(Literal("12", String()), Integer())
    Literal(value=12, type=Integer())
    """
    if isinstance(node.type, Void):
        return Literal(None, kind)
    if isinstance(node, Literal) and node.exact is not None and isinstance(kind, Decimal):
        return Literal(rescale(node.exact, kind.precision, kind.scale), kind)
    if node.type == kind:
        return Literal(node.value, kind) if isinstance(node, Literal) else node
    if converter(node.type, kind) is None:
        what = f"There is no cast from {article(node.type)} to {article(kind)}."
        raise mistyped(what, f"CAST({text(node)} AS {kind.ddl})", _instead(node.type, kind))
    return make("cast", (node,), kind)


def _instead(source: Type, target: Type) -> str:
    match source.name, target.name:
        case "float", ("string" | "decimal"):
            return "Its digits would depend on the Java version; declare the field as hr.Decimal, or cast to BIGINT."
        case "timestamp", "integer":
            return "Say which unit: unix_seconds(...) or unix_micros(...)."
        case "timestamp", "string":
            return "Build the text from year(...), month(...), day(...) and the like."
    return "Casts are between strings and the other plain types, and among numbers; booleans from and to integers."
