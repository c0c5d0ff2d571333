"""The sums of every window, version and segment, as they were known after each look that changed them.

The newest row of a cell is what is known of it; the earlier ones are how it was stated before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from headrace.config.config import Config
from headrace.define.label import Label
from headrace.evaluation.pass_table import SEEN, PassTable
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.meaning.sums import Sums
from headrace.spark.evaluation.outcome_sums import CellKey
from headrace.spark.evaluation.outcomes import PassPosition


class Restated(NamedTuple):
    """A cell as it was known at a moment."""

    cell: CellKey
    known_until: int
    sums: Sums


class _CellSums(msgspec.Struct):
    """What is kept of one: its sums, and until when labels were known."""

    known_until: int
    sums: Sums


class Cells:
    """The cells of a label."""

    def __init__(self, config: Config, label: Label, faults: FaultPoints = NO_FAULTS) -> None:
        self._looks = PassTable(config, f"label.{label.name}", faults)

    @property
    def looks(self) -> int:
        """How many looks were taken."""
        return self._looks.taken

    def seen(self) -> PassPosition | None:
        """How far the last look saw; None before the first."""
        said = self._looks.seen()
        return None if said is None else msgspec.json.decode(said, type=PassPosition)

    def newest(self, since: int | None = None) -> dict[CellKey, Restated]:
        """Every cell as it is known now, of windows from a moment on."""
        found = {each.cell: each for each in map(_restated, self._looks.newest(_of_cells(since)))}
        return {cell: found[cell] for cell in sorted(found)}

    def history(self, since: int | None = None) -> Iterator[Restated]:
        """All restatements of cells, of windows from a moment on; those of one cell in the order they were made."""
        return map(_restated, self._looks.rows(_of_cells(since)))

    def restate(self, changed: Mapping[CellKey, Sums], seen: PassPosition, look: int) -> list[Restated]:
        """Add what changed to what is known, and note how far the look saw; the cells as they are now."""
        first = min((cell.window for cell in changed), default=None)
        known = {} if first is None else self.newest(first)
        made = [
            Restated(cell, seen.known_until, known[cell].sums + sums if cell in known else sums)
            for cell, sums in changed.items()
        ]
        self._looks.append(map(_row, made), msgspec.json.encode(seen).decode(), look)
        return made


def _of_cells(since: int | None) -> str:
    return f"part <> '{SEEN}'" + ("" if since is None else f" AND window >= {since}")


def _restated(row: Mapping[str, Any]) -> Restated:
    told = msgspec.json.decode(row["told"], type=_CellSums)
    return Restated(CellKey(row["window"], row["version"], row["part"], row["value"]), told.known_until, told.sums)


def _row(each: Restated) -> dict[str, Any]:
    window, version, segment, value = each.cell
    told = msgspec.json.encode(_CellSums(each.known_until, each.sums)).decode()
    return {"window": window, "version": version, "part": segment, "value": value, "told": told}
