"""The features behind names: what is read for a training set, and what each column is called.

Of a view only the features that are needed are read: those that are asked for, and those that on-demand functions take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from headrace.define.dimension import Attribute, Dimension, Keyed
from headrace.define.feature_set import FeatureSet
from headrace.define.on_demand import OnDemand
from headrace.define.stream import Stream
from headrace.define.view import Feature, Selection, View
from headrace.errors import DataError, ProjectError, UsageError, did_you_mean, shown
from headrace.plan.model import Plan
from headrace.read.catalog import find, readables
from headrace.types.field_types import Type

Picked = tuple[Keyed, Feature | Attribute] | OnDemand


@dataclass(frozen=True)
class FeatureColumns:
    """What a training set is asked for.

    Parameters
    ----------
    name
        The names as they were given, joined by a plus sign.
    views
        Every view that is read, with the features that are needed of it.
    feature_set
        All columns in their order; None when one whole view or dimension is asked for.
    dimensions
        Every dimension that is read.
    """

    name: str
    views: tuple[View, ...]
    feature_set: FeatureSet | None = None
    dimensions: tuple[Dimension, ...] = ()

    @property
    def keyed(self) -> tuple[Keyed, ...]:
        """Everything that is read by a key."""
        return (*self.views, *self.dimensions)

    @cached_property
    def columns(self) -> Mapping[tuple[str, str], str]:
        """What the column of each (view, feature) is called while the set is made: plain where that is unique.

        Dimensions have their columns here as views do.
        """
        pairs = [(each.name, feature.name) for each in self.keyed for feature in each.features]
        found = Counter([*(name.lower() for _, name in pairs), *(made.name.lower() for made in self.on_demands)])
        return {(view, name): name if found[name.lower()] == 1 else f"{view}.{name}" for view, name in pairs}

    @property
    def on_demands(self) -> tuple[OnDemand, ...]:
        """Every on-demand feature that is computed, each after the ones it needs."""
        return () if self.feature_set is None else self.feature_set.on_demands

    @cached_property
    def picked(self) -> Mapping[str, str]:
        """The columns of the result by their names, in order, each with what it is called while the set is made."""
        if self.feature_set is None:
            return {name: column for (_, name), column in self.columns.items()}
        found = zip(self.feature_set.columns, self.feature_set.picked, strict=True)
        return {
            name: made.name if isinstance(made, OnDemand) else self.columns[made[0].name, made[1].name]
            for name, made in found
        }

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams whose history is read, each once."""
        found = {view.stream.name: view.stream.base for view in self.views}
        return tuple(found.values())

    @cached_property
    def key_types(self) -> Mapping[str, Type]:
        """The type of each key column; one column with two types is refused."""
        found: dict[str, tuple[Keyed, Type]] = {}
        for each in self.keyed:
            for name, kind in each.key_types:
                other, known = found.setdefault(name, (each, kind))
                if known != kind:
                    message = f"The key column {name!r} has two types."
                    got = f"{known} in {other.name}, {kind} in {each.name}"
                    raise DataError("bad-spine", message, got=got, hint="Make a training set of each.")
        return {name: kind for name, (_, kind) in found.items()}


def resolve_features(plan: Plan, names: Sequence[str]) -> FeatureColumns:
    """What names stand for: a view, a feature set, or several of them; the only one there is when none is named.

    Examples
    --------
    >>> import headrace as hr
    >>> from headrace.plan.build import build
    >>> clicks = hr.stream("clicks", fields={"user": str, "shop": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h"), "m": hr.count(over="1d")})
    >>> shops = hr.view("shops", clicks, by="shop", features={"n": hr.count(over="1h")})
    >>> @hr.on_demand(users, request={"limit": int})
    ... def over(m, limit) -> bool:
    ...     return m > limit
    >>> found = resolve_features(build([users, hr.feature_set("habits", [shops, over])]), ["habits"])
    >>> dict(found.columns), dict(found.picked)
    ({('shops', 'n'): 'n', ('users', 'm'): 'm'}, {'n': 'n', 'over': 'over'})
    """
    known = readables(plan)
    wanted = [find(known, name) for name in dict.fromkeys(names or _only(plan, known))]
    if len(wanted) == 1 and wanted[0].feature_set is None:
        return _resolve_one(wanted[0].name, wanted[0].views)
    chosen: dict[str, Picked] = {}
    for each in wanted:
        for made in _picked(each.feature_set, each.views):
            name = _name(made)
            other = chosen.setdefault(name, made)
            if _full(other) != _full(made):
                message = f"Two of the features are called {name!r}."
                hint = "Choose with view.only(...) in a feature set, or ask for one of them."
                raise DataError("duplicate-name", message, got=f"{_full(other)} and {_full(made)}", hint=hint)
    members = tuple(
        made if isinstance(made, OnDemand) else Selection(made[0], (_name(made),)) for made in chosen.values()
    )
    whole = FeatureSet("+".join(each.name for each in wanted), members)
    return _resolve_one(whole.name, _needed(whole), whole)


def _resolve_one(name: str, read: Sequence[Keyed], whole: FeatureSet | None = None) -> FeatureColumns:
    views = tuple(each for each in read if isinstance(each, View))
    return FeatureColumns(name, views, whole, tuple(each for each in read if isinstance(each, Dimension)))


def _only(plan: Plan, known: Iterable[str]) -> list[str]:
    sets = [each.name for each in plan.feature_sets]
    views = list(dict.fromkeys(planned.view.name for planned in plan.features))
    for found in (sets, views):
        if len(found) == 1:
            return found
        if found:
            break
    hint = did_you_mean("", known)
    raise UsageError("bad-usage", "It is not said which features are wanted, and there are several.", hint=hint)


def _picked(feature_set: FeatureSet | None, read: Sequence[Keyed]) -> list[Picked]:
    if feature_set is not None:
        return list(feature_set.picked)
    return [(each, feature) for each in read for feature in each.features]


def _name(made: Picked) -> str:
    return made.name if isinstance(made, OnDemand) else made[1].name


def _full(made: Picked) -> str:
    return made.name if isinstance(made, OnDemand) else f"{made[0].name}.{made[1].name}"


def _needed(whole: FeatureSet) -> tuple[Keyed, ...]:
    """The views with the features that are needed of each; a view of which none is needed is not read.

    A dimension's table is read as a whole in any case.
    """
    wanted: dict[str, set[str]] = {each.name: set() for each in whole.keyed}
    for made in whole.picked:
        if not isinstance(made, OnDemand):
            wanted[made[0].name].add(made[1].name)
    for each in whole.on_demands:
        for source in each.sources:
            if not isinstance(source, OnDemand):
                wanted[source.name].update(each.parameters)
    narrowed = [
        replace(view, features=tuple(each for each in view.features if each.name in wanted[view.name]))
        for view in whole.views
    ]
    return (*(view for view in narrowed if view.features), *whole.dimensions)


def refuse_clashes(asked: FeatureColumns, columns: Sequence[str], made: Sequence[str]) -> None:
    """Refuse columns of a spine that a feature, or what is made for the result, would have the name of.

    Spark does not tell upper from lower case in names, so neither is done here.
    """
    own: dict[str, str] = {}
    for name in columns:
        if "`" in name:
            raise DataError("bad-spine", "A column's name has a backtick.", got=shown(name), hint="Rename it.")
        if own.setdefault(name.lower(), name) != name or list(columns).count(name) > 1:
            message = "Two columns of the spine have one name."
            raise DataError("bad-spine", message, got=shown([own[name.lower()], name]), hint="Rename one of them.")
    taken = {column: f"{view}.{feature}" for (view, feature), column in asked.columns.items()}
    taken |= {each.name: f"the on-demand feature {each.name}" for each in asked.on_demands}
    taken |= {name: column for name, column in asked.picked.items() if name != column}
    taken |= {name: f"the column {name!r} that is made" for name in made}
    for name, what in taken.items():
        if name.lower() in own:
            message = "A column of the spine has the name of another that the training set gets."
            hint = "Rename the spine's column."
            raise DataError("duplicate-name", message, got=f"{own[name.lower()]!r}, and {what}", hint=hint)
    both = [name for name in made if name in asked.picked]
    if both:
        message = f"A feature is called {both[0]!r}, and so is a column that is made."
        raise ProjectError("duplicate-name", message, hint="Rename the feature.")
