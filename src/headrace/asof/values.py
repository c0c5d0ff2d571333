"""Features of many keys at many moments, from the events that were known then.

Moments are worked through in the order of keys and time, so many at once that their stragglers, and the single events
after what is settled, stay within bounds (`MOST_PAIRS`), however long some were under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.aggregate.columns import Array, Column, RowRanges, ragged
from headrace.asof.query import AsOfQuery
from headrace.asof.timeline import Timeline
from headrace.define.window import Window
from headrace.meaning.exact import Mode
from headrace.types.field_types import arrow_type

MOST_PAIRS = 2_000_000


@dataclass(frozen=True)
class RecordPositions:
    """Where records stand in the log: when they arrived, their partition and their offset."""

    arrived: Array
    partition: Array
    offset: Array


@dataclass(frozen=True)
class EventColumns:
    """Events in any order: the numbers of their keys, when they happened, where they stand, and what they are eaten as.

    Partitions and offsets are looked at only when moments are those of events.
    """

    keys: Array
    times: Array
    places: RecordPositions
    values: tuple[pa.Array, ...]
    ids: pa.Array | None = None


@dataclass(frozen=True)
class QueryMoments:
    """What is asked for: keys by their numbers, each at a time t; with `own`, the event at that place counts too."""

    keys: Array
    times: Array
    own: RecordPositions | None = None


def answers(asked: AsOfQuery, events: EventColumns, moments: QueryMoments) -> list[pa.Array]:
    """One array for each feature, with a value for each moment in the order in which they were given."""
    known = events.places.arrived if asked.mode == "as_known" else events.times
    timeline = Timeline(events.keys, events.times, known, events.ids)
    order = pa.array(timeline.order)
    ids = None if events.ids is None else events.ids.take(order)
    columns = [
        Column(kind, values.take(order), timeline.times, ids)
        for kind, values in zip(asked.eaten, events.values, strict=True)
    ]
    by = np.lexsort((moments.times, moments.keys))
    parts: list[list[pa.Array]] = [[] for _ in asked.features]
    for rows, chosen in _split_moments(asked, timeline, events, moments, by):
        keys, t = moments.keys[rows], moments.times[rows]
        windows: dict[Window, RowRanges] = {}
        for place, wanted in enumerate(asked.features):
            terms = []
            for part in wanted.parts:
                if part.window not in windows:
                    windows[part.window] = _inside(part.window, timeline, keys, t, chosen)
                column = columns[part.column]
                terms.append(part.aggregate.compute_values(column, column.picked(windows[part.window]), t))
            parts[place].append(terms[0] if len(terms) == 1 else _ratio(*terms))
    back = np.empty(len(by), dtype=np.int64)
    back[by] = np.arange(len(by))
    return [
        (pa.concat_arrays(found) if found else pa.array([], arrow_type(wanted.kind))).take(pa.array(back))
        for wanted, found in zip(asked.features, parts, strict=True)
    ]


def _split_moments(
    asked: AsOfQuery, timeline: Timeline, events: EventColumns, moments: QueryMoments, by: Array
) -> Iterator[tuple[Array, RowRanges]]:
    """Moments in parts, and of each which events were known."""
    keys, t = moments.keys[by], moments.times[by]
    settled = timeline.settled(keys, t)
    if asked.mode == "as_happened" and moments.own is None:
        upto = settled
    else:
        # Nothing is known that will happen later than clocks may be ahead.
        upto = np.maximum(settled, timeline.before(keys, t + asked.skew + 1))
    missing = _missing(timeline, keys, t, settled)
    pairs = np.cumsum(upto - settled) + np.cumsum(np.cumsum(missing.change)[:-1])
    for rows in np.split(np.arange(len(by)), np.flatnonzero(np.diff(pairs // MOST_PAIRS)) + 1):
        if not len(rows):
            continue
        places, start = ragged(settled[rows], upto[rows])
        owners = rows[0] + np.repeat(np.arange(len(rows)), np.diff(start))
        known = timeline.known[places] < t[owners]
        gone, lacking = missing.between(rows[0], rows[-1] + 1)
        if moments.own is not None:
            known |= _with_own(asked.mode, timeline.order[places], events.places, moments.own, by[owners])
            there = _with_own(asked.mode, timeline.order[gone], events.places, moments.own, by[lacking])
            gone, lacking = gone[~there], lacking[~there]
        yield by[rows], _ranges(rows, settled[rows], places[known], owners[known], gone, lacking)


@dataclass(frozen=True)
class _Missing:
    """Stragglers that are not known yet though later events are: each in the rows [first, last) in order.

    `change` says at each row how many more there are than before it.
    """

    places: Array
    first: Array
    last: Array
    change: Array

    def between(self, first: int, last: int) -> tuple[Array, Array]:
        """The places that are missing in the rows [first, last), and the row of each."""
        begin, end = np.maximum(self.first, first), np.minimum(self.last, last)
        there = begin < end
        rows, start = ragged(begin[there], end[there])
        return np.repeat(self.places[there], np.diff(start)), rows


def _missing(timeline: Timeline, keys: Array, t: Array, settled: Array) -> _Missing:
    """The stragglers before the place at which each row is settled that its moment does not know."""
    places = np.flatnonzero(timeline.straggles)
    # Rows are in the order of keys and time, in which both bounds rise: from where the place is settled to its arrival.
    first = np.searchsorted(settled, places, side="right")
    last = _first_after(keys, t, timeline.keys[places], timeline.known[places])
    change = np.zeros(len(t) + 1, dtype=np.int64)
    there = first < last
    np.add.at(change, first[there], 1)
    np.add.at(change, last[there], -1)
    return _Missing(places[there], first[there], last[there], change)


def _first_after(keys: Array, t: Array, of: Array, moments: Array) -> Array:
    """The first row in order that is of a later key, or of the same and later than a moment."""
    order = np.lexsort((np.append(np.ones(len(t)), np.zeros(len(of))), np.append(t, moments + 1), np.append(keys, of)))
    before = np.cumsum(order < len(t))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    found: Array = before[place[len(t) :]]
    return found


def _ranges(rows: Array, settled: Array, places: Array, owners: Array, gone: Array, lacking: Array) -> RowRanges:
    """Of each row everything up to where it is settled, without what is gone, and single places after it."""
    first = rows[0]
    # A gap ends one range and begins the next; the last one ends where the row is settled.
    by = np.concatenate([rows, lacking, owners])
    low = np.concatenate([np.zeros(len(rows), dtype=np.int64), gone + 1, places])
    order = np.lexsort((low, by))
    by, low = by[order], low[order]
    high = np.concatenate([low[1:] - 1, [0]])
    single = np.concatenate([np.zeros(len(rows) + len(gone), dtype=bool), np.ones(len(places), dtype=bool)])[order]
    ends = np.append(by[1:] != by[:-1], True) | np.append(single[1:], True)
    high = np.where(single, low + 1, np.where(ends, settled[by - first], high))
    start = np.searchsorted(by, np.append(rows, rows[-1] + 1))
    return RowRanges(start, low, low).mapped(low, high)


def _with_own(mode: Mode, events: Array, places: RecordPositions, own: RecordPositions, rows: Array) -> Array:
    """Whether each event is the row's own, or, as it was known, stands before it in the log."""
    arrived, partition, offset = places.arrived[events], places.partition[events], places.offset[events]
    at, on, to = own.arrived[rows], own.partition[rows], own.offset[rows]
    same: Array = (arrived == at) & (partition == on) & (offset == to)
    if mode == "as_happened":
        return same
    before: Array = (arrived < at) | ((arrived == at) & ((partition < on) | ((partition == on) & (offset < to))))
    return same | before


def _inside(window: Window, timeline: Timeline, keys: Array, t: Array, chosen: RowRanges) -> RowRanges:
    """The known events whose tiles a window holds at each moment."""
    low, high = window.spans(t)
    inside = chosen.within(timeline.before(keys, low), timeline.before(keys, high))
    return inside if window.pause is None else _running(window.pause, timeline, t, inside)


def _running(gap: int, timeline: Timeline, t: Array, inside: RowRanges) -> RowRanges:
    """The events of the session that runs at each moment: the last ones, with no longer pause than the gap."""
    times, chained = timeline.times, timeline.chained(gap)
    first = inside.start[:-1]
    # The range in which the session of each row begins, looked for from the last one on; before the first, none does.
    begins = inside.start[1:] - 1
    rows = np.flatnonzero(first <= begins)
    rows = rows[t[rows] - times[inside.high[begins[rows]] - 1] <= gap]
    low = inside.high.copy()
    while len(rows):
        at = begins[rows]
        low[at] = np.maximum(inside.low[at], chained[inside.high[at] - 1])
        on = (low[at] == inside.low[at]) & (at > first[rows])
        on[on] = times[low[at[on]]] - times[inside.high[at[on] - 1] - 1] <= gap
        rows = rows[on]
        begins[rows] -= 1
    return inside.mapped(low, inside.high)


def _ratio(above: pa.Array, below: pa.Array) -> pa.Array:
    """One number divided by another, null where that has no meaning: `Feature.combine` for many at once."""
    if any(pa.types.is_decimal(each.type) for each in (above, below)):
        pairs = zip(above.to_pylist(), below.to_pylist(), strict=True)
        divided = [None if a is None or not b else float(a) / float(b) for a, b in pairs]
        return pa.array(divided, pa.float64())
    there = (above.is_valid().to_numpy(zero_copy_only=False)) & (below.is_valid().to_numpy(zero_copy_only=False))
    a, b = (each.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64) for each in (above, below))
    there &= b != 0
    with np.errstate(all="ignore"):
        return pa.array(np.divide(a, b, where=there, out=np.zeros(len(a))), pa.float64(), mask=~there)


def numbered(*tables: Sequence[pa.Array]) -> list[Array]:
    """Keys as whole numbers, the same in every table: equal ones have equal numbers.

    Each table is the columns of its keys; they have the same number of columns and types. A table without columns has
    one key for everything, so that its length is to be told by its user.

    Examples
    --------
    >>> [each.tolist() for each in numbered([pa.array(["b", "a"])], [pa.array(["a", "c"])])]
    [[0, 1], [1, 2]]
    """
    lengths = [len(table[0]) for table in tables]
    whole = np.zeros(sum(lengths), dtype=np.int64)
    for columns in zip(*tables, strict=True):
        codes = pa.concat_arrays(columns).dictionary_encode().indices.to_numpy().astype(np.int64)
        paired = whole * (int(codes.max(initial=0)) + 1) + codes
        whole = np.unique(paired, return_inverse=True)[1] if len(tables[0]) > 1 else paired
    return list(np.split(whole, np.cumsum(lengths)[:-1]))
