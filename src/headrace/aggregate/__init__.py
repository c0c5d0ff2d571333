"""The monoids, and the aggregates that end in feature values.

Two levels. A `Monoid` is one partial column of a tile: empty, lift, merge, and its Spark SQL text. An `Aggregate` is
what a feature asks for: the monoids it needs, how their merged states finish in a value, and the value by definition.
One file per family holds both side by side.
"""

from headrace.aggregate.aggregate import Aggregate, Event, aggregate
from headrace.aggregate.catalog import AGGREGATES
from headrace.aggregate.count import Count
from headrace.aggregate.decayed import Decayed
from headrace.aggregate.distinct import Distinct
from headrace.aggregate.events import EventList
from headrace.aggregate.extreme import Greatest, Least
from headrace.aggregate.frequent import Frequent
from headrace.aggregate.moments import Moments
from headrace.aggregate.monoid import EventSql, Monoid, State
from headrace.aggregate.order import Earliest, Latest, LatestN
from headrace.aggregate.quantiles import Quantiles
from headrace.aggregate.span import TimeSpan
from headrace.aggregate.total import Total

__all__ = [
    "AGGREGATES",
    "Aggregate",
    "Count",
    "Decayed",
    "Distinct",
    "Earliest",
    "Event",
    "EventList",
    "EventSql",
    "Frequent",
    "Greatest",
    "Latest",
    "LatestN",
    "Least",
    "Moments",
    "Monoid",
    "Quantiles",
    "State",
    "TimeSpan",
    "Total",
    "aggregate",
]
