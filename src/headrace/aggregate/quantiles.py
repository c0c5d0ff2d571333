"""Ranks: the `quantiles` monoid, a KLL sketch of doubles in each tile, and the aggregate `quantile`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from headrace.aggregate import scalar
from headrace.aggregate.aggregate import Aggregate, Event
from headrace.aggregate.monoid import EventSql, Monoid, State
from headrace.aggregate.ranked import Ranked, is_ranked, merge_ranked, read_ranked, write_one, write_ranked
from headrace.aggregate.sketch import Sketch
from headrace.errors import DefinitionError, shown
from headrace.types.field_types import Float, Type

if TYPE_CHECKING:
    from headrace.aggregate.columns import Array, Column, RowRanges, Values

# 200 values per level: a tile is exact up to 200 values, with a rank error of 1.33 % in 99 of 100 beyond.
K = 200
# About four standard errors: one rank in ten thousand lies further off.
RANK_ERROR = 0.02
# Times a count, it stays within 64 bits.
_SHORT = 2**31


@dataclass(frozen=True)
class Quantiles(Sketch):
    """The distribution of a number: of each tile what Spark's KLL sketch remembers, and all of that when merged.

    Merging is left to `ranked`, so the same tiles give the same value whichever were merged before.

    >>> seen = Quantiles(Float())
    >>> seen.read(seen.merge(seen.lift(1.0, 0, ""), seen.lift(2.0, 0, ""))).values.tolist()
    [1.0, 2.0]
    """

    input: Type
    kind = "quantiles"

    @property
    def form(self) -> dict[str, Any]:
        return {**super().form, "k": K}

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        del event_time, event_id
        return write_one(float(value))

    def read(self, state: bytes) -> Ranked:
        return read_ranked(state) if is_ranked(state) else merge_ranked((), [state])

    def write(self, sketch: Ranked) -> bytes:
        return write_ranked(sketch)

    def fold(self, states: Iterable[State]) -> State:
        known = [state for state in states if state is not None]
        if not known:
            return None
        if len(known) == 1 and is_ranked(known[0]):
            return known[0]
        parts = [read_ranked(state) for state in known if is_ranked(state)]
        merged = merge_ranked(parts, [state for state in known if not is_ranked(state)])
        # Spark writes an empty sketch where Headrace keeps none.
        return None if merged.is_empty() else write_ranked(merged)

    def spark(self, value_sql: str, at: EventSql) -> str:
        del at
        return f"kll_sketch_agg_double(CAST({value_sql} AS DOUBLE), {K})"


@dataclass(frozen=True)
class Quantile(Aggregate):
    """The least value that at least a share `q` of all values does not exceed, as a float."""

    q: float
    name = "quantile"
    accepts = scalar.NUMBERS
    error = "the rank is off by at most 1.33 % in 99 of 100, held to 2 %; exact up to 200 values"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.q, int | float) or isinstance(self.q, bool) or not 0 <= self.q <= 1:
            hint = "0.5 is the median, 0.99 the 99th percentile."
            message = "`q` of quantile must be a number from 0 to 1."
            raise DefinitionError("bad-argument", message, got=shown(self.q), hint=hint)
        object.__setattr__(self, "q", float(self.q))

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (Quantiles(self.fed),)

    @property
    def type(self) -> Type:
        return Float()

    def finish(self, states: Sequence[State], t: int) -> Any:
        del t
        if states[0] is None:
            return None
        return Quantiles(self.fed).read(states[0]).quantile(self.q)

    def exact(self, events: Sequence[Event], t: int) -> Any:
        del t
        values = sorted(float(value) for _, _, value in events)
        # The share as it was written: 0.55 is 55 hundredths, not the double next to it.
        place = math.ceil(Fraction(repr(self.q)) * len(values))
        return values[max(place, 1) - 1] if values else None

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        import numpy as np

        from headrace.aggregate.columns import finite_values

        del t
        counts, share = picked.counts, Fraction(repr(self.q))
        product = counts * share.numerator if share.numerator < _SHORT else counts.astype(object) * share.numerator
        ranks = np.maximum(-(-product // share.denominator), 1).astype(np.int64) - 1
        codes = column.ranks.kth(picked, ranks)
        floats = np.array([*map(float, column.distinct.to_pylist()), 0.0], dtype=np.float64)
        return finite_values(floats[np.where(counts > 0, codes, -1)], counts > 0)

    def close(self, a: Any, b: Any, events: Sequence[Event]) -> bool:
        if len(events) <= K:
            return bool(a == b == self.exact(events, 0))
        return all(self._fits(value, [float(given) for _, _, given in events]) for value in (a, b))

    def _fits(self, value: float | None, values: Sequence[float]) -> bool:
        if value is None:
            return False
        below = sum(given < value for given in values) / len(values)
        upto = sum(given <= value for given in values) / len(values)
        return value in values and below - RANK_ERROR <= self.q <= upto + RANK_ERROR
