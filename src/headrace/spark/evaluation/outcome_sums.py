"""What is known of predictions, in Spark, summed by cell: a window, a version, a value of a segment.

Rows come from `spark.evaluation.outcomes`, each with a sign: what is known now is added, what was known before is
taken away.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.define.label import BINARY, Label
from headrace.meaning.bins import score_bin_sql, size_bin_sql
from headrace.meaning.sums import LEAST, ScoreBin, Sums, cell_of, total

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Columns = dict[str, Any]
"""Arrays of numpy, by name."""
UNKNOWN, NO_BIN = -1, -(2**31)
TRUTHS = {UNKNOWN: None, 0: False, 1: True}
NUMBERS = ("n", "s", "log", "log2", "sq", "sq2", "e", "e_abs", "e2", "e4", "y", "y2", "contradicted")
"""What is summed of the rows of a group."""
GROUP = ("window", "version", "segment", "value")
BY_SCORE = ("state", "truth", "decision", "bin", "usable")


class CellKey(NamedTuple):
    """Whose sums they are: a window by its start, a version, and a value of a segment; of all when that is empty."""

    window: int
    version: int
    segment: str
    value: str


def summed(rows: DataFrame, label: Label) -> dict[CellKey, Sums]:
    """The sums of every cell."""
    return _collected(_grouped(rows, label), label)


def _grouped(rows: DataFrame, label: Label) -> DataFrame:
    """Sums by cell: of scores by what is known of them, and of delays."""
    usable = "score BETWEEN 0 AND 1" if label.kind == BINARY else "score BETWEEN -1.7e308D AND 1.7e308D"
    if label.kind == BINARY:
        number = score_bin_sql("score")
        held = f"least(1 - {LEAST!r}D, greatest({LEAST!r}D, score))"
        log = f"(-ln(IF(truth, {held}, 1 - {held})))"
        sq = "power(score - IF(truth, 1, 0), 2)"
        made = {"log": log, "log2": f"power({log}, 2)", "sq": sq, "sq2": f"power({sq}, 2)"}
        made |= dict.fromkeys(("e", "e_abs", "e2", "e4", "y", "y2"), "0D")
    else:
        number, error = size_bin_sql("(score - truth)"), "(score - truth)"
        made = dict.fromkeys(("log", "log2", "sq", "sq2"), "0D")
        made |= {"e": error, "e_abs": f"abs({error})", "e2": f"power({error}, 2)", "e4": f"power({error}, 4)"}
        made |= {"y": "truth", "y2": "power(truth, 2)"}
    known = f"({usable}) AND truth IS NOT NULL"
    prepared = rows.selectExpr(
        *GROUP,
        "state",
        f"{_flag('truth') if label.kind == BINARY else UNKNOWN} AS truth",
        f"{_flag('decision')} AS decision",
        f"{usable} AS usable",
        f"CASE WHEN {usable if label.kind == BINARY else known} THEN {number} ELSE {NO_BIN} END AS bin",
        f"CASE WHEN delay IS NOT NULL THEN {size_bin_sql('delay')} END AS delay_bin",
        "sign AS n",
        f"sign * IF({usable}, score, 0D) AS s",
        *(f"sign * IF({known}, {text}, 0D) AS `{name}`" for name, text in made.items()),
        "sign * CAST(contradicted AS INT) AS contradicted",
    )
    # Both in one pass: what is before this, a join of everything, is done once.
    by_score, by_delay = [*GROUP, *BY_SCORE], [*GROUP, "delay_bin"]
    sets = prepared.groupingSets([by_score, by_delay], *GROUP, *BY_SCORE, "delay_bin")
    sums = expressions(**{name: f"sum({name})" for name in NUMBERS}, is_delay="grouping(state) = 1")
    return sets.agg(*sums).where("(n <> 0 OR contradicted <> 0) AND (delay_bin IS NOT NULL OR NOT is_delay)")


def expressions(**told: str) -> list[Any]:
    """Columns by their names, from SQL."""
    from pyspark.sql import functions as F  # noqa: N812

    return [F.expr(text).alias(name) for name, text in told.items()]


def _flag(text: str) -> str:
    """Yes or no as 1 or 0."""
    return f"coalesce(CAST({text} AS INT), {UNKNOWN})"


def _collected(rows: DataFrame, label: Label) -> dict[CellKey, Sums]:
    """Sums by cell, from the rows of groups: nearly as many as there are predictions, so whole columns at a time."""
    import pyarrow.compute as pc

    table = rows.toArrow()
    delays = table.column("is_delay")
    parts: dict[CellKey, list[Sums]] = {}
    for of, made in ((pc.invert(delays), partial(_scored, binary=label.kind == BINARY)), (delays, _delays)):
        for cell, columns in _cells(table.filter(of)):
            parts.setdefault(cell, []).append(made(columns))
    return {cell: total(held) for cell, held in parts.items()}


def _cells(table: pa.Table) -> Iterator[tuple[CellKey, Columns]]:
    """Every cell with its rows of all other columns."""
    import numpy as np
    import pyarrow as pa

    numbered = table.append_column("row", pa.array(np.arange(table.num_rows)))
    cells = numbered.group_by(list(GROUP)).aggregate([("row", "list")]).to_pydict()
    columns = {name: table.column(name).to_numpy() for name in table.column_names if name not in GROUP}
    for *cell, rows in zip(*(cells[name] for name in (*GROUP, "row_list")), strict=True):
        yield CellKey(*cell), {name: column[rows] for name, column in columns.items()}


def _delays(held: Columns) -> Sums:
    return Sums(delays=_counts(held["delay_bin"].astype(int), held["n"]))


def _scored(held: Columns, *, binary: bool) -> Sums:
    usable, binned = held["usable"].astype(bool), held["bin"] != NO_BIN
    told: dict[str, Any] = {
        "states": _counts(held["state"], held["n"]),
        "contradicted": int(held["contradicted"].sum()),
        "unusable": int(held["n"][~usable].sum()),
    }
    if not binary:
        errors = _counts(held["bin"][binned].astype(int), held["n"][binned])
        return Sums(**told, errors=errors, moments=_added(held, "e", "e_abs", "e2", "e4", "y", "y2"))
    kept = {name: column[usable] for name, column in held.items()}
    which = {
        cell_of(bool(decision), known) or "": (kept["decision"] == decision) & (kept["truth"] == truth)
        for decision in (0, 1)
        for truth, known in TRUTHS.items()
    }
    there = {name: rows for name, rows in which.items() if rows.any()}
    return Sums(
        **told,
        scores=_scores(kept),
        decided={name: int(kept["n"][rows].sum()) for name, rows in there.items()},
        decided_sum={name: float(kept["s"][rows].sum()) for name, rows in there.items()},
        losses=_added(held, "log", "log2", "sq", "sq2"),
    )


def _scores(held: Columns) -> dict[int, ScoreBin]:
    """By bin, how many there are of each truth, and the sums of their scores."""
    import numpy as np

    bins, at = np.unique(held["bin"].astype(int), return_inverse=True)
    found = [
        np.bincount(at, weights=np.where(held["truth"] == truth, held[name], 0), minlength=len(bins)).tolist()
        for name in ("n", "s")
        for truth in TRUTHS
    ]
    told = zip(bins.tolist(), *found, strict=True)
    return {number: ScoreBin(int(open_), int(no), int(yes), *sums) for number, open_, no, yes, *sums in told}


def _counts(names: Any, numbers: Any) -> dict[Any, int]:
    """By name, the sum of its numbers."""
    import numpy as np

    found, at = np.unique(names, return_inverse=True)
    sums = np.bincount(at, weights=numbers, minlength=len(found)).tolist()
    return {name: int(each) for name, each in zip(found.tolist(), sums, strict=True)}


def _added(held: Columns, *names: str) -> Any:
    return tuple(float(held[name].sum()) for name in names)
