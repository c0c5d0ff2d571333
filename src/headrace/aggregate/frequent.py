"""The most frequent values: the `frequent` monoid, a frequent-items sketch, and the aggregate `top_k`.

Values are sketched as text, the one item type that Spark and Python store alike; an integer comes back as an integer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.aggregate import scalar
from headrace.aggregate.aggregate import Aggregate, Event, refuse_unless_between
from headrace.aggregate.monoid import EventSql, Monoid, State
from headrace.aggregate.sketch import Sketch, datasketches
from headrace.types.field_types import Boolean, Decimal, Field, Integer, List, String, Struct, Timestamp, Type

if TYPE_CHECKING:
    from headrace.aggregate.columns import Array, Column, RowRanges, Values

MOST_ITEMS = 1_000
_LEAST_LG = 10


@dataclass(frozen=True)
class Frequent(Sketch):
    """How often the frequent values were seen; exact while there are at most `capacity` different ones.

    `lg_slots` is the size of the sketch's hash table, as a power of two.

    >>> seen = Frequent(String(), 10)
    >>> seen.read(seen.merge(seen.lift("a", 0, ""), seen.lift("a", 0, ""))).get_estimate("a")
    2
    """

    input: Type
    lg_slots: int
    kind = "frequent"

    @property
    def capacity(self) -> int:
        """How many different values it can hold: three quarters of its slots."""
        return 3 * (1 << self.lg_slots) // 4

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        del event_time, event_id
        sketch = datasketches().frequent_strings_sketch(self.lg_slots)
        sketch.update(scalar.text(self.input, value))
        return self.write(sketch)

    def read(self, state: bytes) -> Any:
        return datasketches().frequent_strings_sketch.deserialize(state)

    def write(self, sketch: Any) -> bytes:
        return bytes(sketch.serialize())

    def join(self, sketches: Iterable[Any]) -> Any:
        joined = datasketches().frequent_strings_sketch(self.lg_slots)
        for sketch in sketches:
            joined.merge(sketch)
        return joined

    def spark(self, value_sql: str, at: EventSql) -> str:
        del at
        # Spark counts nulls beside the sketch, behind its last byte; reading stops before them.
        return f"approx_top_k_accumulate({scalar.text_sql(self.input, value_sql)}, {self.capacity}).sketch"


@dataclass(frozen=True)
class TopK(Aggregate):
    """The k most frequent values with their counts, by count descending, then value."""

    k: int
    name = "top_k"
    accepts = (String, Boolean, Integer, Decimal, Timestamp)

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless_between(self.k, "`k` of top_k", 1, MOST_ITEMS)

    @property
    def sketch(self) -> Frequent:
        """The one monoid: with room for eight times k, and never less than 1,024 slots, so that most k share it."""
        return Frequent(self.fed, max(_LEAST_LG, (8 * self.k * 4 // 3).bit_length()))

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (self.sketch,)

    @property
    def type(self) -> Type:
        return List(Struct((Field("item", self.fed), Field("count", Integer()))))

    @property
    def error(self) -> str:
        share = 100 * _error(self.sketch)
        return f"a count is off by at most {share:.2g} % of all events; exact up to {self.sketch.capacity} values"

    def finish(self, states: Sequence[State], t: int) -> Any:
        del t
        if states[0] is None:
            return None
        kind = datasketches().frequent_items_error_type.NO_FALSE_NEGATIVES
        found = self.sketch.read(states[0]).get_frequent_items(kind, 0)
        return self._listed((scalar.from_text(self.fed, item), count) for item, count, _, _ in found)

    def exact(self, events: Sequence[Event], t: int) -> Any:
        del t
        return self._listed(Counter(value for _, _, value in events).items()) if events else None

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        # Nothing quicker is known.
        return column.exact(self, picked, t)

    def _listed(self, counts: Iterable[tuple[Any, int]]) -> list[dict[str, Any]]:
        ordered = sorted(counts, key=lambda pair: (-pair[1], pair[0]))
        return [{"item": item, "count": count} for item, count in ordered[: self.k]]

    def close(self, a: Any, b: Any, events: Sequence[Event]) -> bool:
        true = Counter(value for _, _, value in events)
        if len(true) <= self.sketch.capacity:
            return bool(a == b == self.exact(events, 0))
        return all(self._fits(value, true, _error(self.sketch) * len(events)) for value in (a, b))

    def _fits(self, value: Any, true: Counter[Any], slack: float) -> bool:
        if value is None:
            return False
        counts = {row["item"]: row["count"] for row in value}
        near = all(abs(count - true[item]) <= slack for item, count in counts.items())
        least = min(counts.values()) if len(counts) == self.k else 0
        missed = max((count for item, count in true.items() if item not in counts), default=0)
        return near and len(counts) == len(value) <= self.k and missed <= least + slack


def _error(sketch: Frequent) -> float:
    """The share of all events by which a count can be off, by the sketch's authors."""
    return float(3.5 / 2**sketch.lg_slots)
