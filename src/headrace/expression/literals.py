"""Constants and type names as users write them: 1, 1.5, 1e9, TIMESTAMP '...', BIGINT, DECIMAL(10,2).

There is one whole-number type and one float, both 64 bits wide, so INT means BIGINT and FLOAT means DOUBLE here.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal as Exact
from typing import Any

from headrace.clock import parse_timestamp
from headrace.errors import ExpressionError, shown
from headrace.expression.cast import EARLIEST, LATEST, converter
from headrace.expression.coerce import digits_of
from headrace.expression.node import Literal, mistyped
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

_WHOLE = re.compile(r"[0-9]+")
_FRACTION = re.compile(r"[0-9]+[.][0-9]*|[.][0-9]+")
_FLOAT = re.compile(r"(?:[0-9]+[.]?[0-9]*|[.][0-9]+)[eE][+-]?[0-9]+")
_TYPES: dict[str, Type] = {
    "TEXT": String(),
    "BOOLEAN": Boolean(),
    "BIGINT": Integer(),
    "INT": Integer(),
    "DOUBLE": Float(),
    "FLOAT": Float(),
    "TIMESTAMP": Timestamp(),
    "TIMESTAMPTZ": Timestamp(),
    "TIMESTAMPLTZ": Timestamp(),
}


def number(written: str, *, negative: bool = False) -> Literal:
    """A number as written: 1 an integer (a decimal past 64 bits), 1.5 and 1e9 floats, 1.5 ready to be a decimal.

    >>> number("9223372036854775808", negative=True)
    Literal(value=-9223372036854775808, type=Integer())
    """
    text = f"-{written}" if negative else written
    if _WHOLE.fullmatch(written):
        kind = digits_of(Exact(text))
        if SMALLEST_INTEGER <= (whole := int(text)) <= LARGEST_INTEGER:
            return Literal(whole, Integer())
        return Literal(Exact(whole), kind)
    if not _FRACTION.fullmatch(written) and not _FLOAT.fullmatch(written):
        raise ExpressionError("bad-expression", "A number cannot be read.", got=shown(written))
    value = float(text)
    if math.isinf(value):
        raise ExpressionError("bad-expression", "A number is too large for a float.", got=shown(written))
    return Literal(value, Float(), Exact(text) if _FRACTION.fullmatch(written) else None)


def moment(written: str) -> Literal:
    """A timestamp as written, refused without an offset.

    >>> moment("1970-01-01T00:00:01Z").value
    1000000
    """
    convert = converter(String(), Timestamp())
    value = None if convert is None else convert(written)
    if value is None:
        naive = any(parse_timestamp(written + rest) is not None for rest in ("Z", "T00:00:00Z", ":00Z"))
        code = "naive-timestamp" if naive else "bad-expression"
        message = "A timestamp needs a UTC offset." if naive else "A timestamp cannot be read."
        raise ExpressionError(code, message, got=shown(written), hint="Write it as TIMESTAMP '2026-01-31T12:00:00Z'.")
    if not EARLIEST <= value <= LATEST:
        raise ExpressionError("bad-expression", "A timestamp is outside the years 1 to 9999.", got=shown(written))
    return Literal(value, Timestamp())


def target(tree: Any) -> Type:
    """The type a cast names."""
    name = getattr(tree.this, "name", str(tree.this))
    if name == "DECIMAL" and tree.expressions:
        return _decimal([param.name for param in tree.expressions])
    if name in _TYPES and not tree.expressions:
        return _TYPES[name]
    hint = "Cast to STRING, BOOLEAN, BIGINT, DOUBLE, DECIMAL(p,s) or TIMESTAMP."
    if name == "DECIMAL":
        hint = "Say how many digits: DECIMAL(10,2)."
    raise ExpressionError("unsupported-expression", f"There is no cast to {name}.", got=shown(name), hint=hint)


def _decimal(params: list[str]) -> Decimal:
    digits = [int(param) if _WHOLE.fullmatch(param) and len(param) < 3 else -1 for param in params]
    precision, scale = (digits[0], digits[1] if len(digits) > 1 else 0) if len(digits) < 3 else (-1, -1)
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        hint = "A precision of 1 to 38 and a scale of 0 to that precision, as in DECIMAL(10,2)."
        raise mistyped("A decimal's digits do not fit.", f"DECIMAL({', '.join(params)})", hint)
    return Decimal(precision, scale)
