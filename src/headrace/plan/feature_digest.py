"""What decides a value: a digest for every feature, so that two definitions that differ in it never look the same.

A training set and a model keep these digests of the columns they were made with; held against a plan they say whether
what is served now means what was learnt.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.define.feature_set import FeatureSet
from headrace.define.on_demand import OnDemand
from headrace.plan.fingerprint import fingerprint
from headrace.plan.model import Plan, PlannedFeature

Digests = Mapping[tuple[str, str], str]
"""By view or dimension and feature, a digest of all that decides its values."""


def digests(plan: Plan) -> Digests:
    """Every feature of a plan with a digest of all that decides its values."""
    found = {(each.view.name, each.feature.name): _feature(each) for each in plan.features}
    for planned in plan.dimensions:
        dimension = planned.dimension
        found |= {(dimension.name, each.name): planned.fingerprint for each in dimension.features}
    return found


def _feature(planned: PlannedFeature) -> str:
    key = {name: column.text for name, column in planned.view.key}
    return fingerprint({"feature": planned.fingerprint, "key": key})


def on_demand_digest(made: OnDemand, planned: Digests) -> str:
    """A digest of all that decides an on-demand feature: its function, and all that it takes."""
    taken: dict[str, str] = {}
    for source in made.sources:
        if isinstance(source, OnDemand):
            taken[source.name] = on_demand_digest(source, planned)
        else:
            wanted = [each.name for each in source.features if each.name in made.parameters]
            taken |= {f"{source.name}.{name}": planned[source.name, name] for name in wanted}
    return fingerprint({"function": made.fingerprint, "request": made.request.form, "takes": taken})


def set_digests(plan: Plan, features: FeatureSet) -> dict[str, str]:
    """The values of a feature set, in order, each with a digest of all that decides it.

    >>> import headrace as hr
    >>> from headrace.plan.build import build
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
    >>> habits = hr.feature_set("habits", [users])
    >>> [len(digest) for digest in set_digests(build([habits]), habits).values()]
    [12]
    """
    planned = digests(plan)
    return {
        (each.name if isinstance(each, OnDemand) else each[1].name): (
            on_demand_digest(each, planned) if isinstance(each, OnDemand) else planned[each[0].name, each[1].name]
        )
        for each in features.picked
    }
