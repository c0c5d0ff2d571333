"""The confidence interval of a share, by Wilson's formula."""

from __future__ import annotations

import math

NORMAL_95 = 1.959963984540054


def wilson(hits: int, tries: int) -> tuple[float, float]:
    """The bounds of a share with a confidence of 95 %.

    >>> tuple(round(bound, 3) for bound in wilson(8, 10))
    (0.49, 0.943)
    """
    share, square = hits / tries, NORMAL_95**2 / tries
    middle = share + square / 2
    width = NORMAL_95 * math.sqrt((share * (1 - share) + square / 4) / tries)
    return max((middle - width) / (1 + square), 0.0), min((middle + width) / (1 + square), 1.0)
