"""Columns of values, from which every aggregate computes the values of many rows at once.

A row is a few ranges of a column's places (`ranges`). It is answered from what is kept of its column (`column`), with
range folds (`range_folds`) and ranks (`ranks`) instead of a walk through its places. Who fills columns is `asof`. numpy
and pyarrow are loaded with this package, so aggregates import it where they compute.
"""

from headrace.aggregate.columns.column import Column, Values, carried, finite_values, take_values
from headrace.aggregate.columns.range_folds import Array, Merge, States
from headrace.aggregate.columns.ranges import RowRanges, ragged

__all__ = [
    "Array",
    "Column",
    "Merge",
    "RowRanges",
    "States",
    "Values",
    "carried",
    "finite_values",
    "ragged",
    "take_values",
]
