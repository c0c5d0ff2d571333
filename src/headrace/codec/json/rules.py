"""What Headrace's JSON allows: the numbers, patterns and sentences that the Python and the Spark reading share.

It reads nothing itself: `codec.json.read` applies these rules to bytes in Python, `codec.json.sql` writes them as Spark
SQL. The limits on depth, numbers and names come from the JSON parser inside Spark (jackson-core's
StreamReadConstraints), so a record that one side can read never breaks the other.
"""

from __future__ import annotations

from headrace.types.field_types import Boolean, Decimal, Float, Integer, List, String, Struct, Timestamp, Type

LARGEST_VALUE = 8 * 1024 * 1024
"""Bytes of one record; keeps every string under Jackson's 20 million characters and every variant under 128 MiB."""

DEEPEST = 999
"""Objects and arrays inside each other: Jackson's 1,000 less the array that the Spark side wraps around a record."""

LONGEST_NUMBER = 1_000
"""Characters of one number, its sign, point and exponent included. Jackson allows 1,000 digits, but of numbers with a
fraction at times 1,001, depending on where its buffer ends: this is the most that it always reads."""

LONGEST_NAME = 50_000
"""UTF-16 units of one object key, as Java counts them."""

EARLIEST = -62_135_596_800_000_000
"""0001-01-01T00:00:00Z in microseconds: the first moment that Python and Spark both hold."""

LATEST = 253_402_300_799_999_999
"""9999-12-31T23:59:59.999999Z in microseconds: the last such moment."""

RFC3339 = (
    "(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?"
    "(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9]|[+-]18:00)"
)
"""The shape of a timestamp's text; `clock.parse_timestamp` in Python and a cast in Spark then judge the calendar."""


def decimal_pattern(kind: Decimal) -> str:
    """The plain-notation texts that fit a decimal exactly; zeros may follow up to the 38th place.

    >>> decimal_pattern(Decimal(5, 2))
    '-?(0|[1-9][0-9]{0,2})([.][0-9]{1,2}0{0,36})?'
    """
    before = kind.precision - kind.scale
    whole = f"(0|[1-9][0-9]{{0,{before - 1}}})" if before else "0"
    fraction = f"[0-9]{{1,{kind.scale}}}0{{0,{38 - kind.scale}}}" if kind.scale else "0{1,38}"
    return f"-?{whole}([.]{fraction})?"


def bounds(unit: str) -> tuple[int, int]:
    """The least and greatest number since 1970 that a timestamp of this unit can hold.

    >>> bounds("s")
    (-62135596800, 253402300799)
    """
    factor = Timestamp.units[unit]
    return -(-EARLIEST // factor), LATEST // factor


def expectation(kind: Type) -> str:
    """What a value of this type must be, as a reason says it.

    >>> expectation(Timestamp("ms"))
    'whole milliseconds since 1970'
    """
    match kind:
        case Timestamp("rfc3339"):
            return "an RFC 3339 timestamp with an offset"
        case Timestamp(unit):
            long = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}[unit]
            return f"whole {long} since 1970"
        case Decimal():
            return f"a plain number that fits {kind}"
    plain: dict[type[Type], str] = {
        String: "a string",
        Boolean: "true or false",
        Integer: "a whole number of 64 bits",
        Float: "a finite number",
        List: "a list",
        Struct: "an object",
    }
    return plain[type(kind)]


def wrong(path: str, kind: Type) -> str:
    """The reason for a value of the wrong type.

    >>> wrong("items[].price", Float())
    'items[].price must be a finite number'
    """
    return f"{path} must be {expectation(kind)}"


def missing(path: str) -> str:
    """The reason for a required value that is absent or null.

    >>> missing("card")
    'card is required'
    """
    return f"{path} is required"


NOT_AN_OBJECT = "the record must be an object"
