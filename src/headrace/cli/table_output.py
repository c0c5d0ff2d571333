"""An Arrow table on stdout: in columns, as JSON lines, or as CSV. Nothing is cut off or made up."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from headrace.cli.output import data, table
from headrace.clock import micros, show_duration, show_time

if TYPE_CHECKING:
    import pyarrow as pa


def write(found: pa.Table, form: str) -> None:
    """Write rows as "table", "json" (an object a line) or "csv"."""
    names, rows = found.column_names, [tuple(plain(cell) for cell in row) for row in _rows(found)]
    if form == "json":
        for row in rows:
            data(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, allow_nan=False))
    elif form == "csv":
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(
            [names, *(["" if c is None else text(c) for c in r] for r in rows)]
        )
        data(out.getvalue().removesuffix("\n"))
    else:
        table(names, [["null" if cell is None else text(cell) for cell in row] for row in rows])


def _rows(found: pa.Table) -> list[tuple[Any, ...]]:
    if not found.num_columns:
        return []
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def plain(value: Any) -> Any:
    """A value as JSON can carry it: moments in RFC 3339, bytes that are no UTF-8 in hexadecimal, decimals as text.

    >>> from decimal import Decimal
    >>> plain(b"caf\\xc3\\xa9"), plain(b"\\xff"), plain(float("nan")), plain(Decimal("1.50"))
    ('café', '0xff', 'NaN', '1.50')
    """
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    if isinstance(value, datetime):
        return value.isoformat() if value.tzinfo is None else show_time(micros(value))
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return show_duration(value // timedelta(microseconds=1))
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def text(value: Any) -> str:
    """A plain value in one cell."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
