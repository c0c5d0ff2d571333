"""What one term of a feature eats, as a column along a timeline: its values that are not null, in order.

Types are those in which states carry values (`aggregate.scalar`): moments are microseconds. What is worked out of a
column once, as ranks and range folds, is kept with it, because features over several windows ask for the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.aggregate.aggregate import Aggregate
from headrace.aggregate.columns.range_folds import Array, Merge, States, Tree
from headrace.aggregate.columns.ranges import RowRanges
from headrace.aggregate.columns.ranks import Ranks
from headrace.types.field_types import Decimal, Float, Timestamp, Type, arrow_type

Values: TypeAlias = "pa.Array"
_LOW_HALF = 2**64 - 1


def carried(kind: Type) -> pa.DataType:
    """The Arrow type of the values that are eaten.

    >>> carried(Timestamp()), carried(Float())
    (DataType(int64), DataType(double))
    """
    return pa.int64() if isinstance(kind, Timestamp) else arrow_type(kind)


class Column:
    """The values of a term along a timeline.

    Parameters
    ----------
    kind
        Their type.
    values
        One for each event in the timeline's order, null where the event does not count.
    times
        When each event happened.
    ids
        Event ids, where any aggregate wants to know them.
    """

    def __init__(self, kind: Type, values: pa.Array, times: Array, ids: pa.Array | None = None) -> None:
        there = values.is_valid().to_numpy(zero_copy_only=False)
        self.kind, self.values = kind, values.drop_null()
        self._there, self._before = there, np.concatenate([[0], np.cumsum(there)])
        self.times = times[there]
        self._ids = ids
        self._trees: dict[str, tuple[Tree, tuple[Any, ...], Merge]] = {}

    def picked(self, chosen: RowRanges) -> RowRanges:
        """The same events as places among the values that are not null."""
        return chosen.mapped(self._before[chosen.low], self._before[chosen.high])

    def folded(self, name: str, make: Callable[[], tuple[States, tuple[Any, ...], Merge]], picked: RowRanges) -> States:
        """The merge of the states of each row's places; `make` gives the states, the empty one and how they merge."""
        if name not in self._trees:
            made = make()
            self._trees[name] = (Tree(*made), *made[1:])
        tree, empty, merge = self._trees[name]
        found = tree.fold(picked.low, picked.high)
        if np.array_equal(picked.start, np.arange(len(picked.start))):
            return found
        return Tree(found, empty, merge).fold(picked.start[:-1], picked.start[1:])

    @cached_property
    def floats(self) -> Array:
        """The values as floats."""
        if isinstance(self.kind, Decimal):
            return np.array([float(value) for value in self.values.to_pylist()], dtype=np.float64)
        return np.asarray(self.values.to_numpy(zero_copy_only=False), dtype=np.float64)

    @cached_property
    def whole(self) -> Array:
        """Integers, or decimals as whole numbers of their last digit: 64 bits where sums fit, else of any size."""
        numbers = _unscaled(self.values) if isinstance(self.kind, Decimal) else self.values.to_numpy()
        if numbers.dtype == np.int64 and len(numbers):
            size = max(int(numbers.max()), -int(numbers.min()))
            return numbers if size * len(numbers) < 2**62 else numbers.astype(object)
        return numbers

    @cached_property
    def sums(self) -> Array:
        """The sum of all whole numbers before each place."""
        return np.concatenate([np.zeros(1, dtype=self.whole.dtype), np.add.accumulate(self.whole)])

    @cached_property
    def distinct(self) -> pa.Array:
        """The different values in order."""
        return self._ranked[1]

    @cached_property
    def codes(self) -> Array:
        """The place of each value among the different ones."""
        return self._ranked[0]

    @cached_property
    def _ranked(self) -> tuple[Array, pa.Array]:
        if isinstance(self.kind, Float) or pa.types.is_integer(self.values.type):
            distinct, codes = np.unique(self.values.to_numpy(), return_inverse=True)
            return codes.astype(np.int64), pa.array(distinct, self.values.type)
        encoded = self.values.dictionary_encode()
        # Text is in the order of its bytes, which is that of its code points.
        order = pc.sort_indices(_sortable(encoded.dictionary)).to_numpy()
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return place[encoded.indices.to_numpy()], encoded.dictionary.take(pa.array(order))

    @cached_property
    def ranks(self) -> Ranks:
        """The codes, to be asked for ranks within ranges."""
        return Ranks(self.codes, max(1, len(self.distinct)))

    @cached_property
    def previous(self) -> Array:
        """One more than the place at which each value was seen last before; 0 for none."""
        places, codes = self._by_code
        found = np.zeros(len(places), dtype=np.int64)
        again = np.diff(codes) == 0
        found[places[1:][again]] = places[:-1][again] + 1
        return found

    @cached_property
    def next(self) -> Array:
        """The place at which each value is seen next; the length for none."""
        places, codes = self._by_code
        found = np.full(len(places), len(places))
        again = np.diff(codes) == 0
        found[places[:-1][again]] = places[1:][again]
        return found

    @cached_property
    def _by_code(self) -> tuple[Array, Array]:
        places = np.argsort(self.codes, kind="stable")
        return places, self.codes[places]

    @cached_property
    def previous_ranks(self) -> Ranks:
        """Where values were seen last before, to be asked for ranks within ranges."""
        return Ranks(self.previous, len(self.codes) + 2)

    def exact(self, aggregate: Aggregate, picked: RowRanges, t: Array) -> Values:
        """The value of an aggregate by its own definition, row by row: for those that nothing quicker is known for."""
        values, times = self.values.to_pylist(), self.times.tolist()
        names = [""] * len(values) if self._ids is None else self._ids.filter(pa.array(self._there)).to_pylist()
        found = []
        low, high, start = picked.low.tolist(), picked.high.tolist(), picked.start.tolist()
        for row, moment in enumerate(t.tolist()):
            ranges = (range(low[each], high[each]) for each in range(start[row], start[row + 1]))
            events = [(times[at], names[at], values[at]) for at in chain.from_iterable(ranges)]
            found.append(aggregate.exact(events, moment))
        return pa.array(found, arrow_type(aggregate.type))


def take_values(values: Values, places: Array, there: Array, kind: Type) -> Values:
    """The values at some places as a feature of a type has them; null where there is none."""
    return values.take(pa.array(places, pa.int64(), mask=~there)).cast(arrow_type(kind))


def finite_values(values: Array, there: Array | None = None) -> Values:
    """Floats; null where there is none, or none that a float can hold."""
    is_finite = np.isfinite(values)
    return pa.array(values, pa.float64(), mask=~(is_finite if there is None else there & is_finite))


def _unscaled(values: pa.Array) -> Array:
    """Decimals as whole numbers of their last digit."""
    halves = np.frombuffer(values.buffers()[1], dtype="<i8")[2 * values.offset : 2 * (values.offset + len(values))]
    low, high = halves[0::2], halves[1::2]
    if np.array_equal(high, low >> 63):
        return low.copy()
    pairs = zip(low.tolist(), high.tolist(), strict=True)
    return np.array([(above << 64) + (below & _LOW_HALF) for below, above in pairs], dtype=object)


def _sortable(values: pa.Array) -> pa.Array:
    return values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
