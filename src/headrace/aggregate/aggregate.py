"""What a feature asks for: `aggregate("mean", Float())` knows the monoids it needs and how their states become a value.

`exact` is the meaning: the value straight from the raw events, with no monoid in sight. The reference interpreter uses
it, and everything else is held to it by `close`. The aggregates themselves stand beside their monoids, one file per
family; windows, filters and where the states come from are not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.aggregate.monoid import Monoid, State, form_of_fields
from headrace.aggregate.scalar import SCALARS
from headrace.errors import DefinitionError, did_you_mean, shown
from headrace.types.field_types import Boolean, Type

if TYPE_CHECKING:
    from headrace.aggregate.columns import Array, Column, RowRanges, Values

# Event time in microseconds, event id, value (never null).
Event = tuple[int, str, Any]


@dataclass(frozen=True)
class Aggregate:
    """What a feature asks for. Made by `aggregate`.

    With no input it eats the event itself: whoever feeds the monoids hands them `TRUE` for every event that counts.
    """

    input: Type | None

    name: ClassVar[str]
    accepts: ClassVar[tuple[type[Type], ...]] = SCALARS
    needs_input: ClassVar[bool] = True
    nullable: ClassVar[bool] = True
    is_rounded: ClassVar[bool] = False
    """Whether its last digits depend on the order in which floats are added up."""
    is_ordered: ClassVar[bool] = False
    """Whether it matters which of two events of one time comes first, so that event ids are needed."""

    def __post_init__(self) -> None:
        if isinstance(self.input, self.accepts) or (self.input is None and not self.needs_input):
            return
        hint = f"{self.name} takes {_listed([kind.name for kind in self.accepts])}."
        if self.input is None:
            raise DefinitionError("bad-argument", f"{self.name} needs a field.", hint=hint)
        message = f"{self.name} cannot take a field of type {self.input}."
        raise DefinitionError("wrong-type", message, got=str(self.input), hint=hint)

    @property
    def form(self) -> dict[str, Any]:
        """Name, input type and parameters as JSON."""
        form = {"aggregate": self.name, **form_of_fields(self)}
        return form if self.input is not None else {key: item for key, item in form.items() if key != "input"}

    @property
    def fed(self) -> Type:
        """The type of what the monoids are fed: the input's, or boolean for the event itself."""
        return Boolean() if self.input is None else self.input

    @property
    def monoids(self) -> tuple[Monoid, ...]:
        """The partial columns it needs; equal ones of other aggregates over the same values are the same column."""
        raise NotImplementedError

    @property
    def type(self) -> Type:
        """The type of the value."""
        raise NotImplementedError

    @property
    def error(self) -> str | None:
        """The declared error in words; None when the value is exact, or a float rounded as floats are."""
        return None

    def finish(self, states: Sequence[State], t: int) -> Any:
        """The value at `t`, from one merged state per monoid."""
        raise NotImplementedError

    def exact(self, events: Sequence[Event], t: int) -> Any:
        """The value at `t`, by definition, from the events whose value is not null."""
        raise NotImplementedError

    def compute_values(self, column: Column, picked: RowRanges, t: Array) -> Values:
        """The value by definition of many rows at once, each over its places in a column and at its moment t."""
        raise NotImplementedError

    def close(self, a: Any, b: Any, events: Sequence[Event]) -> bool:
        """Whether two values over these events are equal: exactly, or within the declared error."""
        del events
        return bool(a == b)

    def __str__(self) -> str:
        written = ", ".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self) if f.name != "input")
        return f"{self.name}({written})" if written else self.name


def aggregate(name: str, input: Type | None = None, **params: Any) -> Aggregate:
    """The aggregate of that name over a field of that type.

    With nothing to aggregate `count`, `count_distinct`, `sum` and `decayed_sum` give 0 and all others null. A sum out
    of its type's range is null.

    Parameters
    ----------
    name
        count, sum, mean, min, max, variance, stddev, first, last, last_n, count_distinct, quantile, top_k,
        decayed_sum, time_since_last or time_since_first.
    input
        The type of what is aggregated. None is the event itself, for count, time_since_last and time_since_first.
    params
        `n` for last_n, `q` for quantile, `k` for top_k, `half_life` in microseconds for decayed_sum.

    Examples
    --------
    >>> from headrace.types.field_types import Float
    >>> mean = aggregate("mean", Float())
    >>> [monoid.kind for monoid in mean.monoids]
    ['total', 'count']
    >>> mean.finish([3.0, 2], t=0), mean.exact([(0, "a", 1.0), (0, "b", 2.0)], t=0)
    (1.5, 1.5)
    """
    # The families are built on the class above, so they can only be looked up from inside.
    from headrace.aggregate.catalog import AGGREGATES

    made = AGGREGATES.get(name)
    if made is None:
        raise DefinitionError(
            "bad-argument", "There is no such aggregate.", got=shown(name), hint=did_you_mean(name, AGGREGATES)
        )
    wanted = [field.name for field in fields(made) if field.name != "input"]
    if sorted(params) != sorted(wanted):
        hint = f"{name} takes {_listed(wanted)}." if wanted else f"{name} takes a field and nothing else."
        got = ", ".join(sorted(params)) or "none"
        raise DefinitionError("bad-argument", f"The parameters of {name} do not fit.", got=got, hint=hint)
    return made(input, **params)


def refuse_unless_between(value: Any, what: str, least: int, most: int) -> None:
    """Raise unless `value` is a whole number in the given bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        message = f"{what} must be a whole number from {least} to {most:,}."
        raise DefinitionError("bad-argument", message, got=shown(value))


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
