"""How what models were given is spread, window by window, in Spark: counts over the bins of a model's reference.

Only predictions that were not seen before are read, and what is found of them is added to what is there. What the
counts are compared with, and when that is an alarm, is `drift`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from headrace.define.model import Model
from headrace.drift.reference import Reference
from headrace.drift.statistics import Statistics
from headrace.drift.window import SCORE, in_segment
from headrace.lake.table import LakeTable
from headrace.spark.admission import EVENT_TIME
from headrace.spark.pipeline.run_scope import before
from headrace.spark.segments import segments
from headrace.spark.silver import EVER, events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TENTHS = tuple(at / 20 for at in range(21))
NEAR = 1e-6
"""How far an edge may be off, of the whole width, where bins have one width."""
AT_ONCE = 50
"""Columns of one pass: Spark compiles a pass as a whole."""

Spreads = dict[tuple[int, int], dict[str, Statistics]]
"""By window and version, the statistics of each column."""


@dataclass(frozen=True)
class OffsetRange:
    """The predictions between two looks.

    Parameters
    ----------
    seen
        The offsets that the last look saw; None if there was none.
    until
        The offsets that this look sees.
    files
        The files that may hold such predictions.
    """

    seen: Mapping[int, int] | None
    until: Mapping[int, int]
    files: Sequence[str]


def spreads(
    session: SparkSession,
    model: Model,
    predictions: LakeTable,
    references: Mapping[int, Mapping[str, Reference]],
    length: int,
    names: Sequence[str] = (),
    *,
    between: OffsetRange,
) -> Spreads:
    """The statistics of predictions that stand between two looks.

    Parameters
    ----------
    references
        Of each version that has one, by column.
    length
        How long a window is, in microseconds.
    names
        By which segments are told apart.
    """
    rows = events(session, predictions, model.predictions, [EVER], between.files).where(before(between.until))
    if between.seen is not None:
        rows = rows.where(f"NOT {before(between.seen)}")
    found: Spreads = {}
    made = {row[0] for row in rows.select("version").distinct().collect()}
    for version, columns in references.items():
        if version not in made:
            continue
        mine = rows.where(f"version = {version}")
        given = [name for name in columns if name != SCORE]
        for at in range(0, len(given) + 1, AT_ONCE):
            some = {name: columns[name] for name in given[at : at + AT_ONCE]}
            if at == 0 and SCORE in columns:
                some[SCORE] = columns[SCORE]
            if some:
                _take(found, version, some, _counted(mine, some, length, segments(model, names)))
    return found


def score_reference() -> Reference:
    """Twenty bins between 0 and 1, for scores of which no manifest says how they were spread."""
    return Reference(rows=0, null_rate=0.0, edges=TENTHS, counts=(0,) * (len(TENTHS) + 1))


def _counted(rows: DataFrame, columns: Mapping[str, Reference], length: int, parts: str) -> DataFrame:
    """By window, segment, column and bin: how many, their mean, and the squares of their distances to it."""
    names = list(columns)
    told = ", ".join(f"`{name}` STRING" for name in names if name != SCORE)
    read = f"from_json(features, '{told}')" if told else "NULL"
    window = f"`{EVENT_TIME}` - pmod(`{EVENT_TIME}`, {length}) AS window"
    raw = rows.selectExpr(window, "score", f"{read} AS given", f"{parts} AS parts")
    values = [f"{_value(name, columns[name])} AS v{at}" for at, name in enumerate(names)]
    typed = raw.selectExpr("window", *values, "explode(parts) AS part")
    cells = ", ".join(
        f"{at}, {'NULL' if columns[name].is_text else f'v{at}'}, {_bin(f'v{at}', columns[name])}"
        for at, name in enumerate(names)
    )
    stacked = typed.selectExpr("window", "part", f"stack({len(names)}, {cells}) AS (at, v, bin)")
    return stacked.groupBy("window", "part", "at", "bin").agg(*_sums())


def _sums() -> list[Any]:
    from pyspark.sql import functions as F  # noqa: N812

    return [
        F.expr("count(1)").alias("n"),
        F.expr("coalesce(avg(v), 0D)").alias("mean"),
        F.expr("coalesce(var_pop(v) * count(v), 0D)").alias("m2"),
    ]


def _value(name: str, reference: Reference) -> str:
    """A column as a number, or as text; what is no number is null, and moments are microseconds."""
    if name == SCORE:
        return "CASE WHEN NOT isnan(score) THEN score END"
    text = f"given.`{name}`"
    if reference.is_text:
        return text
    moment = f"CAST(unix_micros(try_cast({text} AS TIMESTAMP)) AS DOUBLE)"
    number = f"coalesce(try_cast({text} AS DOUBLE), {moment})"
    return f"CASE WHEN NOT isnan({number}) THEN {number} END"


def _bin(value: str, reference: Reference) -> str:
    """The bin of a value as `Reference.bin_of` says; of a text its place among those that are known, else 0."""
    if reference.is_text:
        known = ", ".join(f"'{_escaped(text)}'" for text in reference.texts) or "CAST(NULL AS STRING)"
        return f"CASE WHEN {value} IS NOT NULL THEN CAST(array_position(array({known}), {value}) AS INT) END"
    edges, low, high = reference.edges, reference.edges[0], reference.edges[-1]
    last = len(edges) - 2
    told = f"array({', '.join(f'{edge!r}D' for edge in edges)})"
    if low == high:
        within = "1"
    elif any(abs(edge - low - (high - low) * at / (last + 1)) > NEAR * (high - low) for at, edge in enumerate(edges)):
        within = f"least({last + 1}, size(filter({told}, edge -> edge <= {value})))"
    else:
        # Where bins have one width, a division tells the bin, or the one beside it.
        guess = f"greatest(0, least({last}, CAST(floor(({value} - {low!r}D) / {high - low!r}D * {last + 1}) AS INT)))"
        up = f"IF({guess} < {last} AND {value} >= {told}[{guess} + 1], 1, 0)"
        down = f"IF({value} < {told}[{guess}], 1, 0)"
        within = f"1 + {guess} + {up} - {down}"
    return (
        f"CASE WHEN {value} IS NULL THEN NULL WHEN {value} < {low!r}D THEN 0 "
        f"WHEN {value} > {high!r}D THEN {len(edges)} ELSE {within} END"
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _take(into: Spreads, version: int, columns: Mapping[str, Reference], counted: DataFrame) -> None:
    names = list(columns)
    parts: dict[tuple[int, str], list[Statistics]] = {}
    for row in counted.toArrow().to_pylist():
        name = names[row["at"]]
        column = in_segment(name, row["part"]["segment"], row["part"]["value"])
        parts.setdefault((row["window"], column), []).append(_part(row, columns[name]))
    for (window, name), held in parts.items():
        into.setdefault((window, version), {})[name] = merged(held)


def merged(parts: Iterable[Statistics]) -> Statistics:
    """All parts as one."""
    return reduce(Statistics.merge, parts, Statistics())


def _part(row: Mapping[str, Any], reference: Reference) -> Statistics:
    """The statistics of one bin."""
    number, count, against = row["bin"], row["n"], reference.fingerprint
    if reference.is_text:
        known = list(reference.texts)
        texts = {text: count if number == at + 1 else 0 for at, text in enumerate(known)}
        nulls, other = (count, 0) if number is None else (0, count if number == 0 else 0)
        return Statistics(count=count, nulls=nulls, texts=texts, other=other, against=against)
    counts = tuple(count if at == number else 0 for at in range(len(reference.edges) + 1))
    nulls = count if number is None else 0
    return Statistics(count=count, nulls=nulls, mean=row["mean"], m2=row["m2"], counts=counts, against=against)
