"""The counters that stand in the lake's commits: how far archive and imports have come, and what became of the records.

`spark.archive.lake_writer` moves them in the commit that adds the files; everybody else only reads them, without Spark.
"""

from __future__ import annotations

from itertools import count, takewhile

from headrace.lake.table import LakeTable
from headrace.meaning.verdict_names import VERDICTS

TURN, BATCH, OFFSET, COUNT = "headrace.turn", "headrace.batch", "headrace.offset.", "headrace.count."
"""The turn is moved by every commit, of the archive and of imports (`lake.imports`) alike."""
CONFLICTS, LATE_COPIES, EARLIER_COPIES, LOST = "conflict", "late_copy", "earlier_copy", "lost"
EXTRA = (CONFLICTS, LATE_COPIES, EARLIER_COPIES, LOST)
"""What is counted beside verdicts: copies that contradict the first, that are late, that arrived before it; losses."""
FORGOTTEN = "headrace.forgotten"
"""The moment before which a table's days were taken away, in microseconds."""


def position(table: LakeTable, partitions: int | None = None) -> dict[int, int] | None:
    """The next offset of each partition to be archived; None before the first batch.

    Without a number of partitions, of those that the table knows: a batch moves them all.
    """
    if partitions is None:
        moved = takewhile(lambda p: table.counter(f"{OFFSET}{p}") is not None, count())
        partitions = len(list(moved))
    found = {p: table.counter(f"{OFFSET}{p}") for p in range(partitions)}
    known = {p: offset for p, offset in found.items() if offset is not None}
    return known or None


def totals(bronze: LakeTable) -> dict[str, int]:
    """How many records have got each verdict, and what is counted beside verdicts."""
    return {name: bronze.counter(f"{COUNT}{name}") or 0 for name in (*VERDICTS, *EXTRA)}


def behind(bronze: LakeTable, silver: LakeTable | None) -> bool:
    """Whether silver lacks what bronze has: a crash came between the two commits, and silver is made up for from it."""

    def lacks(name: str) -> bool:
        return (bronze.counter(name) or 0) > ((None if silver is None else silver.counter(name)) or 0)

    return lacks(TURN) or lacks(BATCH)
