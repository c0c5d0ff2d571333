"""How many different values: the `distinct` monoid, a HyperLogLog sketch, and the aggregate `count_distinct`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.aggregate import scalar
from headrace.aggregate.aggregate import Aggregate, Event
from headrace.aggregate.monoid import EventSql, Monoid, State
from headrace.aggregate.sketch import Sketch, datasketches
from headrace.types.field_types import Integer, Type

if TYPE_CHECKING:
    from headrace.aggregate.columns import Array, Column, RowRanges, Values

# 4,096 registers of a byte: 4 kB at most, a standard error of 1.6 % once sketches were joined.
LG_REGISTERS = 12
# Four standard errors: one estimate in ten thousand lies further off.
RELATIVE_ERROR = 0.065


@dataclass(frozen=True)
class Distinct(Sketch):
    """Which values were seen, as far as a HyperLogLog sketch remembers.

    >>> from headrace.types.field_types import String
    >>> seen = Distinct(String())
    >>> round(seen.read(seen.merge(seen.lift("a", 0, ""), seen.lift("", 0, ""))).get_estimate())
    2
    """

    input: Type
    kind = "distinct"

    @property
    def form(self) -> dict[str, Any]:
        return {**super().form, "lg_registers": LG_REGISTERS}

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        del event_time, event_id
        library = datasketches()
        sketch = library.hll_sketch(LG_REGISTERS, library.tgt_hll_type.HLL_8)
        sketch.update(scalar.hashed(self.input, value))
        return self.write(sketch)

    def read(self, state: bytes) -> Any:
        return datasketches().hll_sketch.deserialize(state)

    def write(self, sketch: Any) -> bytes:
        return bytes(sketch.serialize_compact())

    def join(self, sketches: Iterable[Any]) -> Any:
        library = datasketches()
        union = library.hll_union(LG_REGISTERS)
        for sketch in sketches:
            union.update(sketch)
        return union.get_result(library.tgt_hll_type.HLL_8)

    def spark(self, value_sql: str, at: EventSql) -> str:
        del at
        return f"hll_sketch_agg({scalar.hashed_sql(self.input, value_sql)}, {LG_REGISTERS})"


@dataclass(frozen=True)
class CountDistinct(Aggregate):
    """How many different values; 0 of nothing, like a count."""

    name = "count_distinct"
    nullable = False
    error = "a standard error of 1.6 % of the count, held to 6.5 %; exact below a few hundred"

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (Distinct(self.fed),)

    @property
    def type(self) -> Type:
        return Integer()

    def finish(self, states: Sequence[State], t: int) -> Any:
        del t
        return 0 if states[0] is None else round(Distinct(self.fed).read(states[0]).get_estimate())

    def exact(self, events: Sequence[Event], t: int) -> Any:
        del t
        return len({value for _, _, value in events})

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        """How many values are seen for the first time in their row.

        Those are the ones not seen earlier in its whole stretch of time, and the ones seen earlier only in the gaps
        between its ranges.
        """
        import numpy as np
        import pyarrow as pa

        del t
        rows, count, begin = picked.rows, len(picked.start) - 1, picked.first
        new = column.previous_ranks.below(picked.low, picked.high, begin[rows] + 1)
        found = np.bincount(rows, new, minlength=count).astype(np.int64)
        if np.diff(picked.start).max(initial=0) > 1:
            found += np.bincount(_seen_in_gaps(column, picked, begin), minlength=count)
        return pa.array(found, pa.int64())

    def close(self, a: Any, b: Any, events: Sequence[Event]) -> bool:
        true = self.exact(events, 0)
        return all(abs(value - true) <= RELATIVE_ERROR * true for value in (a, b))


def _seen_in_gaps(column: Column, picked: RowRanges, begin: Array) -> Array:
    """The row of every value whose first place in the row's stretch of time is in a gap, and a later one in a range."""
    import numpy as np

    from headrace.aggregate.columns import ragged

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
