"""Tables of a dimension, written as others would write them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import headrace as hr
from headrace.lake.dimension import DimensionLocation

MOMENT = pa.timestamp("us", tz="UTC")
merchants = hr.dimension(
    "merchants",
    "merchants.parquet",
    by="merchant",
    fields={"merchant": str, "category": str, "risk": float | None},
    valid_from="since",
    valid_to="until",
)


def moment(text: str) -> int:
    """Microseconds of a day in 2026."""
    return int(datetime.fromisoformat(f"2026-{text}T00:00:00+00:00").astimezone(UTC).timestamp()) * 1_000_000


def table(*rows: tuple[Any, ...], **types: pa.DataType) -> pa.Table:
    """Rows of merchant, category, risk, since, until; columns in other types than the usual ones where asked for."""
    names = ["merchant", "category", "risk", "since", "until"]
    usual = dict(zip(names, [pa.string(), pa.string(), pa.float64(), MOMENT, MOMENT], strict=True)) | types
    filled = [(*row, *[None] * (5 - len(row))) for row in rows]
    return pa.table({name: pa.array([row[at] for row in filled], usual[name]) for at, name in enumerate(names)})


def written(folder: Path, *rows: tuple[Any, ...], **types: pa.DataType) -> DimensionLocation:
    """Rows in a file, put there in one step as everybody should."""
    pq.write_table(table(*rows, **types), folder / "new")
    (folder / "new").rename(folder / "merchants.parquet")
    return DimensionLocation(merchants, str(folder / "merchants.parquet"))
