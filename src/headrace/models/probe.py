"""A first look at a model before it is accepted: it must score a plain row, and one without values if it takes such.

What raises on these would raise on the first who asks, when it is too late.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from headrace.errors import DataError, HeadraceError
from headrace.models.columns import ModelColumn
from headrace.models.manifest import NAN, Manifest
from headrace.models.scorer import Scorer


def probe(scorer: Scorer) -> None:
    """Refuse a model that has no score for plain values."""
    manifest = scorer.manifest
    plain = {each.name: _plain(manifest, each) for each in manifest.columns}
    hint = "A model must take zeros, or the means of its reference; say output=... if its scores are no probabilities."
    _refuse(scorer, plain, hint)
    if isinstance(manifest.missing, dict):
        hint = "Say other values for nulls with missing={...}."
        _refuse(scorer, {name: None if name in manifest.missing else plain[name] for name in plain}, hint)
    elif manifest.missing == NAN:
        hint = 'Say missing="refuse", or a value for each column that may be null.'
        _refuse(scorer, dict.fromkeys(plain), hint)


def _refuse(scorer: Scorer, row: dict[str, Any], hint: str) -> None:
    outcome = scorer.score([row])[0]
    if isinstance(outcome, HeadraceError):
        what = "without values" if all(value is None for value in row.values()) else "of plain values"
        got = f"{outcome.brief} The row: {row}"
        raise DataError(outcome.code, f"The model has no score for a row {what}.", got=got[:600], hint=hint)


def _plain(manifest: Manifest, column: ModelColumn) -> Any:
    """The mean that the reference tells of a column, or zero; of texts, the first category."""
    if column.is_text:
        return next(iter(manifest.categories.get(column.name, ())), "")
    if not column.is_number:
        return [] if column.type.startswith("list") else {}
    told = manifest.reference.get(column.name)
    mean = told.get("mean") if isinstance(told, dict) else None
    known = isinstance(mean, int | float) and not isinstance(mean, bool) and math.isfinite(mean)
    value = float(mean) if known and mean is not None else 0.0
    if column.type.startswith("decimal"):
        return Decimal(str(value))
    if column.type == "boolean":
        return value >= 0.5
    return value if column.type == "float" else round(value)
