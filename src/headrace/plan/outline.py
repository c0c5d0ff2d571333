"""The outline of a plan: every definition by kind and name, with a digest of what it says.

Two outlines tell what was added, changed and removed between them. A running process leaves its outline behind, so that
an edit of the definitions shows (`supervisor.plan_record`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.plan.explain import as_json
from headrace.plan.fingerprint import fingerprint
from headrace.plan.model import Plan

Outline = Mapping[str, Mapping[str, str]]
"""By kind and name, a digest."""


@dataclass(frozen=True, order=True)
class DefinitionChange:
    """What became of one definition: `change` is added, changed or removed.

    >>> str(DefinitionChange("view", "cards", "changed"))
    'view cards changed'
    """

    kind: str
    name: str
    change: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.change}"


def outline(plan: Plan) -> Outline:
    """Every definition of a plan.

    >>> import headrace as hr
    >>> from headrace.plan.build import build
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
    >>> {kind: list(found) for kind, found in outline(build([users])).items() if found}
    {'stream': ['clicks'], 'view': ['users'], 'tile set': ['clicks.by_user']}
    """
    said = as_json(plan)
    views = {planned.view.name: planned.view for planned in plan.features}
    forms: dict[str, dict[str, object]] = {
        "stream": {each.stream.name: [each.form, each.stream.key] for each in plan.admissions},
        "view": {name: [plan.versions[name], view.by, view.max_staleness] for name, view in views.items()},
        "dimension": {each["dimension"]: each for each in said["dimensions"]},
        "on-demand feature": {each["name"]: each for each in said["on_demand"]},
        "feature set": {each["name"]: each for each in said["feature_sets"]},
        "model": {each["name"]: each for each in said["models"]},
        "label": {each["name"]: each for each in said["labels"]},
        "tile set": {each.id: [each.fingerprint, each.retention] for each in plan.tile_sets},
    }
    return {kind: {name: fingerprint(form) for name, form in found.items()} for kind, found in forms.items()}


def difference(before: Outline, after: Outline) -> list[DefinitionChange]:
    """What was added, changed and removed from one outline to another, kind by kind.

    >>> difference({"view": {"a": "1", "b": "1"}}, {"view": {"b": "2", "c": "1"}})  # doctest: +NORMALIZE_WHITESPACE
    [DefinitionChange(kind='view', name='a', change='removed'),
     DefinitionChange(kind='view', name='b', change='changed'),
     DefinitionChange(kind='view', name='c', change='added')]
    """
    found = []
    for kind in dict.fromkeys([*after, *before]):
        old, new = before.get(kind, {}), after.get(kind, {})
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                change = "added" if name not in old else "removed" if name not in new else "changed"
                found.append(DefinitionChange(kind, name, change))
    return found
