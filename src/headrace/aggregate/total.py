"""Sums: the `total` monoid, and the aggregates `sum` and `mean` (a total and a count, so that the two share a column).

Integers and decimals are added exactly, as whole numbers of their last digit. Spark's own sum of 64-bit integers
throws when it leaves 64 bits, and one of decimals is twice as slow (measured: 0.26 s against 0.73 s for 6 million
rows), so integers are summed in two halves of 32 bits: safe for 2 billion events per key and tile, at no cost.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from headrace.aggregate import real, scalar
from headrace.aggregate.aggregate import Aggregate, Event
from headrace.aggregate.count import Count
from headrace.aggregate.monoid import EventSql, Monoid, State
from headrace.types.field_types import LARGEST_INTEGER, SMALLEST_INTEGER, Decimal, Float, Integer, Type, arrow_type

if TYPE_CHECKING:
    from headrace.aggregate.columns import Array, Column, RowRanges, Values

# Up to this many digits Spark's sum has ten digits to spare; wider decimals are summed in two parts.
_NARROW = 28
# Up to here every whole number is a float.
_SURE = 2**53


@dataclass(frozen=True)
class Total(Monoid):
    """The sum; the state is a float, or for integers and decimals an int of any size.

    >>> Total(Integer()).merge(2**63 - 1, 1)
    9223372036854775808
    """

    input: Type
    kind = "total"

    @property
    def ddl(self) -> str:
        match self.input:
            case Integer():
                return "STRUCT<hi: BIGINT, lo: BIGINT>"
            case Decimal(precision, scale) if precision <= _NARROW:
                return f"DECIMAL({precision + 10},{scale})"
            case Decimal(_, scale):
                return f"STRUCT<hi: DECIMAL(30,0), lo: DECIMAL(38,{scale})>"
        return "DOUBLE"

    @property
    def empty(self) -> State:
        return 0.0 if isinstance(self.input, Float) else 0

    def of(self, value: Any, event_time: int, event_id: str) -> State:
        del event_time, event_id
        return scalar.unscaled(value, self.input.scale) if isinstance(self.input, Decimal) else value

    def merge(self, a: State, b: State) -> State:
        return a + b

    def fold(self, states: Iterable[State]) -> State:
        return sum(filter(None, states), self.empty)

    def spark(self, value_sql: str, at: EventSql) -> str:
        del at
        value = scalar.sql(self.input, value_sql)
        match self.input:
            case Integer():
                return f"named_struct('hi', sum(shiftright({value}, 32)), 'lo', sum({value} & {2**32 - 1}))"
            case Decimal(precision, scale) if precision > _NARROW:
                unit = f"{scalar.scaled(1, _lower_digits(scale)):f}BD"
                hi = f"sum(CAST({value} div {unit} AS DECIMAL(20,0)))"
                return f"named_struct('hi', {hi}, 'lo', sum({value} % {unit}))"
        return f"sum({value})"

    def from_spark(self, cell: Any) -> State:
        match self.input:
            case Integer():
                return self.empty if cell["hi"] is None else (cell["hi"] << 32) + cell["lo"]
            case Decimal(precision, scale) if precision > _NARROW:
                if cell["hi"] is None:
                    return self.empty
                return int(cell["hi"]) * 10 ** (_NARROW - 1) + scalar.unscaled(cell["lo"], scale)
            case Decimal(_, scale):
                return self.empty if cell is None else scalar.unscaled(cell, scale)
        return self.empty if cell is None else cell

    @property
    def cell_is_state(self) -> bool:
        return isinstance(self.input, Float)

    @property
    def carried(self) -> bool:
        return isinstance(self.input, Float)

    def pack(self, state: State) -> Any:
        if isinstance(self.input, Float):
            return real.pack(state)
        return state if SMALLEST_INTEGER <= state <= LARGEST_INTEGER else str(state)

    def unpack(self, packed: Any) -> State:
        return float(packed) if isinstance(self.input, Float) else int(packed)


def _lower_digits(scale: int) -> int:
    """Where a wide decimal is cut: 27 digits below, so at most 11 above."""
    return scale - (_NARROW - 1)


def _column_totals(column: Column, picked: RowRanges) -> Array:
    """The sum of the floats of each row, or of its whole numbers without rounding."""
    import numpy as np

    if isinstance(column.kind, Float):
        make = (column.floats,), (0.0,), lambda a, b: (a[0] + b[0],)
        return column.folded("sum", lambda: make, picked)[0]
    of_ranges = column.sums[picked.high] - column.sums[picked.low]
    upto = np.concatenate([np.zeros(1, dtype=of_ranges.dtype), np.add.accumulate(of_ranges)])
    found: Array = upto[picked.start[1:]] - upto[picked.start[:-1]]
    return found


@dataclass(frozen=True)
class Sum(Aggregate):
    """The sum; 0 of nothing, null when it does not fit its type."""

    name = "sum"
    accepts = scalar.NUMBERS
    is_rounded = True

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (Total(self.fed),)

    @property
    def type(self) -> Type:
        kind = self.fed
        return Decimal(min(38, kind.precision + 10), kind.scale) if isinstance(kind, Decimal) else kind

    def finish(self, states: Sequence[State], t: int) -> Any:
        del t
        (state,) = states
        if isinstance(self.input, Float):
            return real.finite(state)
        kind = self.type
        if isinstance(kind, Decimal):
            return scalar.scaled(state, kind.scale) if abs(state) < 10**kind.precision else None
        return state if SMALLEST_INTEGER <= state <= LARGEST_INTEGER else None

    def exact(self, events: Sequence[Event], t: int) -> Any:
        del t
        values = [value for _, _, value in events]
        match self.type:
            case Integer():
                whole = sum(values)
                return whole if -(2**63) <= whole < 2**63 else None
            case Decimal(precision, scale):
                with decimal.localcontext(scalar.WIDE):
                    summed = sum(values, decimal.Decimal(0)).quantize(decimal.Decimal(1).scaleb(-scale))
                    return summed if len(summed.as_tuple().digits) <= precision else None
        return real.total(values)

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        import pyarrow as pa

        from headrace.aggregate.columns import finite_values

        total = _column_totals(column, picked)
        if isinstance(column.kind, Float):
            return finite_values(total)
        if isinstance(column.kind, Integer) and total.dtype == "int64":
            return pa.array(total, pa.int64())
        rows = zip(total.tolist(), t.tolist(), strict=True)
        return pa.array([self.finish([each], moment) for each, moment in rows], arrow_type(self.type))

    def close(self, a: Any, b: Any, events: Sequence[Event]) -> bool:
        if isinstance(self.input, Float):
            return real.near(a, b, real.size(value for _, _, value in events))
        return bool(a == b)


@dataclass(frozen=True)
class Mean(Aggregate):
    """The arithmetic mean, as a float."""

    name = "mean"
    accepts = scalar.NUMBERS
    is_rounded = True

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        return (Total(self.fed), Count())

    @property
    def type(self) -> Type:
        return Float()

    def finish(self, states: Sequence[State], t: int) -> Any:
        del t
        total, n = states
        if not n:
            return None
        below = 10**self.input.scale if isinstance(self.input, Decimal) else 1
        return real.finite(total / (n * below))

    def exact(self, events: Sequence[Event], t: int) -> Any:
        del t
        values = [value for _, _, value in events]
        if not values:
            return None
        if isinstance(self.input, Float):
            total = real.total(values)
            return None if total is None else total / len(values)
        return real.rounded(sum(map(Fraction, values), Fraction(0)) / len(values))

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        import numpy as np
        import pyarrow as pa

        from headrace.aggregate.columns import finite_values

        total, counts = _column_totals(column, picked), picked.counts
        below = 10**column.kind.scale if isinstance(column.kind, Decimal) else 1
        greatest = int(counts.max(initial=0)) * below
        if total.dtype == np.int64:
            greatest = max(greatest, int(total.max(initial=0)), -int(total.min(initial=0)))
        if total.dtype == object or greatest >= _SURE:
            rows = zip(total.tolist(), counts.tolist(), t.tolist(), strict=True)
            return pa.array([self.finish([each, n], moment) for each, n, moment in rows], pa.float64())
        with np.errstate(all="ignore"):
            return finite_values(total / (counts * below), counts > 0)

    def close(self, a: Any, b: Any, events: Sequence[Event]) -> bool:
        return real.near(a, b, real.size(float(value) for _, _, value in events) / max(len(events), 1))
