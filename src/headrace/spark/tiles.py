"""Tiles in native Spark SQL: one row per (key, tile) with its partial columns, the same text in every mode.

Judged records come in (`spark.admission`), duplicates are dropped, and what leaves is a changelog row, whose format is
`tiles.changelog_format`. The same code runs as a batch and as a micro-batch stream; nothing here knows where rows are
written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.aggregate import EventSql
from headrace.plan.model import TileSet
from headrace.spark.admission import ARRIVED, CLOSED, EVENT_ID, EVENT_TIME, OFFSET, ORDER, PARTITION, VERDICT
from headrace.tiles.changelog_format import key_sql, value_sql

TIME = "~time"


@dataclass(frozen=True)
class Target:
    """What the rows are for: the run that writes them, their lane, and how many partitions the stream has.

    Without a `version`, which a batch takes from the lake, it is the number of events in a row: that only grows.
    """

    run: str
    lane: str
    partitions: int
    version: int | None = None


def admitted_once(
    judged: DataFrame, tile_set: TileSet, gathered: Callable[[DataFrame], DataFrame] = lambda rows: rows
) -> DataFrame:
    """The admitted records of the on-time lane, each event once.

    In a stream, identities are forgotten when no copy can come any more. What was appended after its tile was closed is
    left to the late lane: Spark's watermark would drop it here. `gathered` may bring rows together that are to be
    compared; that comes after the watermark, which forgets how rows are spread.
    """
    admitted = judged.where(f"`{VERDICT}` = 'admitted' AND NOT `{CLOSED}`")
    timed = admitted.withColumn(TIME, F.expr(f"timestamp_micros(`{EVENT_TIME}`)"))
    if timed.isStreaming:
        timed = gathered(timed.withWatermark(f"`{TIME}`", f"{tile_set.watermark_delay} microseconds"))
    if tile_set.stream.event_id is None:
        return timed
    if timed.isStreaming:
        return timed.dropDuplicates([EVENT_ID, TIME])
    # All copies are there: the one that counts is the first, should they contradict each other.
    first = F.expr(f"min_by(struct(*), struct(`{ORDER}`, `{PARTITION}`, `{OFFSET}`))")
    return timed.groupBy(f"`{EVENT_ID}`", f"`{TIME}`").agg(first.alias("~first")).select("`~first`.*")


def tiles(once: DataFrame, tile_set: TileSet, partitions: int, also: Mapping[str, str] | None = None) -> DataFrame:
    """One row per (key, tile): its start, the key, the partial columns and what a changelog row says of them.

    `also` are aggregates that the caller wants to see beside them.
    """
    wanted = once if tile_set.where is None else once.where(tile_set.where.spark())
    keyed = wanted.withColumns({f"~k{at}": F.expr(column.spark()) for at, (_, column) in enumerate(tile_set.key)})
    window = F.window(F.col(f"`{TIME}`"), f"{tile_set.grain} microseconds")
    grouped = keyed.groupBy(window.alias("~window"), *(F.col(f"`~k{at}`") for at in range(len(tile_set.key))))
    start = "unix_micros(`~window`.start)"
    at = EventSql(f"`{EVENT_TIME}`", f"`{EVENT_ID}`", _floor(tile_set.grain))
    partials = [
        F.expr(column.monoid.spark(column.value.spark(), at)).alias(column.name) for column in tile_set.partials
    ]
    about = {
        "~n": "count(1)",
        "~max_event_time": f"max(`{EVENT_TIME}`)",
        "~max_arrived_at": f"max(`{ARRIVED}`)",
        **{f"~p{p}": f"max(CASE WHEN `{PARTITION}` = {p} THEN `{OFFSET}` + 1 END)" for p in range(partitions)},
        **(also or {}),
    }
    summed = grouped.agg(*partials, *(F.expr(text).alias(name) for name, text in about.items()))
    return summed.withColumn("~tile", F.expr(start))


def _floor(grain: int) -> str:
    return f"(`{EVENT_TIME}` - pmod(`{EVENT_TIME}`, {grain}))"


def changelog(tiled: DataFrame, tile_set: TileSet, target: Target, also: Sequence[str] = ()) -> DataFrame:
    """Rows as the changelog takes them: `key` and `value`, both JSON text; `also` are columns to leave beside them."""
    columns = {name: f"`~k{at}`" for at, (name, _) in enumerate(tile_set.key)}
    key = key_sql(tile_set.fingerprint, target.run, columns, "`~tile`", target.lane)
    value = value_sql(
        "`~n`" if target.version is None else f"CAST({target.version} AS BIGINT)",
        {column.name: f"`{column.name}`" for column in tile_set.partials},
        {partition: f"`~p{partition}`" for partition in range(target.partitions)},
        "`~max_event_time`",
        "`~max_arrived_at`",
    )
    return tiled.selectExpr(f"{key} AS key", f"{value} AS value", *(f"`{name}`" for name in also))
