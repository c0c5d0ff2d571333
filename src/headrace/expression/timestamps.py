"""Functions of timestamps: parts of the date and the time of day, always in UTC, and Unix times.

Spark's own `hour` and `year` use the session's time zone; the text here starts from the Unix time and does not.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.clock import DAY, HOUR, MINUTE, SECOND
from headrace.expression.coerce import written
from headrace.expression.node import Node, Void, article, mistyped
from headrace.expression.operation import OPERATIONS, Operation, as_function, make, strict
from headrace.types.field_types import Integer, Timestamp


def civil(micros: int) -> tuple[int, int, int]:
    """Year, month and day of a moment in UTC, in the proleptic Gregorian calendar, for any 64-bit moment.

    >>> civil(0)
    (1970, 1, 1)
    """
    # Days since 0000-03-01, cut into eras of 400 years: Howard Hinnant's `civil_from_days`.
    era, day = divmod(micros // DAY + 719_468, 146_097)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    first = (153 * month + 2) // 5
    return era * 400 + year + (1 if month >= 10 else 0), month + 3 if month < 10 else month - 9, day - first + 1


def _date(name: str) -> Callable[..., str]:
    def spark(_: object, args: tuple[str, ...]) -> str:
        days = f"floor(try_divide(CAST(unix_seconds({args[0]}) AS DOUBLE), 86400.0D))"
        return f"CAST({name}(date_from_unix_date(CAST({days} AS INT))) AS BIGINT)"

    return spark


def _time(within: int, unit: int) -> Callable[..., str]:
    seconds, step = within // SECOND, unit // SECOND
    return lambda _, args: f"(pmod(unix_seconds({args[0]}), {seconds}L) DIV {step}L)"


OPERATIONS["year"] = Operation(strict(lambda micros: civil(micros)[0]), _date("year"))
OPERATIONS["month"] = Operation(strict(lambda micros: civil(micros)[1]), _date("month"))
OPERATIONS["day"] = Operation(strict(lambda micros: civil(micros)[2]), _date("day"))
OPERATIONS["dayofweek"] = Operation(strict(lambda micros: (micros // DAY + 4) % 7 + 1), _date("dayofweek"))
OPERATIONS["hour"] = Operation(strict(lambda micros: micros % DAY // HOUR), _time(DAY, HOUR))
OPERATIONS["minute"] = Operation(strict(lambda micros: micros % HOUR // MINUTE), _time(HOUR, MINUTE))
OPERATIONS["second"] = Operation(strict(lambda micros: micros % MINUTE // SECOND), _time(MINUTE, SECOND))
OPERATIONS["unix_seconds"] = Operation(strict(lambda micros: micros // SECOND), as_function)
OPERATIONS["unix_micros"] = Operation(strict(int), as_function)


def of_moment(name: str, node: Node) -> Node:
    """A call of a function that takes a timestamp and gives a whole number."""
    if not isinstance(node.type, Timestamp):
        hint = "Cast the text: CAST(x AS TIMESTAMP)." if node.type.name == "string" else None
        if isinstance(node.type, Void):
            hint = "Give it a type: CAST(NULL AS TIMESTAMP)."
        raise mistyped(f"`{name}` takes a timestamp, not {article(node.type)}.", written((node,)), hint)
    return make(name, (node,), Integer())
