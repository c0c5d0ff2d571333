"""What a column looked like when its model was trained, in the shape in which windows are counted.

Made from a column of a model manifest's `reference`. Windows are counted over its bins and its categories
(`drift.statistics`), and compared with it by `drift.distance`. Nothing here reads a manifest's file.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.clock import parse_timestamp
from headrace.errors import DataError, shown


class Reference(msgspec.Struct, frozen=True):
    """How a column was spread.

    Parameters
    ----------
    rows, null_rate
        How many rows there were, and which share of them was null.
    mean, stddev
        Of a number; None where they are not known.
    edges, counts
        Of a number: where its bins begin and end, and how many values were in each. There is one bin more at either
        end, for what lies below the first edge or above the last, so there is one count more than edges.
    texts, other
        Of a text: how often each category was there, and how often any that is not named. A boolean is the text "true"
        or "false".

    Examples
    --------
    >>> amount = Reference(rows=4, null_rate=0.0, mean=2.0, stddev=1.0, edges=(0.0, 2.0, 4.0), counts=(0, 1, 3, 0))
    >>> [amount.bin_of(value) for value in (-1.0, 0.0, 2.0, 4.0, 4.1)]
    [0, 1, 2, 2, 3]
    """

    rows: int
    null_rate: float
    mean: float | None = None
    stddev: float | None = None
    edges: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    texts: dict[str, int] = {}
    other: int = 0

    @property
    def is_text(self) -> bool:
        """Whether it has categories and no bins."""
        return not self.edges

    @property
    def fingerprint(self) -> str:
        """Of its bins and categories: windows that were counted over others cannot be compared with it."""
        told = msgspec.json.encode([self.edges, sorted(self.texts)])
        return hashlib.sha256(told).hexdigest()[:12]

    def bin_of(self, value: float) -> int:
        """The bin of a number. One on an edge is in the bin that begins there; the last bin holds its end too."""
        if value < self.edges[0]:
            return 0
        if value > self.edges[-1]:
            return len(self.edges)
        # Where all values were one, there is no width, and they are in the first bin.
        return 1 if self.edges[0] == self.edges[-1] else min(bisect_right(self.edges, value), len(self.edges) - 1)


def reference_of(told: Mapping[str, Any], rows: int | None = None) -> Reference | None:
    """A column of a manifest as a reference; None where it has neither a histogram nor its most frequent values.

    Parameters
    ----------
    told
        What the manifest says of the column.
    rows
        How many rows its training set had. Without it they are worked out from the column, as far as that goes: of a
        text without nulls only the named categories are known.

    Examples
    --------
    >>> reference_of({"nulls": 1, "null_rate": 0.25, "top": [{"value": "DE", "rows": 2}]})
    Reference(rows=4, null_rate=0.25, mean=None, stddev=None, edges=(), counts=(), texts={'DE': 2}, other=1)
    >>> reference_of({"nulls": 0, "null_rate": 0.0}) is None
    True
    """
    try:
        if told.get("histogram"):
            return _number(told)
        return _text(told, rows) if told.get("top") else None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = "A column's reference in the manifest does not say what one says."
        hint = "Add the model again, with its training set."
        raise DataError("wrong-reference", message, got=shown(dict(told), 200), hint=hint) from error


def references_of(reference: Mapping[str, Mapping[str, Any]]) -> dict[str, Reference]:
    """All columns of a manifest that can be compared.

    >>> list(references_of({"tags": {"nulls": 0}, "vip": {"nulls": 0, "top": [{"value": True, "rows": 3}]}}))
    ['vip']
    """
    rows = max((_rows(told) for told in reference.values()), default=0) or None
    made = {name: reference_of(told, rows) for name, told in reference.items()}
    return {name: each for name, each in made.items() if each is not None}


def _number(told: Mapping[str, Any]) -> Reference:
    edges = tuple(_value(edge) for edge in told["histogram"]["edges"])
    counts = tuple(int(count) for count in told["histogram"]["counts"])
    if len(edges) != len(counts) + 1 or list(edges) != sorted(edges):
        raise ValueError("edges and counts do not fit")
    return Reference(
        rows=_rows(told),
        null_rate=float(told.get("null_rate", 0.0)),
        mean=None if told.get("mean") is None else _value(told["mean"]),
        stddev=None if told.get("stddev") is None else _value(told["stddev"]),
        edges=edges,
        counts=(0, *counts, 0),
    )


def _text(told: Mapping[str, Any], rows: int | None) -> Reference:
    texts = {text_of(each["value"]): int(each["rows"]) for each in told["top"]}
    known = rows or _rows(told)
    other = max(0, known - int(told.get("nulls", 0)) - sum(texts.values()))
    return Reference(rows=known, null_rate=float(told.get("null_rate", 0.0)), texts=texts, other=other)


def _rows(told: Mapping[str, Any]) -> int:
    """The rows of a column, or at least so many."""
    nulls, rate = int(told.get("nulls") or 0), float(told.get("null_rate") or 0.0)
    if told.get("histogram"):
        return nulls + sum(map(int, told["histogram"]["counts"]))
    named = nulls + sum(int(each["rows"]) for each in told.get("top") or ())
    return max(named, round(nulls / rate)) if rate else named


def _value(value: Any) -> float:
    """A number as it is; a moment in microseconds."""
    moment = parse_timestamp(value) if isinstance(value, str) else value
    if not isinstance(moment, int | float) or not math.isfinite(moment):
        raise ValueError("not a number")
    return float(moment)


def text_of(value: Any) -> str:
    """A category as a text.

    >>> text_of(True), text_of("DE")
    ('true', 'DE')
    """
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
