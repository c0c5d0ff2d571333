"""Keeping tables in order: small files merged, old days forgotten, files that no version needs removed.

None of it changes what a reader of the present sees, except `forget`, which takes whole days away and refuses to take
any that could still be asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.clock import DAY, show_time
from headrace.errors import DataError
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.lake.counters import FORGOTTEN
from headrace.lake.table import LakeTable, reading

TARGET_BYTES = 128 * 1024 * 1024
YOUNG_HOURS = 24
"""Files younger than this are never removed: a reader may be in the middle of them, a writer about to commit them."""


@dataclass(frozen=True)
class Compacted:
    """How many files became how many."""

    before: int
    after: int


def compact(table: LakeTable, target: int = TARGET_BYTES, *, faults: FaultPoints = NO_FAULTS) -> Compacted:
    """Merge the small files of each day; rows and their order stay."""
    with reading(table.uri):
        faults.reach("keep.compact.before")
        done: dict[str, Any] = table.delta.optimize.compact(target_size=target)
        faults.reach("keep.compact.after")
        table.refresh()
    return Compacted(int(done["numFilesRemoved"]), int(done["numFilesAdded"]))


def vacuum(table: LakeTable, hours: int, *, dry: bool = False, faults: FaultPoints = NO_FAULTS) -> list[str]:
    """Remove files that no version of the last `hours` needs; gives their names."""
    if hours < YOUNG_HOURS:
        message = f"Files younger than {YOUNG_HOURS} hours may still be read or about to be committed."
        raise DataError("lake-conflict", message, got=f"{hours} h", hint=f"Keep at least {YOUNG_HOURS} hours.")
    with reading(table.uri):
        found = table.delta.vacuum(hours, dry_run=dry, enforce_retention_duration=False, full=True)
        faults.reach("keep.vacuum.after")
        table.refresh()
    return found


def forget(table: LakeTable, before: int, *, faults: FaultPoints = NO_FAULTS) -> int:
    """Take away the days that end before a moment; gives the rows taken.

    That they are forgotten is said first: who asks for what is half gone must not be answered from the other half.
    """
    first = before - before % DAY
    with reading(table.uri):
        if first > (table.counter(FORGOTTEN) or 0):
            table.commit([], {FORGOTTEN: first})
        faults.reach("keep.forget.after")
        done: dict[str, Any] = table.delta.delete(f"{table.shape.day} < '{show_time(first)[:10]}'")
        faults.reach("keep.delete.after")
        table.refresh()
    return int(done.get("num_deleted_rows") or 0)
