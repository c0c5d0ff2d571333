"""A feature set: what a model, a training set or one read call names, in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from headrace.define.dimension import Attribute, Dimension, Keyed
from headrace.define.name import NamedValue, name_of, text_of, texts_of
from headrace.define.on_demand import OnDemand, returned
from headrace.define.view import Feature, Selection, View
from headrace.errors import DefinitionError, shown, user_location
from headrace.public_calls import check_call
from headrace.types.field_types import Boolean, Float, Integer, String, Type

Stored = Mapping[str, Mapping[str, Any]]
Call = Callable[[OnDemand, Mapping[str, Any]], Any]
_RETURNED: dict[type, Type] = {bool: Boolean(), int: Integer(), float: Float(), str: String()}


@dataclass(frozen=True, repr=False)
class FeatureSet(NamedValue):
    """Features of several views, dimensions and on-demand functions. Made by `hr.feature_set`."""

    name: str
    members: tuple[View | Dimension | Selection | OnDemand, ...]
    owner: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    location: str | None = field(default=None, compare=False, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the values, in order."""
        return tuple(name for member in self.members for name in _names(member))

    @property
    def types(self) -> tuple[tuple[str, Type], ...]:
        """The values with their types, in order; an on-demand function that does not say its own is refused."""
        return tuple(_typed(each) for each in self.picked)

    @property
    def keyed(self) -> tuple[Keyed, ...]:
        """Every view and dimension that must be read, those behind on-demand features included."""
        found: dict[str, Keyed] = {}
        for member in self.members:
            for each in _keyed(member):
                found.setdefault(each.name, each)
        return tuple(found.values())

    @property
    def views(self) -> tuple[View, ...]:
        """The views among them."""
        return tuple(each for each in self.keyed if isinstance(each, View))

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions among them."""
        return tuple(each for each in self.keyed if isinstance(each, Dimension))

    @cached_property
    def on_demands(self) -> tuple[OnDemand, ...]:
        """Every on-demand feature that must be computed, each after the ones it needs."""
        found: dict[str, OnDemand] = {}
        for member in self.members:
            if isinstance(member, OnDemand):
                for needed in _chain(member):
                    found.setdefault(needed.name, needed)
        return tuple(found.values())

    def computed(self, stored: Stored, call: Call) -> dict[str, Any]:
        """Every on-demand feature by name, each from what its own sources have, so that two views may share a name.

        Parameters
        ----------
        stored
            The values of each view and dimension, by its name.
        call
            Calls an on-demand feature with the values of its sources.
        """
        found: dict[str, Any] = {}
        for made in self.on_demands:
            values: dict[str, Any] = {}
            for source in made.sources:
                values |= {source.name: found[source.name]} if isinstance(source, OnDemand) else stored[source.name]
            found[made.name] = call(made, values)
        return found

    @cached_property
    def picked(self) -> tuple[tuple[Keyed, Feature | Attribute] | OnDemand, ...]:
        """What the values are of, in their order: features of views and dimensions, and on-demand features."""
        found: list[tuple[Keyed, Feature | Attribute] | OnDemand] = []
        for member in self.members:
            if isinstance(member, OnDemand):
                found.append(member)
            else:
                view = member.view if isinstance(member, Selection) else member
                found += ((view, view.feature(name)) for name in _names(member))
        return tuple(found)


@check_call
def feature_set(
    name: str,
    members: Sequence[View | Dimension | Selection | OnDemand],
    *,
    owner: str | None = None,
    description: str | None = None,
    tags: Sequence[str] = (),
) -> FeatureSet:
    """Name a list of features.

    Parameters
    ----------
    name
        What models and training sets call it.
    members
        Views and dimensions, parts of them (`view.only("a", "b")`) and on-demand features.
    owner, description, tags
        For people who search.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
    >>> hr.feature_set("habits", [users]).columns
    ('clicks_1h',)
    """
    name_of(name, "a feature set")
    if not isinstance(members, list | tuple) or not members:
        hint = "As in hr.feature_set('fraud', [card_activity, amount_vs_median])."
        raise DefinitionError("bad-argument", "A feature set takes a list of members.", got=shown(members), hint=hint)
    for member in members:
        if not isinstance(member, View | Dimension | Selection | OnDemand):
            message = f"Feature set {name!r} has a member that is no view, dimension or on-demand feature."
            raise DefinitionError("bad-argument", message, got=shown(member))
    made = FeatureSet(
        name,
        tuple(members),
        text_of(owner, "An owner"),
        text_of(description, "A description"),
        texts_of(tags, "Tags"),
        user_location(),
    )
    doubled = {column for column in made.columns if made.columns.count(column) > 1}
    if doubled:
        hint = "Choose with view.only(...), or rename one of them."
        message = f"Feature set {name!r} has one name twice."
        raise DefinitionError("duplicate-name", message, got=shown(sorted(doubled)), hint=hint)
    _refuse_two_types(made)
    return made


def _refuse_two_types(made: FeatureSet) -> None:
    """Refuse parts whose keys have a column in common, in two types: no one value could be its."""
    found: dict[str, tuple[Keyed, Type]] = {}
    for each in made.keyed:
        for name, kind in each.key_types:
            other, known = found.setdefault(name, (each, kind))
            if known != kind:
                message = f"Feature set {made.name!r} has parts that are kept by {name!r} in two types."
                got, hint = f"{known} in {other.name!r}, {kind} in {each.name!r}", "Declare one type, or rename one."
                raise DefinitionError("wrong-type", message, got=got, hint=hint)


def _typed(picked: tuple[Keyed, Feature | Attribute] | OnDemand) -> tuple[str, Type]:
    if isinstance(picked, OnDemand):
        return picked.name, _RETURNED[returned(picked)]
    return picked[1].name, picked[1].type


def _names(member: Any) -> tuple[str, ...]:
    if isinstance(member, View | Dimension):
        return tuple(feature.name for feature in member.features)
    return member.names if isinstance(member, Selection) else (member.name,)


def _keyed(member: Any) -> tuple[Keyed, ...]:
    if isinstance(member, View | Dimension):
        return (member,)
    return (member.view,) if isinstance(member, Selection) else member.keyed


def _chain(member: OnDemand) -> Iterator[OnDemand]:
    for source in member.sources:
        if isinstance(source, OnDemand):
            yield from _chain(source)
    yield member
