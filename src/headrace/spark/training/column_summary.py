"""What the columns of a training set look like: nulls, distinct values, extremes, histograms. Two passes, all native.

Whoever trains on a set can compare it with the next one, or with what is served, by its manifest alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.clock import show_time
from headrace.spark.training.spine import answers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BINS = 20
TOP = 20
AT_ONCE = 100
"""Columns that are looked at in one pass: Spark compiles a pass as a whole."""
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "timestamp")
_TEXTS = ("string", "boolean")


def summary(frame: DataFrame, columns: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What some columns look like, by their names."""
    kinds = dict(frame.dtypes)
    found: dict[str, dict[str, Any]] = {}
    for some in _in_portions(columns):
        asked = {key: text for name in some for key, text in _summary_sql(name, kinds[name]).items()}
        said = answers(frame, {"rows": "count(*)", **asked})
        rows = said["rows"]
        for name in some:
            nulls = said[f"nulls {name}"]
            told = {"type": kinds[name], "nulls": nulls, "null_rate": nulls / rows if rows else 0.0}
            told["distinct"] = said[f"distinct {name}"]
            if _is_number(kinds[name]):
                shown = _shown(kinds[name])
                told |= {which: shown(said[f"{which} {name}"]) for which in ("min", "max", "mean")}
                told["stddev"] = _finite(said[f"stddev {name}"])
            found[name] = told
        bounds = {name: (said[f"min {name}"], said[f"max {name}"]) for name in some if _is_number(kinds[name])}
        for name, held in histograms(frame, bounds, kinds).items():
            found[name]["histogram"] = held
    for name in columns:
        if kinds[name] in _TEXTS:
            found[name]["top"] = _top(frame, name)
    return found


def _in_portions(columns: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(columns), AT_ONCE):
        yield columns[at : at + AT_ONCE]


def _is_number(kind: str) -> bool:
    return kind in _NUMBERS or kind.startswith("decimal(")


def _number(name: str, kind: str) -> str:
    """A column as a number; moments are microseconds."""
    return f"CAST(unix_micros(`{name}`) AS DOUBLE)" if kind == "timestamp" else f"CAST(`{name}` AS DOUBLE)"


def _summary_sql(name: str, kind: str) -> dict[str, str]:
    hashed = f"to_json(struct(`{name}`))" if "<" in kind else f"`{name}`"
    found = {f"nulls {name}": f"count_if(`{name}` IS NULL)", f"distinct {name}": f"approx_count_distinct({hashed})"}
    if _is_number(kind):
        number = _number(name, kind)
        wanted = {"min": "min", "max": "max", "mean": "avg", "stddev": "stddev_samp"}
        found |= {f"{which} {name}": f"{function}({number})" for which, function in wanted.items()}
    return found


def histograms(
    frame: DataFrame, bounds: Mapping[str, tuple[float | None, float | None]], kinds: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Twenty bins of one width for each column, with the 21 edges; the last bin holds its upper edge too."""
    found: dict[str, dict[str, Any]] = {}
    wide: dict[str, str] = {}
    for name, (low, high) in bounds.items():
        if low is None or high is None or not math.isfinite(high - low):
            continue
        edges = [low + (high - low) * at / BINS for at in range(BINS)] + [high]
        found[name] = {"edges": [_shown(kinds[name])(edge) for edge in edges], "counts": [0] * BINS}
        number = _number(name, kinds[name])
        # Where all values are one, there is no width, and they are in the first bin.
        share = f"({number} - {low!r}D) / {high - low!r}D * {BINS}" if high > low else f"{number} * 0"
        # Of the least of several, Spark leaves out nulls.
        wide[name] = f"CASE WHEN `{name}` IS NOT NULL THEN least({BINS - 1}, CAST(floor({share}) AS INT)) END"
    if wide:
        pairs = ", ".join(f"{at}, {text}" for at, text in enumerate(wide.values()))
        cells = frame.selectExpr(f"stack({len(wide)}, {pairs}) AS (at, bin)").where("bin IS NOT NULL")
        names = list(wide)
        for at, number, count in cells.groupBy("at", "bin").count().collect():
            found[names[at]]["counts"][number] = count
    return found


def _top(frame: DataFrame, name: str) -> list[dict[str, Any]]:
    counted = frame.where(f"`{name}` IS NOT NULL").groupBy(f"`{name}`").count().toDF("value", "n")
    # By name among equals, so that the same set has the same manifest.
    held = counted.selectExpr("value", "n", "-n AS fewer").orderBy("fewer", "value").limit(TOP).collect()
    return [{"value": row[0], "rows": row[1]} for row in held]


def _shown(kind: str) -> Any:
    return (lambda value: None if value is None else show_time(int(value))) if kind == "timestamp" else _finite


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
