"""Answers as a pandas DataFrame: a row for each key, and no whole number becomes a float because one is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.client.answer import Answer
from headrace.errors import DataError, shown
from headrace.schema.types import LARGEST_INTEGER, SMALLEST_INTEGER

if TYPE_CHECKING:
    import pandas as pd

    from headrace.define.dimension import Keyed
    from headrace.define.feature_set import FeatureSet

FLAGS = ("as_of", "freshness_ms", "stale", "missing")


def frame_of(view: str | Keyed | FeatureSet, answers: Sequence[Answer]) -> pd.DataFrame:
    """Key columns, features, and how fresh each row is."""
    import pandas as pd

    keys, features = _columns(view, answers)
    doubled = [name for name, times in Counter([*keys, *features, *FLAGS]).items() if times > 1]
    if doubled:
        hint = "Read the answers themselves with `features_of`."
        raise DataError("duplicate-name", "Two columns would have one name.", got=shown(doubled), hint=hint)
    made = {name: _series([answer.key[name] for answer in answers]) for name in keys}
    made |= {name: _series([answer.features[name] for answer in answers]) for name in features}
    made["as_of"] = pd.Series([answer.as_of for answer in answers], dtype="datetime64[us, UTC]")
    made["freshness_ms"] = pd.Series([answer.freshness_ms for answer in answers], dtype="float64")
    for name in ("stale", "missing"):
        made[name] = pd.Series([getattr(answer, name) for answer in answers], dtype="bool")
    return pd.DataFrame(made)


def _columns(view: str | Keyed | FeatureSet, answers: Sequence[Answer]) -> tuple[list[str], list[str]]:
    if answers:
        return list(answers[0].key), list(answers[0].features)
    if isinstance(view, str):
        return [], []
    from headrace.define.feature_set import FeatureSet

    if isinstance(view, FeatureSet):
        return list(dict.fromkeys(name for each in view.keyed for name in each.by)), list(view.columns)
    return list(view.by), [feature.name for feature in view.features]


def _series(values: Sequence[Any]) -> pd.Series[Any]:
    import pandas as pd

    held = [value for value in values if value is not None]
    if len(held) < len(values):
        kinds = {type(value) for value in held}
        if kinds == {bool}:
            return pd.Series(values, dtype="boolean")
        if kinds == {int}:
            fits = all(SMALLEST_INTEGER <= value <= LARGEST_INTEGER for value in held)
            return pd.Series(values, dtype="Int64" if fits else "object")
    return pd.Series(values) if held else pd.Series(values, dtype="object")
