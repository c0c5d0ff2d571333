"""What a training set is, as its folder says: from what it was made, by which definitions, and what is in it.

From a manifest the same set can be made again (`training.reproduce`). It is written last and in one step: a folder
without one holds no training set.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.clock import show_time
from headrace.errors import DataError, shown
from headrace.files import write_atomically
from headrace.plan.feature_digest import digests, on_demand_digest
from headrace.plan.model import Plan
from headrace.training.feature_columns import FeatureColumns
from headrace.training.lake_tables import LakeTables
from headrace.version import VERSION

if TYPE_CHECKING:
    from headrace.training.build import PreparedSet

FILE, DATA = "manifest.json", "data"
FORM = 1


def features_as_json(plan: Plan, asked: FeatureColumns) -> dict[str, dict[str, str]]:
    """Every column of a training set with where it comes from, and a digest of all that decides its values."""
    planned = digests(plan)
    by_column = {column: pair for pair, column in asked.columns.items()}
    on_demands = {made.name: made for made in asked.on_demands}
    told: dict[str, dict[str, str]] = {}
    for name, column in asked.picked.items():
        if column in on_demands:
            told[name] = {"on_demand": column, "fingerprint": on_demand_digest(on_demands[column], planned)}
        else:
            view, feature = by_column[column]
            told[name] = {"view": view, "feature": feature, "fingerprint": planned[view, feature]}
    return told


def manifest(ready: PreparedSet, plan: Plan, tables: LakeTables, created_at: int) -> dict[str, Any]:
    """All that is known of a training set before its rows are."""
    spine, facts = ready.spine, ready.facts
    return {
        "manifest": FORM,
        "headrace": VERSION,
        "created_at": show_time(created_at),
        "plan": plan.fingerprint,
        "asked": ready.wish.as_json(),
        "spine": {
            "kind": spine.kind,
            "source": spine.source,
            "fingerprint": facts.fingerprint,
            "rows": facts.rows,
            "first": show_time(facts.first),
            "last": show_time(facts.last),
        },
        "features": features_as_json(plan, ready.asked),
        "lake": tables.versions,
        "dimensions": tables.dimension_versions,
    }


def write_manifest(folder: Path, told: Mapping[str, Any]) -> None:
    """Say what a folder holds."""
    write_atomically(folder / FILE, json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a folder says it holds."""
    try:
        told = json.loads((folder / FILE).read_text("utf-8"))
    except (OSError, ValueError) as error:
        message = "The folder holds no training set: its manifest is not there, or cannot be read."
        hint = "A set that was cut off while it was made has none: make it anew."
        raise DataError("bad-file", message, got=shown(str(folder)), hint=hint) from error
    if not isinstance(told, dict) or told.get("manifest") != FORM:
        got = shown(told.get("manifest") if isinstance(told, dict) else told)
        hint = "Make the set anew, or read it with the version of Headrace that made it."
        raise DataError("bad-file", "The manifest has a form that this version does not know.", got=got, hint=hint)
    return told
