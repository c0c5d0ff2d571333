"""Scores as the service answers them: a value for each key, with the features it is from and who gave it.

Given a model by name, features are what JSON has; given the model itself, they are of their types, as with `Answer`.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from headrace.client.answer import Refused, error_of, refuse, strange
from headrace.client.batch import KeyBatch, json_of
from headrace.client.connection import Reply
from headrace.client.dataframe import scores_frame
from headrace.client.typed_values import typed, types_of
from headrace.plural import show_count

if TYPE_CHECKING:
    import pandas as pd

    from headrace.define.model import Model
    from headrace.types.field_types import Type


class Score(msgspec.Struct, frozen=True):
    """The score of one key, whose it is, and the features it is from.

    Parameters
    ----------
    model, key
        What was asked.
    score
        The score.
    decision
        Whether it reaches the version's threshold; None when that has none.
    version, role
        Who gave it: the champion, or for its share of the keys the challenger.
    features
        Every value that the model was given, by name.
    at, as_of, late_as_of, freshness_ms, missing, stale, mode
        How fresh they are; see `Answer`.
    fallback_from
        The version that failed, and for which this one answers; None mostly.

    Examples
    --------
    >>> body = b'''{"model": "fraud", "at": "2026-01-01T00:00:01Z", "errors": 0, "answers": [{"key": {"card": "42"},
    ... "score": 0.9, "decision": true, "version": 3, "role": "champion", "features": {"n": 7}, "as_of": null,
    ... "late_as_of": null, "freshness_ms": null, "missing": false, "stale": true, "mode": "micro-batch"}]}'''
    >>> (score,) = scores_of(Reply(200, body), "fraud", 1)
    >>> score.score, score.decision, score.version, score.features
    (0.9, True, 3, {'n': 7})
    """

    model: str
    key: dict[str, Any]
    score: float
    decision: bool | None
    version: int
    role: str
    features: dict[str, Any]
    at: datetime
    as_of: datetime | None
    late_as_of: datetime | None
    freshness_ms: float | None
    missing: bool
    stale: bool
    mode: str
    fallback_from: int | None = None


class Scores(list[Score | Refused]):
    """Scores of several keys, in their order; one that was not scored is `Refused`."""

    def to_pandas(self) -> pd.DataFrame:
        """A table with a row for each key; the first that was not scored is raised.

        It has the key's columns, the features, `score`, `decision`, `version`, `role`, and how fresh each row is.
        """
        for each in self:
            if isinstance(each, Refused):
                raise each.error
        return scores_frame([each for each in self if isinstance(each, Score)])


class _KeyScore(msgspec.Struct):
    """A score of several, or the error in its place."""

    key: Any
    score: float | UnsetType = UNSET
    decision: bool | UnsetType | None = UNSET
    version: int | UnsetType = UNSET
    role: str | UnsetType = UNSET
    features: dict[str, Any] | UnsetType = UNSET
    as_of: datetime | UnsetType | None = UNSET
    late_as_of: datetime | UnsetType | None = UNSET
    freshness_ms: float | UnsetType | None = UNSET
    missing: bool | UnsetType = UNSET
    stale: bool | UnsetType = UNSET
    mode: str | UnsetType = UNSET
    fallback_from: int | None = None
    error: dict[str, str | None] | None = None
    status: int = 500


class _Several(msgspec.Struct):
    model: str
    at: datetime
    answers: list[_KeyScore]


_plain = msgspec.json.Decoder(_Several)
_exact = msgspec.json.Decoder(_Several, float_hook=decimal.Decimal)


def body_of(piece: KeyBatch, stale: str | None, version: int | None) -> bytes:
    """The request's JSON."""
    asked: dict[str, Any] = {"keys": piece.keys}
    given = {"request": piece.request, "stale": stale, "version": version}
    return json_of(asked | {name: value for name, value in given.items() if value is not None})


def scores_of(reply: Reply, model: str | Model, count: int) -> list[Score | Refused]:
    """The scores of several keys; an error of the whole request is raised."""
    refuse(reply)
    by_name = isinstance(model, str)
    try:
        told = (_plain if by_name else _exact).decode(reply.body)
        types = None if isinstance(model, str) else types_of(model.features)
        found = [_score(told, one, types) for one in told.answers]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, TypeError) as error:
        raise strange(reply, str(error)) from error
    if len(found) != count:
        raise strange(reply, f"{show_count(len(found), 'score')} for {show_count(count, 'key')}")
    return found


def _score(told: _Several, one: _KeyScore, types: Mapping[str, Type] | None) -> Score | Refused:
    if one.error is not None:
        return Refused(told.model, one.key, error_of(one.status, one.error))
    parts = {name: getattr(one, name) for name in Score.__struct_fields__ if name not in ("model", "at")}
    absent = [name for name, part in parts.items() if part is UNSET]
    if absent or not isinstance(one.key, dict):
        raise ValueError(f"it is no score: {', '.join(absent) or 'key'}")
    if types is not None:
        parts["features"] = {name: typed(types.get(name), value) for name, value in parts["features"].items()}
    return Score(model=told.model, at=told.at, **parts)
