"""What is in the lake, told from the tables' own logs: no data file is opened, and nothing is created by looking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.lake.counters import EXTRA, behind, position, totals
from headrace.lake.files import filesystem
from headrace.lake.imports import imports
from headrace.lake.layout import BRONZE, SILVER
from headrace.lake.table import LakeTable, reading


@dataclass(frozen=True)
class Content:
    """What one table holds in its present version. `days` are the first and the last, None when it has no rows."""

    rows: int
    files: int
    bytes: int
    days: tuple[str, str] | None
    version: int

    def as_json(self) -> dict[str, Any]:
        """The facts as a program reads them."""
        first, last = self.days or (None, None)
        return {
            "rows": self.rows,
            "files": self.files,
            "bytes": self.bytes,
            "first_day": first,
            "last_day": last,
            "version": self.version,
        }


@dataclass(frozen=True)
class Days:
    """Rows, files and bytes of some days of a table."""

    days: int
    rows: int
    files: int
    bytes: int


def content(table: LakeTable) -> Content:
    """What a table holds."""
    with reading(table.uri):
        actions = _files(table)
        days = sorted({str(day) for day in actions["day"]})
        rows = sum(actions["rows"]) if None not in actions["rows"] else table.delta.count()
        span = (days[0], days[-1]) if days else None
        return Content(rows, len(actions["day"]), sum(actions["bytes"]), span, table.delta.version())


def days_before(table: LakeTable, day: str) -> Days:
    """What a table has of the days before one, written as in 2026-01-31."""
    with reading(table.uri):
        actions = _files(table)
        old = [at for at, held in enumerate(actions["day"]) if str(held) < day]
        rows = sum(actions["rows"][at] or 0 for at in old)
        days = len({actions["day"][at] for at in old})
        return Days(days, rows, len(old), sum(actions["bytes"][at] for at in old))


def on_disk(table: LakeTable) -> dict[str, int]:
    """The data files in a table's folder with their bytes: also those that no version speaks of any more."""
    from pyarrow import fs

    with reading(table.uri):
        files, root = filesystem(table.uri, table.options)
        found = files.get_file_info(fs.FileSelector(root, recursive=True))
    sizes = {each.path.removeprefix(f"{root}/"): each.size for each in found if each.extension == "parquet"}
    return {path: size for path, size in sizes.items() if not path.startswith("_delta_log/")}


def stream_as_json(tables: dict[str, LakeTable]) -> dict[str, Any]:
    """What `headrace lake ls` tells of one stream, from the tables that are there."""
    told: dict[str, Any] = {
        "empty": not tables,
        "tables": {name: content(table).as_json() for name, table in tables.items()},
        "archived": 0,
        "positions": {},
        "verdicts": {},
        "imports": [],
        "silver_behind": False,
    }
    bronze = tables.get(BRONZE)
    if bronze is not None:
        counted = totals(bronze)
        extra = {name: counted.pop(name) for name in EXTRA}
        told |= {"archived": sum(counted.values()), "verdicts": counted, **extra}
        told["positions"] = {str(partition): offset for partition, offset in (position(bronze) or {}).items()}
        told["imports"] = [each.as_json() for each in imports(bronze)]
        told["silver_behind"] = behind(bronze, tables.get(SILVER))
    return told


def _files(table: LakeTable) -> dict[str, list[Any]]:
    import pyarrow as pa

    actions = pa.table(table.delta.get_add_actions(flatten=True))
    if not actions.num_rows:
        return {"day": [], "rows": [], "bytes": []}
    names = {"day": f"partition.{table.shape.day}", "rows": "num_records", "bytes": "size_bytes"}
    return {name: actions.column(column).to_pylist() for name, column in names.items()}
