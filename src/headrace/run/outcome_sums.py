"""What is known of predictions, in Spark, summed by cell: a window, a version, a value of a segment.

Rows come from `run.outcomes`, each with a sign: what is known now is added, what was known before is taken away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.define.label import BINARY, Label
from headrace.truth.bins import score_bin_sql, size_bin_sql
from headrace.truth.sums import LEAST, Scores, Sums, cell_of, total

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NUMBERS = ("n", "s", "log", "log2", "sq", "sq2", "e", "e_abs", "e2", "e4", "y", "y2", "contradicted")
"""What is summed of the rows of a group."""
GROUP = ("window", "version", "segment", "value")
BY_SCORE = ("state", "truth", "decision", "bin")


class Cell(NamedTuple):
    """Whose sums they are: a window by its start, a version, and a value of a segment; of all when that is empty."""

    window: int
    version: int
    segment: str
    value: str


def summed(rows: DataFrame, label: Label) -> dict[Cell, Sums]:
    """The sums of every cell."""
    return _collected(_grouped(rows, label), label)


def _grouped(rows: DataFrame, label: Label) -> DataFrame:
    """Sums by cell: of scores by what is known of them, and of delays; a null in `bin` tells them apart."""
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
    binned = f"CASE WHEN {usable} THEN {number if label.kind == BINARY else f'CASE WHEN {known} THEN {number} END'} END"
    prepared = rows.selectExpr(
        *GROUP,
        "state",
        "CAST(truth AS STRING) AS truth" if label.kind == BINARY else "CAST(NULL AS STRING) AS truth",
        "decision",
        f"{usable} AS usable",
        f"{binned} AS bin",
        f"CASE WHEN delay IS NOT NULL THEN {size_bin_sql('delay')} END AS delay_bin",
        "sign AS n",
        f"sign * IF({usable}, score, 0D) AS s",
        *(f"sign * IF({known}, {text}, 0D) AS `{name}`" for name, text in made.items()),
        "sign * CAST(contradicted AS INT) AS contradicted",
    )
    by_score = prepared.groupBy(*GROUP, *BY_SCORE, "usable").agg(
        *expressions(**{name: f"sum({name})" for name in NUMBERS})
    )
    return by_score.unionByName(_delays(prepared), allowMissingColumns=True)


def _delays(prepared: DataFrame) -> DataFrame:
    counted = prepared.where("delay_bin IS NOT NULL").groupBy(*GROUP, "delay_bin")
    return counted.agg(*expressions(n="sum(n)"))


def expressions(**told: str) -> list[Any]:
    """Columns by their names, from SQL."""
    from pyspark.sql import functions as F  # noqa: N812

    return [F.expr(text).alias(name) for name, text in told.items()]


def _collected(rows: DataFrame, label: Label) -> dict[Cell, Sums]:
    """Sums by cell, from the rows of groups."""
    found: dict[Cell, list[Sums]] = {}
    for row in rows.where("n <> 0 OR contradicted <> 0").toArrow().to_pylist():
        cell = Cell(row["window"], row["version"], row["segment"], row["value"])
        part = _delay(row) if row["delay_bin"] is not None else _scored(row, binary=label.kind == BINARY)
        found.setdefault(cell, []).append(part)
    return {cell: total(parts) for cell, parts in found.items()}


def _delay(row: Mapping[str, Any]) -> Sums:
    return Sums(delays={row["delay_bin"]: row["n"]})


def _scored(row: Mapping[str, Any], *, binary: bool) -> Sums:
    count, total = row["n"], row["s"]
    told: dict[str, Any] = {"states": {row["state"]: count}, "contradicted": row["contradicted"]}
    if not row["usable"]:
        return Sums(**told, unusable=count)
    if not binary:
        errors = {} if row["bin"] is None else {row["bin"]: count}
        return Sums(**told, errors=errors, moments=tuple(row[name] for name in ("e", "e_abs", "e2", "e4", "y", "y2")))
    truth = {None: None, "true": True, "false": False}[row["truth"]]
    held = {
        None: Scores(count, 0, 0, total),
        False: Scores(0, count, 0, 0.0, total),
        True: Scores(0, 0, count, 0.0, 0.0, total),
    }
    which = cell_of(row["decision"], truth)
    return Sums(
        **told,
        scores={row["bin"]: held[truth]},
        decided={} if which is None else {which: count},
        decided_sum={} if which is None else {which: total},
        losses=(row["log"], row["log2"], row["sq"], row["sq2"]),
    )
