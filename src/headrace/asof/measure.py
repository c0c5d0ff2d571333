"""What each aggregate makes of the events that count, for all rows at once.

A range is answered from what is kept of its column (`column`): differences of running sums for whole numbers, range
folds for floats, extremes and moments, ranks for medians and distinct values; those of a row are merged. An aggregate
that is not named here is computed row by row from its definition.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.aggregate import Aggregate
from headrace.asof.column import Column
from headrace.asof.range_folds import Array, Merge, States
from headrace.asof.timeline import Chosen, ragged
from headrace.clock import SECOND
from headrace.types.field_types import Decimal, Float, Integer, arrow_type

_SURE = 2**53
"""Up to here every whole number is a float."""

_SHORT = 2**31
"""Times a count, it stays within 64 bits."""

Measure = Callable[[Any, Column, Chosen, Array], pa.Array]


def evaluated(aggregate: Aggregate, column: Column, chosen: Chosen, t: Array) -> pa.Array:
    """The value of an aggregate over the events of each row, which is asked for at its moment t."""
    picked = column.picked(chosen)
    known = MEASURES.get(aggregate.name)
    if known is None:
        return pa.array(column.exact(aggregate, picked, t), arrow_type(aggregate.type))
    return known(aggregate, column, picked, t)


def _array(values: Array, there: Array, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind, mask=~there)


def _finite(values: Array, there: Array) -> pa.Array:
    return _array(values, there & np.isfinite(values), pa.float64())


def _taken(values: pa.Array, places: Array, there: Array) -> pa.Array:
    return values.take(pa.array(places, pa.int64(), mask=~there))


def _count(aggregate: Any, column: Column, picked: Chosen, t: Array) -> pa.Array:
    del aggregate, column, t
    return pa.array(picked.counts, pa.int64())


def _added(column: Column) -> tuple[States, tuple[Any, ...], Merge]:
    return (column.floats,), (0.0,), lambda a, b: (a[0] + b[0],)


def _total(column: Column, picked: Chosen) -> Array:
    """The sum of floats, or of whole numbers without rounding."""
    if isinstance(column.kind, Float):
        return column.folded("sum", lambda: _added(column), picked)[0]
    of_ranges = column.sums[picked.high] - column.sums[picked.low]
    upto = np.concatenate([np.zeros(1, dtype=of_ranges.dtype), np.add.accumulate(of_ranges)])
    found: Array = upto[picked.start[1:]] - upto[picked.start[:-1]]
    return found


def _sum(aggregate: Any, column: Column, picked: Chosen, t: Array) -> pa.Array:
    total = _total(column, picked)
    if isinstance(column.kind, Float):
        return _finite(total, np.ones(len(total), dtype=bool))
    if isinstance(column.kind, Integer) and total.dtype == np.int64:
        return pa.array(total, pa.int64())
    rows = zip(total.tolist(), t.tolist(), strict=True)
    return pa.array([aggregate.finish([each], moment) for each, moment in rows], arrow_type(aggregate.type))


def _mean(aggregate: Any, column: Column, picked: Chosen, t: Array) -> pa.Array:
    total, counts = _total(column, picked), picked.counts
    below = 10**column.kind.scale if isinstance(column.kind, Decimal) else 1
    greatest = int(counts.max(initial=0)) * below
    if total.dtype == np.int64:
        greatest = max(greatest, int(total.max(initial=0)), -int(total.min(initial=0)))
    if total.dtype == object or greatest >= _SURE:
        rows = zip(total.tolist(), counts.tolist(), t.tolist(), strict=True)
        return pa.array([aggregate.finish([each, n], moment) for each, n, moment in rows], pa.float64())
    with np.errstate(all="ignore"):
        return _finite(total / (counts * below), counts > 0)


def _spread(column: Column) -> tuple[States, tuple[Any, ...], Merge]:
    values = column.floats
    counts, apart = np.ones(len(values), dtype=np.int64), np.zeros(len(values))
    return (counts, values, apart), (0, 0.0, 0.0), _with_spread


def _with_spread(a: States, b: States) -> States:
    """Chan's formula, as in `aggregate.moments`."""
    (n, mean, m2), (other_n, other_mean, other_m2) = a, b
    both = n + other_n
    whole = np.maximum(both, 1)
    apart = other_mean - mean
    joined = mean + apart * (other_n / whole), m2 + other_m2 + apart * apart * (n * (other_n / whole))
    empty, other_empty = n == 0, other_n == 0
    return (
        both,
        np.where(empty, other_mean, np.where(other_empty, mean, joined[0])),
        np.where(empty, other_m2, np.where(other_empty, m2, joined[1])),
    )


def _variance(aggregate: Any, column: Column, picked: Chosen, t: Array) -> pa.Array:
    del t
    n, _, m2 = column.folded("spread", lambda: _spread(column), picked)
    with np.errstate(all="ignore"):
        found = m2 / np.maximum(n - 1, 1)
        return _finite(np.sqrt(found) if aggregate.name == "stddev" else found, n > 1)


def _extreme(column: Column, *, least: bool) -> tuple[States, tuple[Any, ...], Merge]:
    choose = np.minimum if least else np.maximum
    return (column.codes,), (len(column.codes) if least else -1,), lambda a, b: (choose(a[0], b[0]),)


def _min(aggregate: Any, column: Column, picked: Chosen, t: Array) -> pa.Array:
    del t
    least = aggregate.name == "min"
    (codes,) = column.folded(aggregate.name, lambda: _extreme(column, least=least), picked)
    return _as_value(aggregate, _taken(column.distinct, codes, picked.counts > 0))


def _ends(picked: Chosen) -> tuple[Array, Array]:
    """The first and the last place of each row; where there is none they mean nothing."""
    return np.append(picked.low, 0)[picked.start[:-1]], np.append(picked.high, 0)[picked.start[1:] - 1] - 1


def _first(aggregate: Any, column: Column, picked: Chosen, t: Array) -> pa.Array:
    del t
    places = _ends(picked)[aggregate.name == "last"]
    return _as_value(aggregate, _taken(column.values, places, picked.counts > 0))


def _as_value(aggregate: Any, values: pa.Array) -> pa.Array:
    """Values as the feature has them: moments are moments again."""
    return values.cast(arrow_type(aggregate.type))


def _time_since(aggregate: Any, column: Column, picked: Chosen, t: Array) -> pa.Array:
    places = _ends(picked)[aggregate.name == "time_since_last"]
    there = picked.counts > 0
    times = np.append(column.times, 0)[np.where(there, places, -1)]
    return _array(np.maximum(t - times, 0) / SECOND, there, pa.float64())


def _last_n(aggregate: Any, column: Column, picked: Chosen, t: Array) -> pa.Array:
    del t
    upto = np.concatenate([[0], np.cumsum(picked.high - picked.low)])
    later = upto[picked.start[1:]][picked.rows] - upto[1:]
    newest = picked.mapped(np.maximum(picked.low, picked.high - np.maximum(aggregate.n - later, 0)), picked.high)
    places, _ = ragged(newest.low, newest.high)
    lengths = newest.counts
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    # Newest first: each row's places from its end.
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = places[offsets[rows] + offsets[rows + 1] - 1 - np.arange(len(places))]
    values = column.values.take(pa.array(places)).cast(arrow_type(aggregate.type.element))
    # A list that begins at null is null.
    starts = pa.array(offsets, pa.int32(), mask=np.append(lengths == 0, False))
    return pa.ListArray.from_arrays(starts, values).cast(arrow_type(aggregate.type))


def _distinct(aggregate: Any, column: Column, picked: Chosen, t: Array) -> pa.Array:
    """How many values are seen for the first time in their row: those not seen earlier in its whole stretch of time,
    and those seen earlier only in the gaps between its ranges.
    """
    del aggregate, t
    rows, count = picked.rows, len(picked.start) - 1
    begin = np.append(picked.low, 0)[picked.start[:-1]]
    new = column.previous_ranks.below(picked.low, picked.high, begin[rows] + 1)
    found = np.bincount(rows, new, minlength=count).astype(np.int64)
    if np.diff(picked.start).max(initial=0) > 1:
        found += np.bincount(_seen_in_gaps(column, picked, begin), minlength=count)
    return pa.array(found, pa.int64())


def _seen_in_gaps(column: Column, picked: Chosen, begin: Array) -> Array:
    """The row of every value whose first place in the row's stretch of time is in a gap, and a later one in a range."""
    rows, length = picked.rows, len(column.codes) + 1
    inner = np.flatnonzero(np.diff(rows) == 0)
    places, start = ragged(picked.high[inner], picked.low[inner + 1])
    owners = np.repeat(rows[inner], np.diff(start))
    first = column.previous[places] <= begin[owners]
    places, owners = places[first], owners[first]
    ranges, done = rows * length + picked.low, []
    while len(places):
        places = column.next[places]
        at = np.searchsorted(ranges, owners * length + places, side="right") - 1
        in_range = (rows[at] == owners) & (places < picked.high[at])
        done.append(owners[in_range])
        # In another gap, it may still be seen in a range after that; behind the last range, it is not.
        on = ~in_range & (places < picked.high[picked.start[owners + 1] - 1])
        places, owners = places[on], owners[on]
    return np.concatenate(done) if done else np.zeros(0, dtype=np.int64)


def _quantile(aggregate: Any, column: Column, picked: Chosen, t: Array) -> pa.Array:
    del t
    # The share as it was written: 0.55 is 55 hundredths, not the double next to it.
    counts, share = picked.counts, Fraction(repr(aggregate.q))
    product = counts * share.numerator if share.numerator < _SHORT else counts.astype(object) * share.numerator
    ranks = np.maximum(-(-product // share.denominator), 1).astype(np.int64) - 1
    codes = column.ranks.kth(picked, ranks)
    return _finite(_distinct_floats(column)[np.where(counts > 0, codes, -1)], counts > 0)


def _distinct_floats(column: Column) -> Array:
    return np.array([*map(float, column.distinct.to_pylist()), 0.0], dtype=np.float64)


def _decayed(aggregate: Any, column: Column, picked: Chosen, t: Array) -> pa.Array:
    life = aggregate.half_life

    def make() -> tuple[States, tuple[Any, ...], Merge]:
        return (column.times, column.floats), (np.iinfo(np.int64).min // 4, 0.0), merge

    def merge(a: States, b: States) -> States:
        ref = np.maximum(a[0], b[0])
        return ref, sum(total * np.exp2((at - ref) / life) for at, total in (a, b))

    ref, total = column.folded(f"decayed {life}", make, picked)
    with np.errstate(all="ignore"):
        found = np.where(picked.counts > 0, total * np.exp2((ref - t) / life), 0.0)
    return _finite(found, np.ones(len(found), dtype=bool))


MEASURES: dict[str, Measure] = {
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "variance": _variance,
    "stddev": _variance,
    "min": _min,
    "max": _min,
    "first": _first,
    "last": _first,
    "last_n": _last_n,
    "time_since_last": _time_since,
    "time_since_first": _time_since,
    "count_distinct": _distinct,
    "quantile": _quantile,
    "decayed_sum": _decayed,
}
