"""What a model takes, as a plan has it: names, order, types, and digests of all that decides their values.

A version of a model keeps the same of what it was trained on (`models.manifest`). Where the two differ it is refused:
it would be handed something else than it has learnt.
"""

from __future__ import annotations

from headrace.define.feature_set import FeatureSet
from headrace.errors import ProjectError, did_you_mean, shown
from headrace.models.columns import ModelColumn, differences, refuse_differences
from headrace.models.manifest import Manifest
from headrace.models.registry import ModelRegistry
from headrace.models.scorer import Scorer
from headrace.plan.feature_digest import set_digests
from headrace.plan.model import Plan


def inputs_of(plan: Plan, features: FeatureSet) -> tuple[ModelColumn, ...]:
    """The columns of a feature set, in order.

    >>> import headrace as hr
    >>> from headrace.plan.build import build
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
    >>> habits = hr.feature_set("habits", [users])
    >>> [(each.name, each.type) for each in inputs_of(build([habits]), habits)]
    [('n', 'integer')]
    """
    digests = set_digests(plan, features)
    return tuple(ModelColumn(name, str(kind), digests[name]) for name, kind in features.types)


def unfit(manifest: Manifest, columns: tuple[ModelColumn, ...]) -> list[str]:
    """How what a version takes differs from what the plan has, a sentence for each difference."""
    return differences(manifest.columns, columns)


class FittingModels(ModelRegistry):
    """Models of which only versions are loaded that fit a plan."""

    def bind(self, plan: Plan) -> FittingModels:
        """Hold versions against this plan from now on."""
        self._inputs = {model.name: inputs_of(plan, model.features) for model in plan.models}
        return self

    def inputs(self, model: str) -> tuple[ModelColumn, ...]:
        """What the plan has for a model; one that it does not declare is refused."""
        if model not in self._inputs:
            hint = did_you_mean(model, self._inputs) or "Declare it with hr.model(...)."
            raise ProjectError("not-found", "The project declares no such model.", got=shown(model), hint=hint)
        return self._inputs[model]

    def load(self, model: str, version: int) -> Scorer:
        """See `ModelRegistry.load`; a version that does not fit is refused with `wrong-columns`."""
        self.refuse_unfit(model, version)
        return super().load(model, version)

    def try_out(self, model: str, version: int) -> None:
        """See `ModelRegistry.try_out`; a version that does not fit is refused with `wrong-columns`."""
        self.refuse_unfit(model, version)
        super().try_out(model, version)

    def refuse_unfit(self, model: str, version: int) -> None:
        """Refuse a version that does not fit the plan."""
        manifest = self.manifest(model, version)
        refuse_differences(unfit(manifest, self.inputs(model)), f"The {manifest.title}")
