"""Floating-point sums and the rule by which two of them are equal: within 1e-9 of the sum of the sizes added up.

A result that does not fit a double is null. Whether a sum runs out of range on the way depends on the order of the
events, so where the sum of the sizes itself does not fit, null and any number count as equal.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from fractions import Fraction

TOLERANCE = 1e-9


def finite(value: float) -> float | None:
    """The value, or None when it ran out of a double's range.

    >>> finite(1.5), finite(float("inf"))
    (1.5, None)
    """
    return value if math.isfinite(value) else None


def total(values: Iterable[float]) -> float | None:
    """The correctly rounded sum; None when it does not fit a double.

    >>> total([1e300, 1.0, -1e300])
    1.0
    """
    numbers = list(values)
    if not all(map(math.isfinite, numbers)):
        return None
    try:
        return math.fsum(numbers)
    except OverflowError:
        return rounded(sum(map(Fraction, numbers), Fraction(0)))


def rounded(value: Fraction) -> float | None:
    """The nearest double; None when it does not fit one."""
    try:
        return float(value)
    except OverflowError:
        return None


def size(values: Iterable[float]) -> float:
    """The sum of the absolute values, infinite when it does not fit a double.

    >>> size([3.0, -4.0])
    7.0
    """
    summed = total(map(abs, values))
    return math.inf if summed is None else summed


def near(a: float | None, b: float | None, scale: float) -> bool:
    """Whether two results are equal, `scale` being the size of what was added up.

    >>> near(1.0, 1.0 + 1e-12, 1.0), near(1.0, None, 1.0)
    (True, False)
    """
    if math.isinf(scale):
        return True
    if a is None or b is None:
        return a is b
    # Below the smallest normal double there are no digits to compare.
    return abs(a - b) <= TOLERANCE * scale + sys.float_info.min


def pack(value: float) -> float | str:
    """A float as JSON can carry it: one out of range as text."""
    return value if math.isfinite(value) else str(value)
