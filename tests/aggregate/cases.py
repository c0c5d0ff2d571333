"""What the aggregate tests share: every monoid and aggregate over every type, generated events, the equality rule."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from headrace.aggregate import (
    AGGREGATES,
    Aggregate,
    Count,
    Decayed,
    Distinct,
    Earliest,
    Event,
    EventList,
    Frequent,
    Greatest,
    Latest,
    LatestN,
    Least,
    Moments,
    Monoid,
    Quantiles,
    TimeSpan,
    Total,
    aggregate,
)
from headrace.aggregate.real import near, size
from headrace.aggregate.sketch import Sketch
from headrace.types.field_types import Boolean, Decimal, Float, Integer, String, Timestamp, Type

TYPES: tuple[Type, ...] = (
    String(),
    Boolean(),
    Integer(),
    Float(),
    Decimal(10, 2),
    Decimal(38, 18),
    Timestamp(),
)
NUMBERS = tuple(kind for kind in TYPES if isinstance(kind, Integer | Float | Decimal))
PARAMETERS: dict[str, dict[str, Any]] = {
    "last_n": {"n": 3},
    "quantile": {"q": 0.55},
    "top_k": {"k": 2},
    "decayed_sum": {"half_life": 7_000_000},
}


def _fits(name: str, kind: Type | None) -> bool:
    made = AGGREGATES[name]
    return not made.needs_input if kind is None else isinstance(kind, made.accepts)


AGGREGATE_CASES: list[Aggregate] = [
    aggregate(name, kind, **PARAMETERS.get(name, {}))
    for name in AGGREGATES
    for kind in (*TYPES, None)
    if _fits(name, kind)
]

MONOID_CASES: list[tuple[Monoid, Type]] = [
    *((made(), kind) for made in (Count, TimeSpan) for kind in TYPES),
    *((made(kind), kind) for made in (Total, Moments, Quantiles) for kind in NUMBERS),
    *((made(kind), kind) for made in (Least, Greatest, Earliest, Latest, Distinct, EventList) for kind in TYPES),
    *((LatestN(kind, 3), kind) for kind in TYPES),
    *((Frequent(kind, 10), kind) for kind in TYPES if not isinstance(kind, Float)),
    *((Decayed(kind, 7_000_000), kind) for kind in NUMBERS),
]
KINDS = sorted({monoid.kind for monoid, _ in MONOID_CASES})


def monoids(kind: str) -> st.SearchStrategy[tuple[Monoid, Type]]:
    """A monoid of that kind, with the type it eats."""
    return st.sampled_from([case for case in MONOID_CASES if case[0].kind == kind])


def aggregates(name: str) -> st.SearchStrategy[Aggregate]:
    """An aggregate of that name, over any type it takes."""
    return st.sampled_from([asked for asked in AGGREGATE_CASES if asked.name == name])


def values(kind: Type) -> st.SearchStrategy[Any]:
    """Any value of a type, the nasty ones included."""
    match kind:
        case String():
            return st.sampled_from(["", "a", "b", "ä", "🜁", "\uffff"]) | st.text(max_size=5)
        case Boolean():
            return st.booleans()
        case Integer():
            return st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**63 - 1, -(2**63)])
        case Float():
            nasty = st.sampled_from([0.0, -0.0, 1e300, -1e300, 1e9 + 1, 0.1])
            return nasty | st.floats(allow_nan=False, allow_infinity=False)
        case Decimal(precision, scale):
            digits = st.integers(-(10**precision) + 1, 10**precision - 1) | st.sampled_from([0, 1, 10**precision - 1])
            return digits.map(lambda whole: decimal.Decimal(f"{whole}E-{scale}"))
    return st.integers(-(2**40), 2**51)


def events_of(kind: Type, most: int = 12) -> st.SearchStrategy[list[tuple[int, str, Any]]]:
    """Events with ties in time and nulls; (event time, event id) is unique."""
    event = st.tuples(st.integers(0, 20_000_000) | st.integers(0, 3), st.text("abc", max_size=3), _or_null(kind))
    return st.lists(event, max_size=most, unique_by=lambda given: given[:2])


def _or_null(kind: Type) -> st.SearchStrategy[Any]:
    return st.integers(0, 4).flatmap(lambda die: st.none() if die == 0 else values(kind))


def known(events: Iterable[tuple[int, str, Any]]) -> list[Event]:
    """The events with a value."""
    return [event for event in events if event[2] is not None]


def folded(monoid: Monoid, events: Iterable[tuple[int, str, Any]]) -> Any:
    """The state of events, lifted and merged one by one."""
    state = monoid.empty
    for time, id, value in events:
        state = monoid.merge(state, monoid.lift(value, time, id))
    return state


def same(monoid: Monoid, a: Any, b: Any, events: Sequence[tuple[int, str, Any]]) -> bool:
    """Whether two states over these events are equal under the equality rule."""
    match monoid:
        case Sketch():
            return bool(_seen(monoid, a) == _seen(monoid, b))
        case Total(Float()):
            return near(_finite(a), _finite(b), size(value for _, _, value in known(events)))
        case Moments():
            return _same_moments(monoid, a, b, known(events))
        case Decayed() if a is not None and b is not None:
            total = aggregate("decayed_sum", monoid.input, half_life=monoid.half_life)
            return total.close(total.finish([a], 10**7), total.finish([b], 10**7), known(events))
    return bool(a == b)


def _same_moments(monoid: Moments, a: Any, b: Any, events: Sequence[Event]) -> bool:
    spread = aggregate("stddev", monoid.input)
    floats = [float(value) for _, _, value in events]
    means = near(_finite(a[1]), _finite(b[1]), size(floats) / max(1, len(floats)))
    wide = math.isinf(size(value * value for value in floats))
    return a[0] == b[0] and (wide or means) and spread.close(spread.finish([a], 0), spread.finish([b], 0), events)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _seen(monoid: Sketch, state: Any) -> Any:
    """All a small sketch can tell: with so few values every one of them is exact."""
    if state is None:
        return None
    sketch = monoid.read(state)
    match monoid:
        case Distinct():
            return round(sketch.get_estimate())
        case Quantiles():
            return (sketch.values.tolist(), sketch.weights.tolist())
    import datasketches

    return sorted(sketch.get_frequent_items(datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES, 0))
