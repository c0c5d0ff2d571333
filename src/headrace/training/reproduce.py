"""A training set made again from its manifest: the same spine, the same definitions, the lake in the same versions.

What has changed since is refused by name, because the set would be another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import DataError, shown
from headrace.plan.model import Plan
from headrace.plural import show_count
from headrace.project import Project
from headrace.training.build import Tell
from headrace.training.feature_columns import resolve_features
from headrace.training.lake_tables import LakeTables
from headrace.training.manifest import features_as_json
from headrace.training.request import wish_of
from headrace.training.result import make
from headrace.training.spine_facts import Facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make_again(
    project: Project,
    told: Mapping[str, Any],
    folder: Path,
    *,
    session: SparkSession,
    spine: str | None = None,
    format: str | None = None,
    tell: Tell = lambda _: None,
) -> dict[str, Any]:
    """Make the training set of a manifest again, in another folder; gives the new manifest.

    Parameters
    ----------
    told
        The manifest.
    spine
        Where the spine is now; where it was when left out.
    """
    given = spine_again(told, spine)
    wish = wish_of(told["asked"], format)
    refuse_changed(project.plan(), told)

    def check(found: Facts) -> None:
        if found.fingerprint != told["spine"]["fingerprint"]:
            message = "The spine is not the one that the training set was made from."
            got = f"{show_count(found.rows, 'row')}, {found.fingerprint}"
            hint = (
                f"It had {show_count(told['spine']['rows'], 'row')} and the fingerprint {told['spine']['fingerprint']}."
            )
            raise DataError("changed-since", message, got=got, hint=hint)

    tables = LakeTables(project.config, told["lake"], told["dimensions"])
    return make(project, wish, given, folder, session=session, tables=tables, check=check, tell=tell)


def spine_again(told: Mapping[str, Any], spine: str | None) -> str:
    """The path or query of the spine; one that was a DataFrame must be named."""
    given = told["spine"]["source"] if spine is None else spine
    if given is None:
        message = f"The training set was made from a {told['spine']['kind']} DataFrame, which is not kept."
        hint = "Write it to Parquet, and name the file: headrace training-set FILE --again DIR --out DIR."
        raise DataError("changed-since", message, hint=hint)
    return str(given)


def refuse_changed(plan: Plan, told: Mapping[str, Any]) -> None:
    """Refuse definitions that have changed since, naming the features."""
    now = features_as_json(plan, resolve_features(plan, told["asked"]["features"]))
    then = told["features"]
    changed = [name for name in [*then, *now] if now.get(name) != then.get(name)]
    if changed:
        message = "Features are not defined as they were when the training set was made."
        hint = "Take the definitions of then, or make a new training set."
        raise DataError("changed-since", message, got=shown(list(dict.fromkeys(changed)), 200), hint=hint)
