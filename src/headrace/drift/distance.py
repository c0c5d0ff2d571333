"""How far a column in a window is from its reference, in seven ways.

Each function takes the reference and what the window held, and gives None where the window says nothing: it is empty,
all of it is null, or the measure has no meaning for the column. None is never a NaN. Everything is computed over
bins, so each says how far it may be from the same measure over the single values.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from headrace.drift.reference import Reference
from headrace.drift.statistics import Statistics

SMOOTHING = 0.5
"""Added to the count of every bin before `psi` takes logarithms: half a row."""

Floats = npt.NDArray[np.float64]


def psi(reference: Reference, window: Statistics) -> float | None:
    """The population stability index: the sum of `(p - q) * ln(p / q)` over bins or categories.

    Half a row is added to every bin on both sides, unless both are empty, so that an empty bin is not infinitely far.
    A share moves by less than `bins / (2 * rows + bins)`. Bins can only hide a difference: without the smoothing, it is
    at most that of the single values. Without any drift, a window of n rows has a PSI of about `(bins - 1) / n`, which
    is why it is judged against what is usual (`drift.season`) and not against zero.

    Examples
    --------
    >>> country = Reference(rows=100, null_rate=0.0, texts={"DE": 50, "FR": 50})
    >>> round(psi(country, Statistics(count=100, texts={"DE": 80, "FR": 20})), 3)
    0.406
    """
    cells = _cells(reference, window)
    if cells is None:
        return None
    filled = cells[0] + cells[1] > 0
    smooth = [each[filled] + SMOOTHING for each in cells]
    p, q = (each / each.sum() for each in smooth)
    return float(((q - p) * np.log(q / p)).sum())


def jensen_shannon(reference: Reference, window: Statistics) -> float | None:
    """The Jensen-Shannon divergence in bits, from 0 (the same) to 1 (nothing in common).

    Empty bins need no smoothing. It is at most that of the single values: bins can only hide a difference.

    Examples
    --------
    >>> country = Reference(rows=100, null_rate=0.0, texts={"DE": 100})
    >>> jensen_shannon(country, Statistics(count=7, texts={}, other=7))
    1.0
    """
    shares = _shares(reference, window)
    if shares is None:
        return None
    middle = (shares[0] + shares[1]) / 2
    return max(0.0, sum(_relative(each, middle) for each in shares) / 2)


def _relative(p: Floats, q: Floats) -> float:
    there = p > 0
    return float((p[there] * np.log2(p[there] / q[there])).sum())


def ks(reference: Reference, window: Statistics) -> float | None:
    """The Kolmogorov-Smirnov distance at the edges of the bins: the largest gap between the two shares below a value.

    It is at most that of the single values, and at least that minus `ks_error`. Of texts there is none.

    Examples
    --------
    >>> amount = Reference(rows=4, null_rate=0.0, mean=2.0, stddev=1.0, edges=(0.0, 2.0, 4.0), counts=(0, 2, 2, 0))
    >>> ks(amount, Statistics(count=4, mean=3.0, counts=(0, 1, 3, 0)))
    0.25
    """
    shares = None if reference.is_text else _shares(reference, window)
    return None if shares is None else float(np.abs(np.cumsum(shares[0] - shares[1])).max())


def ks_error(reference: Reference, window: Statistics) -> float | None:
    """By how much `ks` may be below the distance of the single values.

    Inside a bin the gap grows by no more than the bin's share on either side: so by no more than the smaller of the
    two, in the bin where that is largest.

    >>> amount = Reference(rows=4, null_rate=0.0, mean=2.0, stddev=1.0, edges=(0.0, 2.0, 4.0), counts=(0, 2, 2, 0))
    >>> ks_error(amount, Statistics(count=4, mean=3.0, counts=(0, 1, 3, 0)))
    0.5
    """
    shares = None if reference.is_text else _shares(reference, window)
    return None if shares is None else float(np.minimum(*shares).max())


def wasserstein(reference: Reference, window: Statistics) -> float | None:
    """How far mass has to be moved, in standard deviations of the reference.

    Within a bin, mass counts as evenly spread; what lies outside of the edges counts as lying on the nearest one. It is
    never below the shift of the mean, which is exact. It is off by no more than `wasserstein_error`.

    Examples
    --------
    >>> amount = Reference(rows=4, null_rate=0.0, mean=2.0, stddev=0.5, edges=(0.0, 2.0, 4.0), counts=(0, 2, 2, 0))
    >>> wasserstein(amount, Statistics(count=4, mean=2.5, counts=(0, 1, 3, 0)))
    1.0
    """
    moved, shares = mean_shift(reference, window), _shares(reference, window)
    if moved is None or shares is None:
        return None
    gaps = np.cumsum(shares[1] - shares[0])[:-1]
    left, right, wide = gaps[:-1], gaps[1:], np.diff(reference.edges)
    sizes = np.abs(left) + np.abs(right)
    # Where the gap changes its sign inside a bin, its two triangles count apart.
    crossing = np.divide(left**2 + right**2, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    apart = float((wide * np.where(left * right < 0, crossing, sizes)).sum() / 2)
    return _finite(max(apart / _stddev(reference), abs(moved)))


def wasserstein_error(reference: Reference, window: Statistics) -> float | None:
    """By how much `wasserstein` may be off; None where a value lies outside of the edges, as nobody knows how far.

    Mass in a bin is nowhere further than half the bin's width from where it counts as lying, on either side.

    >>> amount = Reference(rows=4, null_rate=0.0, mean=2.0, stddev=0.5, edges=(0.0, 2.0, 4.0), counts=(0, 2, 2, 0))
    >>> wasserstein_error(amount, Statistics(count=4, mean=2.5, counts=(0, 1, 3, 0)))
    4.0
    """
    shares = None if mean_shift(reference, window) is None else _shares(reference, window)
    if shares is None or any(each[0] + each[-1] > 0 for each in shares):
        return None
    return _finite(float(((shares[0] + shares[1])[1:-1] * np.diff(reference.edges)).sum() / 2) / _stddev(reference))


def mean_shift(reference: Reference, window: Statistics) -> float | None:
    """How far the mean has moved, in standard deviations of the reference. Exact.

    >>> amount = Reference(rows=4, null_rate=0.0, mean=2.0, stddev=0.5, edges=(0.0, 4.0), counts=(0, 4, 0))
    >>> mean_shift(amount, Statistics(count=4, mean=2.5, counts=(0, 4, 0)))
    1.0
    """
    if reference.mean is None or not reference.stddev or reference.is_text or window.values <= 0:
        return None
    return _finite((window.mean - reference.mean) / reference.stddev)


def null_shift(reference: Reference, window: Statistics) -> float | None:
    """The share of nulls, less that of the reference. Exact.

    >>> null_shift(Reference(rows=100, null_rate=0.25), Statistics(count=4, nulls=2))
    0.25
    """
    rate = null_rate(window)
    return None if rate is None else rate - reference.null_rate


def null_rate(window: Statistics) -> float | None:
    """The share of nulls. Exact.

    >>> null_rate(Statistics(count=4, nulls=2)), null_rate(Statistics())
    (0.5, None)
    """
    return window.nulls / window.count if window.count > 0 else None


def new_share(reference: Reference, window: Statistics) -> float | None:
    """The share of texts that the reference does not name. Exact.

    A manifest names the most frequent categories; where there were more, the rare ones count as new too.

    >>> new_share(Reference(rows=9, null_rate=0.0, texts={"DE": 9}), Statistics(count=4, texts={"DE": 3}, other=1))
    0.25
    """
    if not reference.is_text or window.values <= 0:
        return None
    return (window.values - sum(window.texts.get(text, 0) for text in reference.texts)) / window.values


def _cells(reference: Reference, window: Statistics) -> tuple[Floats, Floats] | None:
    """The counts of both, bin by bin; None where one of them is empty."""
    if reference.is_text:
        named = [window.texts.get(text, 0) for text in reference.texts]
        here: tuple[int, ...] = (*named, window.values - sum(named))
        there: tuple[int, ...] = (*reference.texts.values(), reference.other)
    else:
        here, there = window.counts, reference.counts
    if sum(here) <= 0 or sum(there) <= 0:
        return None
    return np.array(there, dtype=np.float64), np.array(here, dtype=np.float64)


def _shares(reference: Reference, window: Statistics) -> tuple[Floats, Floats] | None:
    cells = _cells(reference, window)
    return None if cells is None else (cells[0] / cells[0].sum(), cells[1] / cells[1].sum())


def _stddev(reference: Reference) -> float:
    return float(reference.stddev or math.inf)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
