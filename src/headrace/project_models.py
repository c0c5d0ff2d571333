"""Versions of a project's models from Python: added with where they come from, given roles, used on tables.

A version is held against the project's plan before it is kept, and against the training set it comes from: what it has
learnt must be what it will be handed. `headrace model` is the same on the command line; files and roles are `score`'s.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.batch import loaded
from headrace.clock import Clock, SystemClock
from headrace.config.config import models_folder
from headrace.errors import DataError, shown
from headrace.models.columns import ModelColumn, differences, refuse_differences
from headrace.models.manifest import Manifest, Output
from headrace.models.trial import try_out
from headrace.plan.model_inputs import FittingModels, inputs_of
from headrace.project import Project
from headrace.public_calls import check_call

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def models_of(project: Project, clock: Clock | None = None) -> FittingModels:
    """The models of a project; a version that does not fit its plan is not loaded, and a new one is tried apart."""
    folder, clock = models_folder(project.config), clock or SystemClock()
    return FittingModels(folder, clock, check=try_out).bind(project.plan())


@check_call
def add_model(  # noqa: PLR0913
    name: str,
    model: Any,
    *,
    training_set: str | Path | None = None,
    threshold: float | None = None,
    missing: str | Mapping[str, float] = "nan",
    categories: Mapping[str, Sequence[str]] | None = None,
    output: tuple[float | None, float | None] = (0.0, 1.0),
    metrics: Mapping[str, float] | None = None,
    description: str | None = None,
    format: str | None = None,
    trusted: Sequence[str] = (),
    allow_code: bool = False,
    promote: bool = False,
    project: Project | str | Path | None = None,
) -> Manifest:
    """Keep a trained model as the next version of a model that the project declares.

    Parameters
    ----------
    name
        The model, as declared with `hr.model`.
    model
        The trained model (LightGBM, scikit-learn, ONNX, river, a function), or the path of its file.
    training_set
        The folder of the training set it was trained on: its columns must be those of the project's plan, and the
        manifest keeps how each was spread.
    threshold
        From which score on its decision is yes.
    missing
        What a null becomes: "nan" passes it on, "refuse" makes an error of it, a dict gives values by column.
    categories
        Of each text column, the texts that a matrix takes as 0, 1, 2 and so on.
    output
        The range that a score must be in; None is no bound.
    metrics, description
        What was measured, and what people say of it.
    format, trusted, allow_code
        How it is kept, when that is not to be found out; types outside its library that may be loaded; whether it may
        be a pickle or a file of Python, which may run anything when they are opened.
    promote
        Whether it is the champion at once; otherwise it has no role.
    project
        A loaded project or its folder; the current folder when left out.
    """
    whose = loaded(project)
    declared = whose.plan().model(name)
    columns = inputs_of(whose.plan(), declared.features)
    told: dict[str, Any] = {} if training_set is None else _training_set(Path(training_set), columns)
    models = models_of(whose)
    made = models.add(
        name,
        model,
        features=declared.features.name,
        columns=columns,
        format=format,
        allow_code=allow_code,
        missing=dict(missing) if isinstance(missing, Mapping) else missing,
        categories={each: tuple(known) for each, known in (categories or {}).items()},
        output=Output(*output),
        threshold=threshold,
        metrics=dict(metrics or {}),
        description=description,
        trusted=tuple(trusted),
        **told,
    )
    if promote:
        models.promote(name, made.version)
    return made


def _training_set(folder: Path, columns: tuple[ModelColumn, ...]) -> dict[str, Any]:
    """What a manifest keeps of a training set, once its columns are known to be those of the plan."""
    from headrace.training.manifest import FILE, read_manifest

    told = read_manifest(folder)
    kinds = {each.name: each.type for each in columns}
    trained = [ModelColumn(name, kinds.get(name, ""), made["fingerprint"]) for name, made in told["features"].items()]
    refuse_differences(differences(trained, columns), f"A model trained on {shown(str(folder))}")
    digest = hashlib.sha256((folder / FILE).read_bytes()).hexdigest()[:12]
    kept = {name: told[name] for name in ("created_at", "plan", "asked", "spine", "lake") if name in told}
    return {
        "training_set": {"id": digest, "folder": str(folder), "rows": told.get("rows"), **kept},
        "reference": {name: told["columns"][name] for name in kinds if name in told.get("columns", {})},
    }


@check_call
def score_table(
    frame: DataFrame, name: str, *, version: int | None = None, project: Project | str | Path | None = None
) -> DataFrame:
    """A Spark table with the features of a model in its columns, and beside them `score`, `version` and `error`.

    The scorer is the one that answers over HTTP and in the stream: for equal features it gives equal scores.

    Parameters
    ----------
    frame
        A table that has the model's features by their names, such as a training set.
    name, version
        The model, and which version of it; the champion when left out.
    project
        A loaded project or its folder; the current folder when left out.
    """
    from headrace.spark.score import scored

    models = models_of(loaded(project))
    chosen = version if version is not None else models.roles(name).champion
    if chosen is None:
        hint = f"Promote one with `headrace model promote {name} VERSION`, or name a version."
        raise DataError("no-champion", f"Model {name!r} has no champion.", hint=hint)
    return scored(frame, models.place(name, chosen), models.load(name, chosen).manifest)
