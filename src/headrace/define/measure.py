"""What a feature measures: the words `hr.count`, `hr.sum`, `hr.quantile` and the rest.

A measure is only what was written. It meets the stream's types when a view takes it in (`define.view`), so a mistake
in it is reported with the line the measure stands on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.clock import duration
from headrace.define.name import text_of
from headrace.define.over import window_of
from headrace.define.window import Window
from headrace.errors import DefinitionError, shown, user_location
from headrace.public_calls import check_call


@dataclass(frozen=True)
class Measure:
    """One aggregate over one window, as written."""

    aggregate: str
    input: str | None
    window: Window
    where: str | None = None
    parameters: tuple[tuple[str, Any], ...] = ()
    description: str | None = None
    location: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Ratio:
    """One measure divided by another, as written."""

    numerator: Measure
    denominator: Measure
    description: str | None = None
    location: str | None = field(default=None, compare=False, repr=False)


def _measure(aggregate: str, input: Any, over: Any, where: Any, description: Any, **parameters: Any) -> Measure:
    for value, what in ((input, f"hr.{aggregate}"), (where, "`where`")):
        if value is not None and not isinstance(value, str):
            hint = 'Name a field or write an SQL expression, as "amount" or "amount * 2".'
            raise DefinitionError("bad-argument", f"{what} takes text.", got=shown(value), hint=hint)
    about = text_of(description, "A description")
    pairs = tuple(sorted(parameters.items()))
    return Measure(aggregate, input, window_of(over), where, pairs, about, user_location())


@check_call
def count(field: str | None = None, *, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """How many events; with a field, how many in which it is not null.

    Examples
    --------
    >>> import headrace as hr
    >>> hr.count(over="10m").window
    Trailing(resolution=10000000, size=600000000)
    """
    return _measure("count", field, over, where, description)


@check_call
def sum(field: str, *, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """The sum of a number; 0 when there is none.

    >>> sum("amount", over="1h").aggregate
    'sum'
    """
    return _measure("sum", field, over, where, description)


@check_call
def mean(field: str, *, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """The arithmetic mean, as a float.

    >>> mean("amount", over="1h").aggregate
    'mean'
    """
    return _measure("mean", field, over, where, description)


@check_call
def min(field: str, *, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """The least value.

    >>> min("amount", over="1h").aggregate
    'min'
    """
    return _measure("min", field, over, where, description)


@check_call
def max(field: str, *, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """The greatest value.

    >>> max("amount", over="1h").aggregate
    'max'
    """
    return _measure("max", field, over, where, description)


@check_call
def variance(field: str, *, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """The sample variance; null with fewer than two values.

    >>> variance("amount", over="1h").aggregate
    'variance'
    """
    return _measure("variance", field, over, where, description)


@check_call
def stddev(field: str, *, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """The sample standard deviation; null with fewer than two values.

    >>> stddev("amount", over="1h").aggregate
    'stddev'
    """
    return _measure("stddev", field, over, where, description)


@check_call
def first(field: str, *, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """The value of the earliest event, by (event time, event id).

    >>> first("country", over="1d").aggregate
    'first'
    """
    return _measure("first", field, over, where, description)


@check_call
def last(field: str, *, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """The value of the latest event, by (event time, event id).

    >>> last("country", over="1d").aggregate
    'last'
    """
    return _measure("last", field, over, where, description)


@check_call
def last_n(field: str, *, n: int, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """The values of the latest n events, newest first.

    >>> last_n("country", n=3, over="1d").parameters
    (('n', 3),)
    """
    return _measure("last_n", field, over, where, description, n=n)


@check_call
def count_distinct(field: str, *, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """How many different values, within the declared error of a HyperLogLog sketch.

    >>> count_distinct("country", over="1d").aggregate
    'count_distinct'
    """
    return _measure("count_distinct", field, over, where, description)


@check_call
def quantile(field: str, *, q: float, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """The value at rank q, within the declared error of a KLL sketch.

    >>> quantile("amount", q=0.5, over="7d").parameters
    (('q', 0.5),)
    """
    return _measure("quantile", field, over, where, description, q=q)


@check_call
def top_k(field: str, *, k: int, over: Any, where: str | None = None, description: str | None = None) -> Measure:
    """The k most frequent texts with their counts, within the declared error of a frequent-items sketch.

    >>> top_k("country", k=3, over="1d").parameters
    (('k', 3),)
    """
    return _measure("top_k", field, over, where, description, k=k)


@check_call
def decayed_sum(
    field: str, *, half_life: Any, over: Any, where: str | None = None, description: str | None = None
) -> Measure:
    """A sum in which an event counts half as much after every half-life.

    >>> decayed_sum("amount", half_life="1h", over="1d").parameters
    (('half_life', 3600000000),)
    """
    life = duration(half_life, "a half-life")
    return _measure("decayed_sum", field, over, where, description, half_life=life)


@check_call
def time_since_last(
    field: str | None = None, *, over: Any, where: str | None = None, description: str | None = None
) -> Measure:
    """Seconds from the latest event to now; 0 when that event is dated ahead, which the clock skew allows.

    >>> time_since_last(over="1d").aggregate
    'time_since_last'
    """
    return _measure("time_since_last", field, over, where, description)


@check_call
def time_since_first(
    field: str | None = None, *, over: Any, where: str | None = None, description: str | None = None
) -> Measure:
    """Seconds from the earliest event to now; 0 when that event is dated ahead, which the clock skew allows.

    >>> time_since_first(over="1d").aggregate
    'time_since_first'
    """
    return _measure("time_since_first", field, over, where, description)


@check_call
def ratio(numerator: Measure, denominator: Measure, *, description: str | None = None) -> Ratio:
    """One numeric measure divided by another; null when the second is 0 or null.

    Examples
    --------
    >>> import headrace as hr
    >>> share = hr.ratio(hr.count(over="1h", where="declined"), hr.count(over="1h"))
    >>> share.numerator.where
    'declined'
    """
    given: tuple[Any, ...] = (numerator, denominator)
    for measure in given:
        if not isinstance(measure, Measure):
            hint = 'As in hr.ratio(hr.count(over="1h", where="declined"), hr.count(over="1h")).'
            raise DefinitionError("bad-argument", "hr.ratio takes two measures.", got=shown(measure), hint=hint)
    return Ratio(numerator, denominator, text_of(description, "A description"), user_location())
