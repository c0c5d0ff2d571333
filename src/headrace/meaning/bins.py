"""Bins that are the same everywhere, so that histograms of any two windows can be added: of scores, errors and times.

Scores have bins of one width on the scale of log odds, 64 to a unit: fine near 0 and 1, where the scores of rare things
are, and at most 0.004 wide in the middle. Sizes have 64 bins to each doubling, so that a quantile is within 1.1 % of
the exact one. Each is said in Python and in Spark's SQL; both round alike but for values on an edge.
"""

from __future__ import annotations

import math

PER_UNIT = 64
MOST_ODDS = 24 * PER_UNIT
"""Beyond odds of about 26 billion to one, scores share the first and the last bin."""
LEAST_SIZE = 2.0**-40
OFFSET = 40 * PER_UNIT


def score_bin(score: float) -> int:
    """The bin of a score between 0 and 1.

    >>> score_bin(0.0), score_bin(0.5), score_bin(0.501), score_bin(0.6), score_bin(1.0)
    (-1536, 0, 0, 25, 1536)
    """
    if score <= 0.0:
        return -MOST_ODDS
    if score >= 1.0:
        return MOST_ODDS
    return max(-MOST_ODDS, min(MOST_ODDS, math.floor(math.log(score / (1.0 - score)) * PER_UNIT)))


def score_bin_sql(score: str) -> str:
    """The same in SQL, of a score that is between 0 and 1."""
    odds = f"CAST(floor(ln(try_divide({score}, 1 - {score})) * {PER_UNIT}) AS INT)"
    within = f"greatest(-{MOST_ODDS}, least({MOST_ODDS}, {odds}))"
    return f"CASE WHEN {score} <= 0 THEN -{MOST_ODDS} WHEN {score} >= 1 THEN {MOST_ODDS} ELSE {within} END"


def size_bin(value: float) -> int:
    """The bin of a number by its size and sign; those next to zero share bin 0.

    >>> size_bin(0.0), size_bin(1.0), size_bin(2.0), size_bin(-2.0)
    (0, 2560, 2624, -2624)
    """
    size = abs(value)
    if size <= LEAST_SIZE:
        return 0
    return (1 if value > 0 else -1) * max(1, math.floor(math.log2(size) * PER_UNIT) + OFFSET)


def size_bin_sql(value: str) -> str:
    """The same in SQL."""
    found = f"greatest(1, CAST(floor(log2(abs({value})) * {PER_UNIT}) AS INT) + {OFFSET})"
    return f"CASE WHEN abs({value}) <= {LEAST_SIZE!r}D THEN 0 ELSE CAST(sign({value}) AS INT) * {found} END"


def size_of(number: int) -> float:
    """The middle of a bin of sizes.

    >>> round(size_of(2560), 3), size_of(0)
    (1.005, 0.0)
    """
    if number == 0:
        return 0.0
    return float(math.copysign(2.0 ** ((abs(number) - OFFSET + 0.5) / PER_UNIT), number))


def quantile(counts: dict[int, int], share: float) -> float | None:
    """The value below which a share of the counted ones lies; None when there are none.

    >>> quantile({size_bin(1.0): 9, size_bin(100.0): 1}, 0.5) < 1.02
    True
    """
    whole, passed = sum(counts.values()), 0
    for number in sorted(counts):
        passed += counts[number]
        if passed >= share * whole:
            return size_of(number)
    return None
