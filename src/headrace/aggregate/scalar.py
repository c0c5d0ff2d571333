"""How one value of each type is carried in a state: as a Spark column, as packed data, as text, as something to hash.

Each conversion stands here once, for Spark and for Python side by side, so that a state made by either means the same.
Timestamps are carried as microseconds, because a collected Spark timestamp depends on the machine's time zone.
"""

from __future__ import annotations

import decimal
import struct
from typing import Any

from headrace.types.field_types import Boolean, Decimal, Float, Integer, String, Timestamp, Type

SCALARS: tuple[type[Type], ...] = (String, Boolean, Integer, Float, Decimal, Timestamp)
NUMBERS: tuple[type[Type], ...] = (Integer, Float, Decimal)

# Python's default context would round to 28 digits; sums of 38-digit numbers need more.
WIDE = decimal.Context(prec=120)
_MASK = 2**64 - 1


def ddl(kind: Type) -> str:
    """The Spark type that carries a value.

    >>> ddl(Timestamp("ms"))
    'BIGINT'
    """
    return "BIGINT" if isinstance(kind, Timestamp) else kind.ddl


def sql(kind: Type, value_sql: str) -> str:
    """A value's column as it is carried.

    The cast changes nothing when the column already has its type (Spark then drops it). It is there because a narrower
    one, as the literal 1, would change the state's type, and a 32-bit integer cannot be shifted by 32.
    """
    match kind:
        case Timestamp():
            return f"unix_micros({value_sql})"
        case Integer() | Float() | Decimal():
            return f"TRY_CAST({value_sql} AS {kind.ddl})"
    return value_sql


def pack(kind: Type, value: Any) -> Any:
    """A value as JSON and msgpack can carry it.

    >>> pack(Decimal(4, 2), decimal.Decimal("1.50"))
    '1.50'
    """
    return str(value) if isinstance(kind, Decimal) and value is not None else value


def unpack(kind: Type, packed: Any) -> Any:
    """The inverse of `pack`."""
    if packed is None:
        return None
    match kind:
        case Decimal():
            return decimal.Decimal(packed)
        case Float():
            return float(packed)
    return packed


def text_sql(kind: Type, value_sql: str) -> str:
    """A value as text, in Spark; every type but float, whose text differs between the two sides."""
    return value_sql if isinstance(kind, String) else f"CAST({sql(kind, value_sql)} AS STRING)"


def text(kind: Type, value: Any) -> str:
    """A value as text, the same as `text_sql` in ANSI mode.

    >>> text(Decimal(10, 2), decimal.Decimal("1.5")), text(Boolean(), True)
    ('1.50', 'true')
    """
    match kind:
        case Boolean():
            return "true" if value else "false"
        case Decimal():
            fixed = WIDE.quantize(value, scaled(1, kind.scale))
            return format(fixed if fixed else abs(fixed), "f")
    return str(value)


def from_text(kind: Type, written: str) -> Any:
    """The inverse of `text`."""
    match kind:
        case Boolean():
            return written == "true"
        case Decimal():
            return decimal.Decimal(written)
        case Integer() | Timestamp():
            return int(written)
    return written


def hashed_sql(kind: Type, value_sql: str) -> str:
    """A value as Spark's sketches take it: a BIGINT or a STRING.

    Text gets a prefix because sketches ignore the empty string. A double becomes Spark's own 64-bit hash of it, which
    for eight bytes is one to one and holds 0.0 and -0.0 for the same.
    """
    match kind:
        case String() | Decimal():
            return f"CONCAT('=', {text_sql(kind, value_sql)})"
        case Boolean():
            return f"CAST({value_sql} AS BIGINT)"
        case Float():
            # xxhash64 of null is a number: the null must stay one.
            return f"CASE WHEN {value_sql} IS NOT NULL THEN xxhash64({sql(kind, value_sql)}) END"
    return sql(kind, value_sql)


def hashed(kind: Type, value: Any) -> int | str:
    """A value as Python's sketches take it, the same as `hashed_sql`.

    >>> hashed(String(), ""), hashed(Float(), 1.5)
    ('=', 7738255526519901366)
    """
    match kind:
        case String() | Decimal():
            return "=" + text(kind, value)
        case Float():
            return _xxhash64(struct.unpack("<Q", struct.pack("<d", value + 0.0))[0])
    return int(value)


def _xxhash64(bits: int) -> int:
    """XXH64 of eight bytes with Spark's seed of 42, as a signed integer."""
    first, second, third, fourth, fifth = (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
    mixed = _rotated(bits * second & _MASK, 31) * first & _MASK
    code = (_rotated((42 + fifth + 8) ^ mixed, 27) * first + fourth) & _MASK
    code = (code ^ code >> 33) * second & _MASK
    code = (code ^ code >> 29) * third & _MASK
    code ^= code >> 32
    return code - 2**64 if code >= 2**63 else code


def _rotated(bits: int, by: int) -> int:
    return (bits << by | bits >> 64 - by) & _MASK


def unscaled(value: decimal.Decimal, scale: int) -> int:
    """A decimal as a whole number of its last digit.

    >>> unscaled(decimal.Decimal("1.5"), 2)
    150
    """
    return int(WIDE.scaleb(value, scale))


def scaled(whole: int, scale: int) -> decimal.Decimal:
    """The inverse of `unscaled`.

    >>> scaled(150, 2)
    Decimal('1.50')
    """
    return WIDE.scaleb(WIDE.create_decimal(whole), -scale)
