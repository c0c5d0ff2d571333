"""Answers as a pandas DataFrame: a row for each key, and no whole number becomes a float because one is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.client.answer import FeatureAnswer
from headrace.errors import DataError, shown
from headrace.types.field_types import LARGEST_INTEGER, SMALLEST_INTEGER

if TYPE_CHECKING:
    import pandas as pd

    from headrace.client.score import Score
    from headrace.define.dimension import Keyed
    from headrace.define.feature_set import FeatureSet

SAID = ("score", "decision", "version", "role")
FLAGS = ("as_of", "freshness_ms", "stale", "missing")


def frame_of(view: str | Keyed | FeatureSet, answers: Sequence[FeatureAnswer]) -> pd.DataFrame:
    """Key columns, features, and how fresh each row is."""
    import pandas as pd

    keys, features = _columns(view, answers)
    _refuse_doubled([*keys, *features, *FLAGS], "Read the answers themselves with `features_of`.")
    return pd.DataFrame(_build_columns(keys, features, answers) | _fresh(answers))


def scores_frame(scores: Sequence[Score]) -> pd.DataFrame:
    """Key columns, features, the score with its decision, version and role, and how fresh each row is."""
    import pandas as pd

    keys, features = (list(scores[0].key), list(scores[0].features)) if scores else ([], [])
    _refuse_doubled([*keys, *features, *SAID, *FLAGS], "Read the scores themselves.")
    made = _build_columns(keys, features, scores)
    made["score"] = pd.Series([each.score for each in scores], dtype="float64")
    made["decision"] = pd.Series([each.decision for each in scores], dtype="boolean")
    made["version"] = pd.Series([each.version for each in scores], dtype="int64")
    made["role"] = pd.Series([each.role for each in scores], dtype="object")
    return pd.DataFrame(made | _fresh(scores))


def _refuse_doubled(names: Sequence[str], hint: str) -> None:
    doubled = [name for name, times in Counter(names).items() if times > 1]
    if doubled:
        raise DataError("duplicate-name", "Two columns would have one name.", got=shown(doubled), hint=hint)


def _build_columns(
    keys: Sequence[str], features: Sequence[str], answers: Sequence[FeatureAnswer | Score]
) -> dict[str, pd.Series[Any]]:
    made = {name: _series([answer.key[name] for answer in answers]) for name in keys}
    return made | {name: _series([answer.features[name] for answer in answers]) for name in features}


def _fresh(answers: Sequence[FeatureAnswer | Score]) -> dict[str, pd.Series[Any]]:
    import pandas as pd

    made: dict[str, pd.Series[Any]] = {}
    made["as_of"] = pd.Series([answer.as_of for answer in answers], dtype="datetime64[us, UTC]")
    made["freshness_ms"] = pd.Series([answer.freshness_ms for answer in answers], dtype="float64")
    for name in ("stale", "missing"):
        made[name] = pd.Series([getattr(answer, name) for answer in answers], dtype="bool")
    return made


def _columns(view: str | Keyed | FeatureSet, answers: Sequence[FeatureAnswer]) -> tuple[list[str], list[str]]:
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
