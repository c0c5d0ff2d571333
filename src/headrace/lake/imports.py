"""What the lake's commits say of imports: each has a number, a partition below zero, and counters of its own.

`spark.imports.history_import` moves them. They are apart from the archive's, which count records of the log alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.lake.counters import EARLIER_COPIES, position
from headrace.lake.table import LakeTable
from headrace.meaning.verdict_names import VERDICTS

IMPORTS, IMPORT = "headrace.imports", "headrace.import."
"""How many imports there are, and what the counters of each begin with."""


def rows_of(number: int) -> str:
    """The counter of an import's rows, imports being numbered from 0.

    >>> rows_of(0)
    'headrace.import.0.rows'
    """
    return f"{IMPORT}{number}.rows"


def rule_of(number: int) -> str:
    """The counter that holds by which rule an import is read."""
    return f"{IMPORT}{number}.rule"


def end_of(number: int) -> str:
    """The counter that is there once an import has all rows of its source."""
    return f"{IMPORT}{number}.ended"


def count_of(number: int, verdict: str) -> str:
    """The counter of an import's rows that got a verdict, or of its copies that arrived before the ones that count."""
    return f"{IMPORT}{number}.count.{verdict}"


def partition_of(number: int) -> int:
    """The partition an import's rows have in the lake: below zero, where no topic has any; and back again.

    >>> partition_of(0), partition_of(-1)
    (-1, 0)
    """
    return -1 - number


def positions(table: LakeTable) -> dict[int, int]:
    """The next offset of each partition that a table has yet to get, those of imports included."""
    numbers = range(table.counter(IMPORTS) or 0)
    found = {partition_of(number): table.counter(rows_of(number)) or 0 for number in numbers}
    return found | (position(table) or {})


@dataclass(frozen=True)
class Import:
    """One import as the lake knows it."""

    number: int
    rows: int
    ended: bool
    rule: int | None
    verdicts: dict[str, int]
    earlier_copies: int

    @property
    def partition(self) -> int:
        """The partition of its rows."""
        return partition_of(self.number)

    def as_json(self) -> dict[str, Any]:
        """What `headrace lake ls` tells of it."""
        told = {"partition": self.partition, "rows": self.rows, "complete": self.ended}
        return told | {"verdicts": self.verdicts, EARLIER_COPIES: self.earlier_copies}


def import_of(bronze: LakeTable, number: int) -> Import:
    """An import by its number."""
    verdicts = {verdict: bronze.counter(count_of(number, verdict)) or 0 for verdict in VERDICTS}
    rows, rule = bronze.counter(rows_of(number)) or 0, bronze.counter(rule_of(number))
    earlier = bronze.counter(count_of(number, EARLIER_COPIES)) or 0
    return Import(number, rows, bronze.counter(end_of(number)) is not None, rule, verdicts, earlier)


def imports(bronze: LakeTable) -> list[Import]:
    """Every import into a table, the first first."""
    return [import_of(bronze, number) for number in range(bronze.counter(IMPORTS) or 0)]
