"""A view: features of one key, measured over one stream.

Here measures meet the stream's types. What comes out is closed: every term is an aggregate, the expression it eats
(filters folded in: null means "does not count") and a window, and nothing else is needed to compute it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from headrace.aggregate import Aggregate, aggregate
from headrace.clock import duration, show_duration
from headrace.define.measure import Measure, Ratio
from headrace.define.name import NamedValue, name_of, text_of, texts_of
from headrace.define.stream import Stream
from headrace.define.window import Window
from headrace.errors import DefinitionError, did_you_mean, shown, user_location
from headrace.expression import Expression, both, literal, underlined, when
from headrace.public_calls import check_call
from headrace.types.field_types import Boolean, Decimal, Float, Integer, String, Type

if TYPE_CHECKING:
    from headrace.define.dimension import Dimension

MOST_FEATURES = 1_000


@dataclass(frozen=True)
class Term:
    """One aggregate over one window, closed over the stream's own fields."""

    aggregate: Aggregate
    value: Expression
    window: Window
    written: str = field(default="", compare=False)


@dataclass(frozen=True)
class Feature:
    """A named value: one term, or the ratio of two."""

    name: str
    terms: tuple[Term, ...]
    description: str | None = None

    @cached_property
    def type(self) -> Type:
        """The type of the feature's value."""
        return self.terms[0].aggregate.type if len(self.terms) == 1 else Float()

    @property
    def nullable(self) -> bool:
        """Whether the value can be null, which it is when there is nothing to measure."""
        return self.terms[0].aggregate.nullable if len(self.terms) == 1 else True

    def combine(self, values: Sequence[Any]) -> Any:
        """The feature's value from its terms' values."""
        if len(values) == 1:
            return values[0]
        above, below = values
        return None if above is None or not below else float(above) / float(below)

    @property
    def summary(self) -> str:
        """The feature in one line."""
        return " / ".join(f"{term.written} over {term.window}" for term in self.terms)


@dataclass(frozen=True, repr=False)
class View(NamedValue):
    """Features of one key. Made by `hr.view`."""

    name: str
    stream: Stream
    by: tuple[str, ...]
    features: tuple[Feature, ...]
    owner: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    max_staleness: int | None = None
    location: str | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> tuple[tuple[str, Expression], ...]:
        """The key's columns over the stream's own fields."""
        return tuple((name, self.stream.column(name)) for name in self.by)

    @property
    def key_types(self) -> tuple[tuple[str, Type], ...]:
        """The columns of the key with their types."""
        return tuple((name, column.type) for name, column in self.key)

    def feature(self, name: str) -> Feature:
        """One feature by its name."""
        return named(self.features, name, f"View {self.name!r}")

    @check_call
    def only(self, *names: str) -> Selection:
        """Some of the features, for a feature set.

        >>> import headrace as hr
        >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
        >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h"), "m": hr.count(over="1d")})
        >>> users.only("m").names
        ('m',)
        """
        return Selection(self, tuple(self.feature(name).name for name in names))


class NamedDefinition(Protocol):
    """What has a name."""

    @property
    def name(self) -> str: ...


_Named = TypeVar("_Named", bound=NamedDefinition)


def named(features: Sequence[_Named], name: str, whose: str) -> _Named:
    """One of some features by its name; one that is not among them is refused."""
    for feature in features:
        if feature.name == name:
            return feature
    hint = did_you_mean(name, [feature.name for feature in features])
    raise DefinitionError("not-found", f"{whose} has no such feature.", got=shown(name), hint=hint)


@dataclass(frozen=True)
class Selection:
    """Some features of a view or a dimension, in the order named."""

    view: View | Dimension
    names: tuple[str, ...]


@check_call
def view(
    name: str,
    source: Stream,
    *,
    by: str | Sequence[str],
    features: Mapping[str, Measure | Ratio],
    owner: str | None = None,
    description: str | None = None,
    tags: Sequence[str] = (),
    max_staleness: Any = None,
) -> View:
    """Declare features of a key over a stream.

    Parameters
    ----------
    name
        The view's name, by which its features are read.
    source
        A stream, perhaps with `where` and `with_columns`.
    by
        The key: one column, several, or `()` for one value over everything.
    features
        Names to measures.
    owner, description, tags
        For people who search.
    max_staleness
        How old the newest known record may be before answers are flagged as stale.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
    >>> users.features[0].summary
    'count over trailing(1h) by 1m'
    """
    name_of(name, "a view")
    given: Any = source
    if not isinstance(given, Stream):
        several = isinstance(given, list | tuple) and any(isinstance(each, Stream) for each in given)
        hint = "Make one with hr.stream(...)."
        if several:
            hint = "Make a view for each stream; a feature set brings them together."
        message = f"View {name!r} reads one stream." if several else f"View {name!r} needs a stream."
        raise DefinitionError("bad-argument", message, got=shown(source), hint=hint)
    if not isinstance(features, Mapping) or not 0 < len(features) <= MOST_FEATURES:
        hint = f'Give 1 to {MOST_FEATURES:,} features, as {{"clicks_1h": hr.count(over="1h")}}.'
        message = f"The features of view {name!r} must be a dict of measures."
        raise DefinitionError("bad-argument", message, got=shown(features), hint=hint)
    return View(
        name=name,
        stream=source,
        by=_key(name, source, by),
        features=tuple(_bind(source, feature, measure) for feature, measure in features.items()),
        owner=text_of(owner, "An owner"),
        description=text_of(description, "A description"),
        tags=texts_of(tags, "Tags"),
        max_staleness=None if max_staleness is None else duration(max_staleness, "the staleness"),
        location=user_location(),
    )


def _key(view: str, source: Stream, by: Any) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, list | tuple) else None
    if names is None:
        hint = 'As by="card", by=("card", "country"), or by=() for one value over everything.'
        raise DefinitionError("bad-argument", f"The key of view {view!r} is not a column.", got=shown(by), hint=hint)
    for name in names:
        column = source.column(name)
        if not isinstance(column.type, String | Integer | Boolean):
            message = f"View {view!r} cannot be kept by a column of type {column.type}."
            hint = "A key is a string, an integer or a boolean."
            raise DefinitionError("wrong-type", message, got=shown(name), hint=hint)
        if column.nullable:
            hint = f"Declare {name!r} always there, or say whose it is with coalesce({name}, ...) in with_columns."
            message = f"The key of view {view!r} may be null, so some events would belong to nobody."
            raise DefinitionError("missing-key", message, got=shown(name), hint=hint)
    if len(set(names)) < len(names):
        raise DefinitionError("duplicate-name", f"The key of view {view!r} names a column twice.", got=shown(by))
    return names


def _bind(source: Stream, name: Any, measure: Any) -> Feature:
    name_of(name, "a feature")
    match measure:
        case Measure():
            written: tuple[Measure, ...] = (measure,)
        case Ratio():
            written = (measure.numerator, measure.denominator)
        case _:
            hint = 'Use a measure such as hr.count(over="10m").'
            message = f"Feature {name!r} is not a measure."
            raise DefinitionError("bad-argument", message, got=shown(measure), hint=hint)
    try:
        terms = tuple(_term(source, part) for part in written)
        if len(terms) == 2:
            _refuse_unless_numbers(terms)
    except DefinitionError as error:
        raise error.inside(f"feature {name!r}", measure.location) from None
    return Feature(name, terms, measure.description)


def _term(source: Stream, measure: Measure) -> Term:
    eaten = literal(True) if measure.input is None else source.expression(measure.input)
    condition = source.filter
    if measure.where is not None:
        wanted = source.expression(measure.where)
        if not isinstance(wanted.type, Boolean):
            hint = 'Write a comparison, as "amount > 0".'
            message, marked = f"A feature's condition is of type {wanted.type}, not boolean.", underlined(measure.where)
            raise DefinitionError("wrong-type", message, got=shown(measure.where), hint=hint, excerpt=marked)
        condition = both(condition, wanted)
    kind = None if measure.input is None else eaten.type
    try:
        asked = aggregate(measure.aggregate, kind, **dict(measure.parameters))
    except DefinitionError as error:
        if error.code == "wrong-type" and measure.input is not None:
            error.excerpt = underlined(measure.input)
        raise
    half_life = dict(measure.parameters).get("half_life")
    if half_life is not None and measure.window.resolution > half_life:
        hint = f"Give the window a resolution of at most {show_duration(half_life)}."
        message = "A decayed sum's resolution exceeds its half-life."
        raise DefinitionError("bad-resolution", message, got=str(measure.window), hint=hint)
    return Term(
        asked,
        eaten if condition is None else when(condition, eaten),
        measure.window,
        _written(measure, asked, eaten, condition),
    )


def _written(measure: Measure, asked: Aggregate, eaten: Expression, condition: Expression | None) -> str:
    """The term as people read it: `sum of amount where amount > 0`."""
    subject = "" if measure.input is None else f" of {eaten.text}"
    return f"{asked}{subject}" + ("" if condition is None else f" where {condition.text}")


def _refuse_unless_numbers(terms: tuple[Term, ...]) -> None:
    for term in terms:
        if not isinstance(term.aggregate.type, Integer | Float | Decimal):
            message = "A ratio needs two numbers."
            raise DefinitionError("wrong-type", message, got=f"{term.aggregate} is of type {term.aggregate.type}")
