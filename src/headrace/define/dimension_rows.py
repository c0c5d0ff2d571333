"""Rows of a dimension as a test writes them, in the types that its table would have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.clock import show_time
from headrace.codec.json.write import coerce
from headrace.define.dimension import Dimension, Row
from headrace.errors import DataError, did_you_mean, shown


def rows_of(dimension: Dimension, rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows that could be the dimension's table; what a table is refused for is refused here.

    >>> import headrace as hr
    >>> fields = {"merchant": str, "risk": float | None}
    >>> merchants = hr.dimension("merchants", "m.parquet", by="merchant", fields=fields, valid_from="since")
    >>> rows_of(merchants, [{"merchant": "m1", "since": "1970-01-01T00:00:01Z"}])
    [{'merchant': 'm1', 'risk': None, 'since': 1000000}]
    """
    known = [field.name for field in dimension.schema]
    found: list[Row] = []
    seen: set[tuple[Any, ...]] = set()
    for row in rows:
        for name in row:
            if name not in known:
                message = f"Dimension {dimension.name!r} has no such column."
                raise DataError("bad-dimension", message, got=shown(name), hint=did_you_mean(name, known))
        made = coerce(dimension.schema, row)
        place = (*(made[name] for name in dimension.by), made[dimension.valid_from])
        if place in seen:
            raise two_rows(dimension, place[:-1], place[-1])
        seen.add(place)
        found.append(made)
    return found


def two_rows(dimension: Dimension, key: tuple[Any, ...], since: int, others: int = 0) -> DataError:
    """The error of two rows of one key that are valid from one moment: which of them counts, nobody can say."""
    message = f"Two rows of dimension {dimension.name!r} have one key and one {dimension.valid_from!r}."
    got = f"{shown(dict(zip(dimension.by, key, strict=True)))} from {show_time(since)}"
    more = f", and {others:,} more" if others else ""
    hint = "Keep one row for each key and moment."
    return DataError("bad-dimension", message, got=got + more, hint=hint, where=dimension.path)
