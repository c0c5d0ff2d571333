"""Every aggregate by the name users write; the one list of what Headrace can measure."""

from __future__ import annotations

from headrace.aggregate.aggregate import Aggregate
from headrace.aggregate.count import CountOf
from headrace.aggregate.decayed import DecayedSum
from headrace.aggregate.distinct import CountDistinct
from headrace.aggregate.extreme import Max, Min
from headrace.aggregate.frequent import TopK
from headrace.aggregate.moments import Stddev, Variance
from headrace.aggregate.order import First, Last, LastN
from headrace.aggregate.quantiles import Quantile
from headrace.aggregate.span import TimeSinceFirst, TimeSinceLast
from headrace.aggregate.total import Mean, Sum

_ALL: tuple[type[Aggregate], ...] = (
    CountOf,
    Sum,
    Mean,
    Min,
    Max,
    Variance,
    Stddev,
    First,
    Last,
    LastN,
    CountDistinct,
    Quantile,
    TopK,
    DecayedSum,
    TimeSinceLast,
    TimeSinceFirst,
)

AGGREGATES: dict[str, type[Aggregate]] = {made.name: made for made in _ALL}
